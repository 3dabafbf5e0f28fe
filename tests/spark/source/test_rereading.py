"""Rows that are kept for tasks that read the same again: when they are given, and what is never kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest
from tests.spark.conftest import Target
from tests.spark.source.reading import numbered, write

from ottla.spark.source import rereading
from ottla.spark.source.batch import BatchReader
from ottla.spark.source.columns import connector_schema, projection_of
from ottla.spark.source.failures import DataLoss
from ottla.spark.source.options import read_options
from ottla.spark.source.planning import OffsetRange
from ottla.spark.source.rereading import kept
from ottla.spark.source.tasks import TaskReader, _Range

MOST_BYTES = 1000


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rereading, "_readings", [])


class Source:
    """Batches of these sizes in bytes, and how often they were read."""

    def __init__(self, *sizes: int) -> None:
        self._sizes = sizes
        self.reads = 0

    def __call__(self) -> Iterator[pa.RecordBatch]:
        self.reads += 1
        for size in self._sizes:
            yield pa.record_batch({"value": pa.array([1] * size, pa.int8())})

    def read(self, name: str, most_bytes: int = MOST_BYTES) -> list[int]:
        """The sizes of the batches that a task is given which reads what has this name."""
        return [batch.num_rows for batch in kept(name, self, most_bytes)]


def test_what_was_read_to_its_end_is_read_once() -> None:
    source = Source(600, 400)
    assert source.read("a") == source.read("a") == source.read("a") == [600, 400]
    assert source.reads == 1
    assert source.read("b") == [600, 400]
    assert source.reads == 2


def test_a_reading_without_rows_is_kept_too() -> None:
    source = Source()
    assert source.read("a") == source.read("a") == []
    assert source.reads == 1


@pytest.mark.parametrize("sizes", [(1001,), (600, 401), (1001, 1), (1, 1000)])
def test_what_is_too_large_is_given_whole_and_read_each_time(sizes: tuple[int, ...]) -> None:
    source = Source(*sizes)
    assert source.read("a") == source.read("a") == list(sizes)
    assert source.reads == 2


def test_a_task_that_ended_early_leaves_nothing_behind() -> None:
    """As one of a query with a limit does."""
    source = Source(10, 20)
    given = kept("a", source, MOST_BYTES)
    assert isinstance(given, Iterator)
    assert next(given).num_rows == 10
    del given
    assert source.read("a") == [10, 20]
    assert source.reads == 2


def test_a_task_that_failed_leaves_nothing_behind() -> None:
    def fail() -> Iterator[pa.RecordBatch]:
        yield from Source(10)()
        raise DataLoss("gone")

    with pytest.raises(DataLoss):
        list(kept("a", fail, MOST_BYTES))
    source = Source(10, 20)
    assert source.read("a") == [10, 20]


def test_few_readings_are_kept_those_that_were_used_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rereading, "_MOST_READINGS", 2)
    a, b, c = Source(1), Source(2), Source(3)
    for source, name in ((a, "a"), (b, "b"), (a, "a"), (c, "c"), (a, "a"), (b, "b")):
        source.read(name)
    assert (a.reads, b.reads, c.reads) == (1, 2, 1)


def test_few_bytes_are_kept_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rereading, "_MOST_BYTES", 1500)
    a, b = Source(800), Source(700)
    for source, name in ((a, "a"), (b, "b"), (a, "a"), (b, "b")):
        source.read(name)
    assert (a.reads, b.reads) == (1, 1)
    Source(701).read("c")
    assert b.read("b") == [700]
    assert a.read("a") == [800]
    assert (a.reads, b.reads) == (2, 1)


def reader_of(target: Target, topic: str, run_id: str | None) -> TaskReader:
    options = {"kafka.bootstrap.servers": target.bootstrap, "subscribe": topic, "rereadBytes": "100000"}
    projection = projection_of(connector_schema(has_headers=False), None)
    return TaskReader(read_options(options, is_stream=True), projection, run_id=run_id)


def values(reader: TaskReader, wanted: OffsetRange) -> list[bytes]:
    return [value for batch in reader.read(wanted) for value in batch.column("value").to_pylist()]


def test_tasks_of_one_run_fetch_a_range_once(ottla_target: Target) -> None:
    """What was deleted since cannot be fetched again."""
    topic = ottla_target.topic(1)
    write(ottla_target, topic, numbered(10))
    wanted = OffsetRange(topic, 0, 0, 10)
    reader, other, batch = (reader_of(ottla_target, topic, run_id) for run_id in ("one", "other", None))
    assert values(reader, wanted) == values(batch, wanted) == numbered(10)
    ottla_target.admin.delete_records({(topic, 0): 10}).raise_for_errors()
    assert values(reader, wanted) == values(replace(reader), wanted) == numbered(10)
    for stranger in (other, batch):
        with pytest.raises(DataLoss):
            values(stranger, wanted)
    with pytest.raises(DataLoss):
        values(reader, OffsetRange(topic, 0, 0, 9))


def test_another_run_reads_a_topic_that_was_made_anew(ottla_target: Target) -> None:
    topic = ottla_target.topic(1)
    write(ottla_target, topic, numbered(5))
    wanted = OffsetRange(topic, 0, 0, 5)
    assert values(reader_of(ottla_target, topic, "one"), wanted) == numbered(5)
    ottla_target.admin.delete_topics([topic], wait=True).raise_for_errors()
    ottla_target.admin.create_topics([topic]).raise_for_errors()
    write(ottla_target, topic, numbered(5, 50))
    assert values(reader_of(ottla_target, topic, "two"), wanted) == numbered(5, 50)


def table_of(target: Target, topic: str) -> list[bytes]:
    """What a batch query reads that asks for all there is, with what this process keeps."""
    options = {"kafka.bootstrap.servers": target.bootstrap, "subscribe": topic, "rereadBytes": "100000"}
    reader = BatchReader(
        read_options(options, is_stream=False), projection_of(connector_schema(has_headers=False), None)
    )
    return [
        value
        for partition in reader.partitions()
        for batch in reader.read(partition)
        for value in batch.column("value").to_pylist()
    ]


def test_a_table_is_kept_until_its_topic_has_more(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[OffsetRange] = []
    read = _Range.tables

    def counted(self: _Range) -> Iterator[pa.Table]:
        fetched.append(self._wanted)
        return read(self)

    monkeypatch.setattr(_Range, "tables", counted)
    topic = target.topic(1)
    write(target, topic, numbered(5))
    assert table_of(target, topic) == table_of(target, topic) == numbered(5)
    assert len(fetched) == 1
    write(target, topic, numbered(2, 5))
    assert table_of(target, topic) == table_of(target, topic) == numbered(7)
    assert len(fetched) == 2


def test_records_that_came_after_the_plan_are_in_a_kept_table(ottla_target: Target) -> None:
    """A DataFrame is planned once, however often it is used."""
    topic = ottla_target.topic(1)
    write(ottla_target, topic, numbered(5))
    options = {"kafka.bootstrap.servers": ottla_target.bootstrap, "subscribe": topic, "rereadBytes": "100000"}
    reader = BatchReader(
        read_options(options, is_stream=False), projection_of(connector_schema(has_headers=False), None)
    )
    (planned,) = reader.partitions()
    for count in (5, 8):
        found = [value for batch in reader.read(planned) for value in batch.column("value").to_pylist()]
        assert found == numbered(count)
        write(ottla_target, topic, numbered(3, count))


def test_a_table_whose_topic_was_made_anew_is_read_anew(ottla_target: Target) -> None:
    topic = ottla_target.topic(1)
    write(ottla_target, topic, numbered(5))
    assert table_of(ottla_target, topic) == numbered(5)
    ottla_target.admin.delete_topics([topic], wait=True).raise_for_errors()
    ottla_target.admin.create_topics([topic]).raise_for_errors()
    write(ottla_target, topic, numbered(5, 50))
    assert table_of(ottla_target, topic) == numbered(5, 50)
