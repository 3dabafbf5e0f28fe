"""How far queries are: rows per second, lag, batch time.

The process that runs a pipeline publishes this to a compacted topic, a record for each query, so that whoever can reach
the brokers can look (`ottla pipeline status`).
"""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ottla.client.sync.admin import Admin
from ottla.client.sync.producer import Producer
from ottla.pipelines.frame.pipeline import COMPACTED, Topic
from ottla.pipelines.frame.results import read_tables

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

Offsets = dict[tuple[str, int], int]

FAILED = "failed"
PROGRESS = Topic("ottla.pipelines", partitions=1, configs=COMPACTED)


@dataclass(frozen=True)
class Progress:
    """One query, as it was at `at_ms`. `lag` is how many records its sources have that it has not taken yet."""

    pipeline: str
    query: str
    state: str
    batch: int | None = None
    rows: int = 0
    rows_per_second: float = 0.0
    batch_ms: int = 0
    lag: int | None = None
    state_rows: int = 0
    state_bytes: int = 0
    at_ms: int = 0

    @property
    def key(self) -> str:
        return f"{self.pipeline}.{self.query}"

    def row(self) -> dict[str, object]:
        return asdict(self)


def progress_of(query: "StreamingQuery", last: "StreamingQueryProgress | None", lag: int | None) -> Progress:
    """Of a query that was started as `<pipeline>.<query>`; `last` is what Spark tells of its last micro-batch."""
    pipeline, _, name = (query.name or "").partition(".")
    if query.exception() is not None:
        state = FAILED
    elif not query.isActive:
        state = "ended"
    else:
        state = "starting" if last is None else "running"
    now_ms = time.time_ns() // 1_000_000
    if last is None:
        return Progress(pipeline, name, state, lag=lag, at_ms=now_ms)
    return Progress(
        pipeline,
        name,
        state,
        batch=last.batchId,
        rows=last.numInputRows,
        rows_per_second=round(last.processedRowsPerSecond or 0.0, 1),
        batch_ms=last.batchDuration,
        lag=lag,
        state_rows=sum(one.numRowsTotal for one in last.stateOperators),
        state_bytes=sum(one.memoryUsedBytes for one in last.stateOperators),
        at_ms=now_ms,
    )


class Reporter:
    """Measures queries, and publishes what it finds."""

    def __init__(self, brokers: Mapping[str, object]) -> None:
        self._admin = Admin(config=brokers)
        self._producer = Producer[str, dict[str, Any]](config=brokers, key_serializer="str", value_serializer="json")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._producer.close()
        self._admin.close()

    def report(self, queries: "Iterable[StreamingQuery]") -> list[Progress]:
        """Few questions, to Spark and to the brokers: it is done every second, and for many queries."""
        told = [(query, query.lastProgress) for query in queries]
        taken = [None if last is None else taken_by(last) for _, last in told]
        ends = self._ends({place for offsets in taken if offsets for place in offsets})
        found = [
            progress_of(query, last, None if offsets is None else _behind(offsets, ends))
            for (query, last), offsets in zip(told, taken, strict=True)
        ]
        for one in found:
            self._producer.send(PROGRESS.name, one.row(), key=one.key)
        return found

    def _ends(self, places: set[tuple[str, int]]) -> Offsets:
        if not places:
            return {}
        ends = self._admin.list_offsets(sorted(places), isolation_level="read_committed").succeeded
        return {(one.topic, one.partition): end.offset for one, end in ends.items() if end is not None}


def taken_by(last: "StreamingQueryProgress") -> Offsets:
    """Where a query's next micro-batch begins."""
    return {place: offset for source in last.sources for place, offset in offsets_of(source.endOffset).items()}


def _behind(taken: Offsets, ends: Offsets) -> int:
    return sum(max(ends.get(place, offset) - offset, 0) for place, offset in taken.items())


def offsets_of(text: str | None) -> Offsets:
    """By topic and partition, from the offsets of a source as both formats write them."""
    try:
        written = json.loads(text or "{}")
    except ValueError:
        return {}
    if not isinstance(written, Mapping):
        return {}
    return {
        (topic, int(partition)): offset
        for topic, partitions in written.items()
        if isinstance(partitions, Mapping)
        for partition, offset in partitions.items()
    }


def published(brokers: Mapping[str, object]) -> list[Progress]:
    """What was published last for each query; nothing where no pipeline ever ran."""
    with Admin(config=brokers) as admin:
        if PROGRESS.name not in {one.name for one in admin.list_topics()}:
            return []
    known = {field.name for field in fields(Progress)}
    rows = read_tables(brokers, [PROGRESS.name])[PROGRESS.name]
    return [Progress(**{name: row[name] for name in row.keys() & known}) for _, row in sorted(rows.items())]
