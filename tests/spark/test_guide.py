"""The examples of docs/SPARK.md, run in their order on one broker."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.peers.paths import REPOSITORY
from tests.spark.conftest import Target

from ottla import Consumer

_BLOCK = re.compile(r"```(python|output)\n(.*?)```", re.DOTALL)

pytestmark = pytest.mark.timeout(180)


def test_the_guide(spark: Any, ottla_target: Target, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"spark": spark, "directory": str(tmp_path)}
    printed = ""
    blocks = _BLOCK.findall((REPOSITORY / "docs" / "SPARK.md").read_text())
    assert [kind for kind, _ in blocks] == ["python", "python", "output", "python", "output", "python", "python"]
    for kind, text in blocks:
        if kind == "output":
            assert printed == text
            continue
        exec(text.replace("localhost:9092", ottla_target.bootstrap), names)
        printed = capsys.readouterr().out
    with Consumer[bytes, bytes](ottla_target.bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign([("totals", 0, 0)])
        keys = consumer.to_arrow().column("key").to_pylist()
    # By the batch write, and by the stream in update mode.
    assert sorted(keys) == sorted([b"c0", b"c1", b"c2"] * 2)
