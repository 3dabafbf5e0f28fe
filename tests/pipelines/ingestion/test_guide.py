"""What docs/pipelines/INGESTION.md shows, on a topic of a broker: `ottla lake`, and its examples in their order."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.peers.paths import REPOSITORY
from tests.pipelines.driving import START_MS
from tests.pipelines.ingestion import reference
from tests.pipelines.ingestion.filling import fill
from tests.spark.conftest import Target
from tests.unit.cli.command_line import CommandLine

_PAGE = REPOSITORY / "docs" / "pipelines" / "INGESTION.md"
_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)

pytestmark = pytest.mark.timeout(180)


def test_the_guide(pipeline_spark: Any, ottla_target: Target, tmp_path: Path) -> None:
    pytest.importorskip("deltalake", reason="deltalake is not installed")
    topic, directory = ottla_target.topic(2), str(tmp_path / "lake")
    ottla = CommandLine(ottla_target.bootstrap)
    fill(ottla_target, topic, 400)
    (loaded,) = ottla("lake", "load", directory, topic, "--records", "100", "--json").lines
    assert loaded["tasks"] >= 4
    (table,) = ottla("lake", "delta", directory, "--json").lines
    (compacted,) = ottla("lake", "compact", directory, "--least", "2", "--json").lines
    assert compacted["fewer"] > 0
    (shown,) = ottla("lake", "show", directory, "--json").lines
    assert (shown["topic"], shown["records"], shown["files"]) == (topic, 500, table["files"] - compacted["fewer"])
    assert ottla("lake", "load", directory, topic, "--json").lines[0]["tasks"] == 0

    before = datetime.fromtimestamp(START_MS / 1000, UTC) - timedelta(hours=1)
    names: dict[str, Any] = {"spark": pipeline_spark, "directory": directory, "an_hour_ago": before}
    examples = [
        text.replace("localhost:9092", ottla_target.bootstrap).replace('"orders"', repr(topic))
        for text in _BLOCK.findall(_PAGE.read_text())
    ]
    files, view, delta = examples
    exec(files, names)
    assert names["orders"].count() == 500
    exec(view, names)
    assert reference.rows_of(names["table"]) == reference.records_of(ottla_target.bootstrap, topic)
    exec(delta, names)
    assert reference.rows_of(names["orders"]) == reference.records_of(ottla_target.bootstrap, topic)


def test_a_topic_that_is_not_there_is_named(ottla_target: Target, pipeline_spark: Any, tmp_path: Path) -> None:
    ended = CommandLine(ottla_target.bootstrap)("lake", "load", str(tmp_path), "nowhere", code=1)
    assert "nowhere" in ended.err
    assert not (tmp_path / "_log").exists()
