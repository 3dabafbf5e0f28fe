"""A stream and a load into the same lake, and a load that cannot go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.pipelines.ingestion import reference
from tests.pipelines.ingestion.filling import brokers, fill
from tests.spark.conftest import Target

from ottla.client.errors import Unfinished
from ottla.pipelines.ingestion import loading
from ottla.pipelines.ingestion.lake import Lake
from ottla.pipelines.ingestion.loading import Task, load_range
from ottla.pipelines.ingestion.streaming import ingest


def test_a_stream_finds_what_a_load_has_put_before_it(
    pipeline_spark: Any, ottla_target: Target, tmp_path: Path
) -> None:
    topic = ottla_target.topic(1)
    lake = Lake(tmp_path / "lake")
    fill(ottla_target, topic, 300)
    config = {**brokers(ottla_target), "isolation.level": "read_committed"}
    for piece in ((100, 150), (200, 220)):
        load_range(Task(topic, 0, piece, piece[0]), config, lake.directory)
    reader = pipeline_spark.read.format("ottla").option("kafka.bootstrap.servers", ottla_target.bootstrap)
    reader = reader.option("kafka.isolation.level", "read_committed").option("includeHeaders", "true")
    records = reader.option("subscribe", topic).load()
    for _ in range(2):
        ingest(records, lake)
        assert reference.lake_rows(lake.directory, topic) == reference.records_of(ottla_target.bootstrap, topic)
        ((start, _),) = lake.state().covered[topic, 0]
        assert start == 0


def test_a_range_that_is_not_read_to_its_end_does_not_count(
    ottla_target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = ottla_target.topic(1)
    lake = Lake(tmp_path / "lake")
    fill(ottla_target, topic, 100)
    monkeypatch.setattr(loading, "_PATIENCE_SECONDS", 0.5)
    with pytest.raises(Unfinished):
        load_range(Task(topic, 0, (0, 5000), 0), brokers(ottla_target), lake.directory)
    assert not lake.state().files
    assert not lake.state().covered
