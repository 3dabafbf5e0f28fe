"""What the lake of `ingestion` holds, as an answer: read when it has changed."""

from __future__ import annotations

from pathlib import Path

from ottla.cli.pipeline_answers import LakeAnswer
from ottla.pipelines.frame.place import Place
from ottla.pipelines.ingestion.job import lake_directory
from ottla.pipelines.ingestion.lake import Lake
from ottla.pipelines.ingestion.state import Commit, LakeFile


def test_the_lake_is_an_answer_as_soon_as_something_is_published(tmp_path: Path) -> None:
    place = Place("localhost:9092", tmp_path)
    now = 0.0
    answer = LakeAnswer(place, lambda: now)
    assert not answer.now().rows
    assert not answer.now().sentences
    lake = Lake(lake_directory(place))
    _publish(lake, "orders", 5)
    # It was looked at just now.
    assert not answer.now().rows
    now = 10.0
    assert answer.now().sentences == ("the lake has 5 records of 1 topic in 1 file (1.0 KiB)", "orders: 5 records")
    unchanged = answer.now()
    now = 20.0
    assert answer.now() is unchanged
    _publish(lake, "visits", 7)
    now = 30.0
    found = answer.now()
    assert [(row["topic"], row["rows"], row["files"]) for row in found.rows] == [("visits", 7, 1), ("orders", 5, 1)]
    assert found.sentences[0] == "the lake has 12 records of 2 topics in 2 files (2.0 KiB)"


def _publish(lake: Lake, topic: str, rows: int) -> None:
    path = f"topic={topic}/date=2026-01-01/hour=05/{topic}.parquet"
    (lake.directory / path).parent.mkdir(parents=True)
    (lake.directory / path).touch()
    lake.publish(
        Commit(added=(LakeFile(path, topic, "2026-01-01", "05", rows, 1024),), covered={(topic, 0): [(0, rows)]})
    )
