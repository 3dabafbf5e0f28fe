"""What is no part of the lake any more is deleted, and nothing else: not what readers read, not what a slow writer is
about to publish."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.pipelines.ingestion import reference
from tests.pipelines.ingestion.filling import brokers, fill, records
from tests.pipelines.ingestion.records import NOON, add, offsets, some_records
from tests.spark.conftest import Target

from ottla.pipelines.ingestion.compaction import compact
from ottla.pipelines.ingestion.files import write_files
from ottla.pipelines.ingestion.lake import Lake
from ottla.pipelines.ingestion.state import Commit, GivenUp
from ottla.pipelines.ingestion.streaming import VACUUM_EVERY, ingest


def _on_disk(lake: Lake) -> set[str]:
    return {str(path.relative_to(lake.directory)) for path in lake.directory.rglob("*.parquet")}


def _let_time_pass(lake: Lake) -> None:
    long_ago = NOON.timestamp()
    for path in lake.directory.rglob("*"):
        os.utime(path, (long_ago, long_ago))


def _commit_of(lake: Lake, start: int, count: int) -> Commit:
    """Written, and not published yet."""
    files = write_files(lake.directory, [some_records(start, count)])
    return Commit(tuple(files), covered={("orders", 0): [(start, start + count)]})


def test_a_stream_deletes_what_it_has_put_together(pipeline_spark: Any, ottla_target: Target, tmp_path: Path) -> None:
    topic = ottla_target.topic(1)
    lake = Lake(tmp_path / "lake")
    for number in range(VACUUM_EVERY - 2):
        add(lake, 10 * number, 10)
    compact(lake)
    _let_time_pass(lake)
    fill(ottla_target, topic, 100)
    assert len(_on_disk(lake)) > len(lake.state().files)
    ingest(records(pipeline_spark, ottla_target, topic), lake, brokers(ottla_target))
    assert lake.state().version == VACUUM_EVERY
    assert _on_disk(lake) == lake.state().files.keys()
    assert reference.lake_rows(lake.directory, topic) == reference.records_of(ottla_target.bootstrap, topic)


def test_a_batch_that_takes_longer_than_a_vacuum_waits_is_written_again(
    pipeline_spark: Any, ottla_target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = ottla_target.topic(1)
    lake = Lake(tmp_path / "lake")
    fill(ottla_target, topic, 100)
    published = Lake.publish

    def publish_late(self: Lake, commit: Commit) -> Any:
        if commit.added and not lake.state().version:
            _let_time_pass(lake)
            assert len(lake.vacuum()) == len(commit.added)
        return published(self, commit)

    monkeypatch.setattr(Lake, "publish", publish_late)
    ingest(records(pipeline_spark, ottla_target, topic), lake, brokers(ottla_target))
    assert reference.lake_rows(lake.directory, topic) == reference.records_of(ottla_target.bootstrap, topic)


def test_what_a_killed_writer_has_left_is_deleted_after_a_day(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    add(lake, 0, 10)
    (left,) = _commit_of(lake, 10, 10).added
    assert lake.vacuum(older_than_seconds=0.0) == []
    _let_time_pass(lake)
    assert lake.vacuum() == [left.path]
    assert _on_disk(lake) == lake.state().files.keys()
    assert offsets(lake) == list(range(10))
    # Once it is forgotten, nothing is left to say.
    lake.vacuum()
    version = lake.state().version
    assert lake.vacuum() == []
    assert lake.state().version == version


def test_what_was_given_up_is_never_published_also_where_it_is_not_deleted_yet(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    commit = _commit_of(lake, 0, 10)
    lake.publish(Commit(discarded=tuple(file.path for file in commit.added)))
    with pytest.raises(GivenUp, match="write its records again"):
        lake.publish(commit)
    assert not lake.state().files
    lake.publish(_commit_of(lake, 0, 10))
    _let_time_pass(lake)
    assert lake.vacuum() == [file.path for file in commit.added]
    assert offsets(lake) == list(range(10))


def test_what_is_published_while_a_vacuum_looks_stays(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    commit = _commit_of(lake, 0, 10)
    _let_time_pass(lake)

    class Slow(Lake):
        def publish(self, late: Commit) -> Any:
            lake.publish(commit)
            return super().publish(late)

    assert Slow(tmp_path).vacuum() == []
    assert offsets(lake) == list(range(10))


def test_files_that_were_put_together_have_large_groups(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for number in range(10):
        add(lake, 10 * number, 10)
    compact(lake)
    (file,) = lake.state().files
    assert pq.ParquetFile(tmp_path / file).num_row_groups == 1
