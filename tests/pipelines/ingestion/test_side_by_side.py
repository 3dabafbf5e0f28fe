"""A stream and a load into the same lake, and a load that cannot go on.

Offsets without a record are everywhere: ends of transactions, records that were aborted, deleted or compacted away.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.pipelines.ingestion import reference
from tests.pipelines.ingestion.filling import brokers, fill, load, records, transactions
from tests.spark.conftest import Target
from tests.unit.cli.command_line import CommandLine

from ottla import Consumer
from ottla.client.errors import Unfinished
from ottla.pipelines.ingestion import loading
from ottla.pipelines.ingestion.coverage import Range
from ottla.pipelines.ingestion.files import write_files
from ottla.pipelines.ingestion.lake import Lake
from ottla.pipelines.ingestion.loading import Deleted, Task, load_range, plan, run_tasks
from ottla.pipelines.ingestion.streaming import ingest

_CONFIG = {"isolation.level": "read_committed", "auto.offset.reset": "none"}


def _load(target: Target, topic: str, lake: Lake, *ranges: Range) -> list[Deleted]:
    """Some tasks of a load that was killed before it came to the others."""
    config = {**brokers(target), **_CONFIG}
    return [gone for one in ranges for gone in load_range(Task(topic, 0, one), config, lake.directory)]


def _stream(spark: Any, target: Target, topic: str, lake: Lake, *batches: Range) -> None:
    """All records of the topic, in batches of these offsets."""
    everything = records(spark, target, topic)
    for start, end in batches:
        ingest(everything.where(f"offset >= {start} AND offset < {end}"), lake, brokers(target))


def test_a_stream_finds_what_a_load_has_put_before_it(
    pipeline_spark: Any, ottla_target: Target, tmp_path: Path
) -> None:
    topic = ottla_target.topic(1)
    lake = Lake(tmp_path / "lake")
    fill(ottla_target, topic, 300)
    _load(ottla_target, topic, lake, (100, 150), (200, 220))
    for _ in range(2):
        ingest(records(pipeline_spark, ottla_target, topic), lake, brokers(ottla_target))
        assert reference.has_all(ottla_target.bootstrap, topic, lake)
        ((start, _),) = lake.state().covered[topic, 0]
        assert start == 0


@pytest.mark.parametrize("fates", [(True,) * 8, (True, False) * 4], ids=["ends of transactions", "aborted records"])
def test_a_stream_goes_on_where_no_record_is_before_what_a_load_has(
    pipeline_spark: Any, ottla_target: Target, tmp_path: Path, fates: tuple[bool, ...]
) -> None:
    topic = ottla_target.topic(1)
    lake = Lake(tmp_path / "lake")
    transactions(ottla_target, topic, *fates, records=9)
    # What comes before each range ends with an offset that has no record.
    _load(ottla_target, topic, lake, (20, 30), (40, 60))
    _stream(pipeline_spark, ottla_target, topic, lake, (0, 25), (25, 50), (50, 100))
    assert reference.has_all(ottla_target.bootstrap, topic, lake)


def test_a_stream_goes_on_where_records_before_what_a_load_has_were_deleted(
    pipeline_spark: Any, ottla_target: Target, tmp_path: Path
) -> None:
    topic = ottla_target.topic(1)
    lake = Lake(tmp_path / "lake")
    fill(ottla_target, topic, 300)
    everything = reference.records_of(ottla_target.bootstrap, topic)
    _load(ottla_target, topic, lake, (100, 200))
    ottla_target.admin.delete_records({(topic, 0): 100}).raise_for_errors()
    _stream(pipeline_spark, ottla_target, topic, lake, (100, 150), (150, 1000))
    expected = {record: count for record, count in everything.items() if record[1] >= 100}
    assert reference.lake_rows(lake.directory, topic) == expected


def test_a_load_that_a_stream_overtakes_does_the_rest(
    pipeline_spark: Any, ottla_target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = ottla_target.topic(1)
    lake = Lake(tmp_path / "lake")
    fill(ottla_target, topic, 300)

    def write_and_be_overtaken(*arguments: Any) -> Any:
        written = write_files(*arguments)
        if not lake.state().covered:
            _stream(pipeline_spark, ottla_target, topic, lake, (0, 120))
        return written

    monkeypatch.setattr(loading, "write_files", write_and_be_overtaken)
    _load(ottla_target, topic, lake, (0, 400))
    assert lake.state().cut((topic, 0)) == 400
    _stream(pipeline_spark, ottla_target, topic, lake, (0, 1000))
    assert reference.has_all(ottla_target.bootstrap, topic, lake)


def test_a_load_takes_what_is_left_of_a_topic_and_says_what_was_deleted(
    pipeline_spark: Any, ottla_target: Target, tmp_path: Path
) -> None:
    topic = ottla_target.topic(1)
    lake = Lake(tmp_path / "lake")
    fill(ottla_target, topic, 300)
    everything = reference.records_of(ottla_target.bootstrap, topic)
    tasks = list(plan(brokers(ottla_target), [topic], lake.state(), 100))
    # Between the plan and the reading.
    ottla_target.admin.delete_records({(topic, 0): 150}).raise_for_errors()
    gone = run_tasks(pipeline_spark, brokers(ottla_target), tasks, lake)
    assert gone == [Deleted(topic, 0, 0, 100), Deleted(topic, 0, 100, 150)]
    expected = {record: count for record, count in everything.items() if record[1] >= 150}
    assert reference.lake_rows(lake.directory, topic) == expected
    # Before the plan.
    other = Lake(tmp_path / "other")
    assert load(pipeline_spark, ottla_target, topic, other) == [Deleted(topic, 0, 0, 150)]
    assert reference.lake_rows(other.directory, topic) == expected
    told = CommandLine(ottla_target.bootstrap)("lake", "load", str(tmp_path / "third"), topic)
    assert f"offsets 0 to 150 of {topic}-0 were deleted" in told.err


def test_a_load_goes_on_where_records_are_deleted_while_it_reads(
    ottla_target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = ottla_target.topic(1)
    lake = Lake(tmp_path / "lake")
    transactions(ottla_target, topic, *(True,) * 30, records=9)
    everything = reference.records_of(ottla_target.bootstrap, topic)
    tables = Consumer.tables

    def delete_after_the_first(consumer: Consumer[bytes, bytes], **options: Any) -> Iterator[Any]:
        for table in tables(consumer, **options):
            yield table
            ottla_target.admin.delete_records({(topic, 0): 250}).raise_for_errors()

    monkeypatch.setattr(Consumer, "tables", delete_after_the_first)
    (whole,) = plan(brokers(ottla_target), [topic], lake.state())
    # A batch at a time, and few ahead of the reader.
    config = {**brokers(ottla_target), **_CONFIG, "fetch.max.bytes": 1, "prefetch.bytes": 1}
    (gone,) = load_range(whole, config, lake.directory)
    assert 0 < gone.start < gone.end == 250
    expected = {record: count for record, count in everything.items() if not gone.start <= record[1] < gone.end}
    assert reference.lake_rows(lake.directory, topic) == expected


def test_a_range_that_is_not_read_to_its_end_does_not_count(
    ottla_target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = ottla_target.topic(1)
    lake = Lake(tmp_path / "lake")
    fill(ottla_target, topic, 100)
    monkeypatch.setattr(loading, "_PATIENCE_SECONDS", 0.5)
    with pytest.raises(Unfinished):
        _load(ottla_target, topic, lake, (0, 5000))
    assert not lake.state().files
    assert not lake.state().covered
