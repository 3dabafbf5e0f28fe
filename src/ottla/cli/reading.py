"""Reading parts of topics: from the offsets of a plan up to those where it ends."""

import contextlib
import heapq
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ottla.cli.output import Output
from ottla.cli.positions import Bounds, Position, Span, earlier_spans, last_spans, span_of
from ottla.cli.reading_notes import Silence, tell_outside
from ottla.cli.reset import bounds_of
from ottla.client.types import TopicPartition

if TYPE_CHECKING:
    from ottla.client.admin import AsyncAdmin

RECORDS_AT_ONCE = 10_000
POLL_SECONDS = 0.2


class Reader(Protocol):
    """What reading needs of a consumer."""

    def assign(self, partitions: Iterable[Any]) -> None: ...
    def pause(self, partitions: Iterable[Any]) -> None: ...
    def resume(self, partitions: Iterable[Any]) -> None: ...
    async def poll(self, seconds: float, max_records: int | None, /) -> list[Any]: ...
    async def position(self, partition: Any) -> int: ...


async def planned_spans(
    admin: "AsyncAdmin",
    partitions: Sequence[TopicPartition],
    start: Position,
    stop: Position | None,
    isolation: str,
    output: Output,
) -> dict[TopicPartition, Span]:
    bounds = await bounds_of(admin, partitions, start, isolation)
    tell_outside(output, start, stop, bounds)
    stop_bounds = bounds if stop is None else await bounds_of(admin, partitions, stop, isolation)
    return {key: span_of(start, stop, bounds[key], stop_bounds[key]) for key in partitions}


async def read_spans(
    consumer: Reader,
    spans: Mapping[TopicPartition, Span],
    idle_seconds: float | None = None,
    silence: Silence | None = None,
) -> AsyncIterator[list[Any]]:
    """The records of these spans, in lists as they come; ends when all spans are read, or nothing came for
    `idle_seconds`. Offsets without records (transactions, compaction) are waited for no longer than until the consumer
    has passed them."""
    open_spans = {key: span for key, span in spans.items() if span.stop is None or span.start < span.stop}
    if not open_spans:
        return
    _begin(consumer, open_spans)
    waited = 0.0
    while open_spans:
        records = await consumer.poll(POLL_SECONDS, RECORDS_AT_ONCE)
        wanted = [record for record in records if _is_inside(open_spans, record)]
        if wanted:
            yield wanted
        waited = 0.0 if records else waited + POLL_SECONDS
        if not records and idle_seconds is not None and waited >= idle_seconds:
            return
        if not records and silence is not None:
            await silence.explain(consumer)
        touched = {TopicPartition(record.topic, record.partition) for record in records} or set(open_spans)
        await _close_finished(consumer, open_spans, touched)


def _begin(consumer: Reader, spans: Mapping[TopicPartition, Span]) -> None:
    """A partition that was read before, and paused at the end of that, is read again."""
    consumer.assign([(key.topic, key.partition, span.start) for key, span in sorted(spans.items())])
    consumer.resume(sorted(spans))


async def _close_finished(
    consumer: Reader, open_spans: dict[TopicPartition, Span], touched: Iterable[TopicPartition]
) -> None:
    for key in sorted(set(touched) & set(open_spans)):
        stop = open_spans[key].stop
        if stop is not None and await consumer.position(key) >= stop:
            del open_spans[key]
            consumer.pause([key])


async def read_tables(consumer: Any, spans: Mapping[TopicPartition, Span]) -> AsyncIterator[Any]:
    """The same as Arrow tables, for spans that end. No record becomes a Python object on the way."""
    open_spans = {key: span for key, span in spans.items() if span.size}
    if not open_spans:
        return
    _begin(consumer, open_spans)
    while open_spans:
        async with contextlib.aclosing(consumer.tables(timeout=POLL_SECONDS)) as tables:
            async for table in tables:
                inside = _rows_inside(table, spans)
                if inside.num_rows:
                    yield inside
                await _close_finished(consumer, open_spans, list(open_spans))
                if not open_spans:
                    return
        await _close_finished(consumer, open_spans, list(open_spans))


def _rows_inside(table: Any, spans: Mapping[TopicPartition, Span]) -> Any:
    import pyarrow.compute as compute

    stops = {key.partition: span.stop for key, span in spans.items() if span.stop is not None}
    if compute.max(table["offset"]).as_py() < min(stops.values()):
        return table
    parts = []
    for number, stop in sorted(stops.items()):
        is_inside = compute.and_(compute.equal(table["partition"], number), compute.less(table["offset"], stop))
        parts.append(table.filter(is_inside))
    import pyarrow

    return pyarrow.concat_tables(parts)


def _is_inside(open_spans: Mapping[TopicPartition, Span], record: Any) -> bool:
    span = open_spans.get(TopicPartition(record.topic, record.partition))
    return span is not None and (span.stop is None or record.offset < span.stop)


async def read_last(consumer: Reader, bounds: Mapping[TopicPartition, Bounds], count: int) -> list[Any]:
    """The last records of all partitions together. Within a partition they keep their order; between partitions they
    are ordered by their timestamps. Any partition may have the newest, so that each is looked at until it has given
    `count` records, or all that it has: how many others have says nothing."""
    found: dict[TopicPartition, deque[Any]] = {}
    spans = last_spans(bounds, count)
    while spans:
        found |= {key: deque(maxlen=count) for key in spans}
        async for records in read_spans(consumer, spans):
            for record in records:
                found[TopicPartition(record.topic, record.partition)].append(record)
        too_few = {key: span for key, span in spans.items() if len(found[key]) < count}
        spans = earlier_spans({key: span for key, span in too_few.items() if span.start > bounds[key].first}, bounds)
    merged = heapq.merge(*(found[key] for key in sorted(found)), key=lambda record: record.timestamp)
    return list(deque(merged, maxlen=count))
