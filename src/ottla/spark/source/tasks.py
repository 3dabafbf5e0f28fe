"""Reading the ranges of one task in a worker.

What must stay true: a range ends when the consumer's position has reached its end, not when rows have. Behind the last
row there may be offsets without one (control records, aborted transactions, what compaction took), and a range may
have no row at all.
"""

import logging
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa

from ottla import Consumer
from ottla.client.errors import BrokerUnavailable, CorruptBatch, NoOffset, Unfinished, UnknownTopic
from ottla.spark import clients
from ottla.spark.memory import keep_freed_memory
from ottla.spark.source import rereading
from ottla.spark.source.columns import Projection, spark_headers
from ottla.spark.source.failures import DataLoss, ReadFailed
from ottla.spark.source.filters import RowFilter
from ottla.spark.source.json_values import JsonFields
from ottla.spark.source.options import SourceOptions
from ottla.spark.source.planning import OffsetRange, OffsetRanges, data_loss
from ottla.spark.telling import plainly

_LOG = logging.getLogger(__name__)
# When nothing came for so long, the brokers are asked whether the partition is still there.
_LOOK_SECONDS: Final = 2.0
_MOST_RESTARTS: Final = 20
_CLOSE_SECONDS: Final = 0.5
# Every record of a range is there when it is asked for: no fetch has to wait for one.
_FIXED: Final[Mapping[str, object]] = {
    "fetch.min.bytes": 1,
    "fetch.max.wait.ms": 20,
    "auto.offset.reset": "none",
    "enable.auto.commit": False,
    "allow.auto.create.topics": False,
}


@dataclass(frozen=True)
class TaskReader:
    """What a task needs to know; it is sent to every one of them. `run_id` names the run of a streaming query: its
    tasks share the rows that are kept. Those of batch queries are kept for the same offsets of the same topic."""

    options: SourceOptions
    projection: Projection
    row_filter: RowFilter = field(default_factory=RowFilter)
    run_id: str | None = None

    def read(self, wanted: OffsetRange | OffsetRanges) -> Iterator[pa.RecordBatch]:
        if not self.options.reread_bytes:
            return self._read(wanted)
        if self.run_id is None:
            if not all(one.topic_id for one in wanted.ranges):
                return self._read(wanted)
            wanted = self._as_it_is_now(wanted)
        return rereading.kept((self, wanted), lambda: self._read(wanted), self.options.reread_bytes)

    def _as_it_is_now(self, wanted: OffsetRange | OffsetRanges) -> OffsetRange | OffsetRanges:
        """With the ends that logs have now, where all that is there is asked for."""
        if not any(one.is_to_latest for one in wanted.ranges):
            return wanted
        with plainly(), _consumer(self.options.settings) as consumer:
            found = tuple(_to_its_end(consumer, one) if one.is_to_latest else one for one in wanted.ranges)
        return found[0] if len(found) == 1 else OffsetRanges(found)

    def _read(self, wanted: OffsetRange | OffsetRanges) -> Iterator[pa.RecordBatch]:
        ranges = [one for one in wanted.ranges if one.size > 0 or one.is_to_latest]
        if not ranges:
            return
        keep_freed_memory()
        shaper = _Shaper(self.projection, self.row_filter)
        with plainly(), _consumer(self.options.settings) as consumer:
            for table in _tables(consumer, ranges, self.options, self.projection.record_columns):
                for batch in table.to_batches():
                    shaped = shaper.shape(batch)
                    if shaped.num_rows:
                        yield shaped


@contextmanager
def _consumer(settings: Mapping[str, object]) -> Generator[Consumer[Any, Any], None, None]:
    """One that this process keeps. It is assigned nothing between two tasks, so that it fetches nothing then."""

    def make() -> Consumer[Any, Any]:
        return Consumer(config={**settings, **_FIXED})

    with clients.borrowed(clients.name_of("consumer", settings), make, timeout=_CLOSE_SECONDS) as consumer:
        yield consumer
        consumer.assign([])


def _tables(
    consumer: Consumer[Any, Any], ranges: list[OffsetRange], options: SourceOptions, columns: list[str]
) -> Iterator[pa.Table]:
    """Several ranges in the same fetches. Where one of them is in trouble, each by itself, from where it is then."""
    if len(ranges) > 1:
        consumer.assign([(*one.topic_partition, one.start) for one in ranges])
        try:
            yield from consumer.tables(
                until={one.topic_partition: one.end for one in ranges},
                timeout=_look_seconds(options),
                columns=columns,
                timestamp_unit="us",
            )
        except (Unfinished, NoOffset, UnknownTopic, CorruptBatch):
            reached = {one: consumer.position(one.topic_partition) for one in ranges}
            ranges = [one.cut(min(max(reached[one], one.start), one.end), one.end) for one in ranges]
        else:
            return
    for one in ranges:
        yield from _Range(consumer, one, options, columns).tables()


def _to_its_end(consumer: Consumer[Any, Any], wanted: OffsetRange) -> OffsetRange:
    """All that the partition has now; no less than there was when the range was planned."""
    partition = wanted.topic_partition
    try:
        end = max(consumer.end_offsets([partition])[partition], wanted.end)
    except UnknownTopic:
        end = wanted.end
    return replace(wanted, end=end, is_to_latest=False)


def _look_seconds(options: SourceOptions) -> float:
    return min(_LOOK_SECONDS, options.poll_timeout_ms / 1000)


class _Range:
    """One range and a consumer that reads it."""

    def __init__(
        self, consumer: Consumer[Any, Any], wanted: OffsetRange, options: SourceOptions, columns: list[str]
    ) -> None:
        self._consumer = consumer
        self._wanted = wanted
        self._partition = wanted.topic_partition
        self._options = options
        self._columns = columns

    def tables(self) -> Iterator[pa.Table]:
        """Everything that is there. A start that is not in the log is looked for again: a log may lose records
        several times while it is read, but not without an end."""
        if self._wanted.is_to_latest:
            self._wanted = _to_its_end(self._consumer, self._wanted)
        start = self._wanted.start
        if start >= self._wanted.end:
            return
        for _ in range(_MOST_RESTARTS):
            self._consumer.assign([(*self._partition, start)])
            try:
                yield from self._tables_from(start)
            except NoOffset:
                start = self._start_behind_loss(self._consumer.position(self._partition))
            except UnknownTopic as error:
                self._lose(f"{self._partition} is gone: {error}")
                return
            except CorruptBatch as error:
                raise ReadFailed(
                    f"{self._partition} is damaged at offset {error.offset}: {error.why}. Another replica may have it "
                    f"whole; reading can go on at offset {error.next_offset}, with startingOffsets or a new checkpoint"
                ) from None
            else:
                return
            if start >= self._wanted.end:
                return
        raise ReadFailed(f"{self._partition} lost records {_MOST_RESTARTS} times while it was read: try again")

    def _tables_from(self, position: int) -> Iterator[pa.Table]:
        silent_ms = 0.0
        look_seconds = _look_seconds(self._options)
        while True:
            try:
                yield from self._consumer.tables(
                    until={self._partition: self._wanted.end},
                    timeout=look_seconds,
                    columns=self._columns,
                    timestamp_unit="us",
                )
            except Unfinished:
                reached = self._consumer.position(self._partition)
                silent_ms = silent_ms + look_seconds * 1000 if reached == position else 0.0
                position = reached
                if silent_ms:
                    self._look(position, silent_ms)
            else:
                return

    def _look(self, position: int, silent_ms: float) -> None:
        """Nothing comes: raise NoOffset or UnknownTopic where that is why, and ReadFailed when it is too long."""
        try:
            first = self._consumer.beginning_offsets([self._partition], timeout=_LOOK_SECONDS)[self._partition]
            last = self._consumer.end_offsets([self._partition], timeout=_LOOK_SECONDS)[self._partition]
        except BrokerUnavailable:
            first, last = position, self._wanted.end
        if not first <= position < last:
            raise NoOffset(f"{self._partition} has offsets {first} to {last}")
        if silent_ms >= self._options.poll_timeout_ms:
            raise ReadFailed(
                f"no record of {self._partition} came at offset {position} within {self._options.poll_timeout_ms} ms: "
                f"see that the brokers of {self._options.settings['bootstrap.servers']} run, or raise "
                "kafkaConsumer.pollTimeoutMs"
            )

    def _start_behind_loss(self, position: int) -> int:
        first = self._consumer.beginning_offsets([self._partition])[self._partition]
        last = self._consumer.end_offsets([self._partition])[self._partition]
        if position < first:
            until = min(first, self._wanted.end)
            if not (self._wanted.is_from_earliest and position == self._wanted.start):
                self._lose(f"offsets {position} to {until} of {self._partition} are not there any more")
            return first
        if position >= last:
            self._lose(
                f"offsets {position} to {self._wanted.end} of {self._partition} are not there: it ends at {last}"
            )
            return self._wanted.end
        return position

    def _lose(self, what: str) -> None:
        loss: DataLoss = data_loss(what)
        if self._options.is_failing_on_loss:
            raise loss
        _LOG.warning("%s", loss)


class _Shaper:
    """From columns of records to the batch that Spark expects."""

    def __init__(self, projection: Projection, row_filter: RowFilter) -> None:
        self._projection = projection
        self._row_filter = row_filter
        self._schema = projection.arrow_schema()
        self._json = JsonFields(projection.value_fields) if projection.value_fields.fields else None

    def shape(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._row_filter:
            batch = self._row_filter.apply(batch)
        fields = {} if self._json is None else self._json.columns(batch.column("value"))
        arrays = []
        for wanted in self._schema:
            source = self._projection.sources[wanted.name]
            array = fields[wanted.name] if source is None else batch.column(source)
            arrays.append(spark_headers(array, wanted.type) if source == "headers" else array)
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)
