"""How far queries are: rows per second, lag in records and in time, batch time, and what they have left out.

The process that runs a pipeline publishes this to a compacted topic, a record for each query, so that whoever can reach
the brokers can look (`ottla pipeline status`).

| state      | the query                                                                        |
|------------|----------------------------------------------------------------------------------|
| `starting` | has no micro-batch behind it                                                     |
| `running`  | has                                                                              |
| `ended`    | was stopped, or has worked off what was there                                    |
| `failed`   | ended by an error                                                                |
| `silent`   | was starting or running when it was last heard of, `SILENT_AFTER_MS` ago or more |

The last is never published: whoever reads finds it. A run that was killed cannot say so.
"""

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ottla.client.sync.admin import Admin
from ottla.client.sync.producer import Producer
from ottla.pipelines.frame.delays import Delay, Offsets, SendTimes, behind_ms, taken_by, untaken
from ottla.pipelines.frame.pipeline import COMPACTED, DEAD_LETTERS, JUDGED, LATE_EVENTS, Topic
from ottla.pipelines.frame.results import read_tables

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

STARTING, RUNNING, ENDED, FAILED, SILENT = "starting", "running", "ended", "failed", "silent"
# A run reports about every second; one whose machine is busy, or whose brokers are, less often.
SILENT_AFTER_MS = 15_000
PROGRESS = Topic("ottla.pipelines", partitions=1, configs=COMPACTED)


@dataclass(frozen=True)
class Progress:
    """One query, as it was at `at_ms`. `lag` is how many records its sources have that it has not taken yet,
    `behind_ms` how old the oldest of them is, and `delay_ms` how long records waited for their answers (`delays`).

    What was left out is counted since the query was started: `dropped` are rows that Spark found behind its watermark,
    `dead_letters` and `late` the records that it has judged so and written to these topics."""

    pipeline: str
    query: str
    state: str
    batch: int | None = None
    rows: int = 0
    rows_per_second: float = 0.0
    batch_ms: int = 0
    lag: int | None = None
    state_bytes: int = 0
    dropped: int = 0
    dead_letters: int = 0
    late: int = 0
    at_ms: int = 0
    behind_ms: int | None = None
    delay_ms: int | None = None

    @property
    def key(self) -> str:
        return f"{self.pipeline}.{self.query}"

    def row(self) -> dict[str, object]:
        return asdict(self)

    def as_of(self, now_ms: int) -> "Progress":
        """`silent` where it should have been heard of since."""
        is_silent = self.state in (STARTING, RUNNING) and now_ms - self.at_ms >= SILENT_AFTER_MS
        return replace(self, state=SILENT) if is_silent else self


@dataclass
class LeftOut:
    """What one query has left out since it was started, from what Spark tells of each micro-batch."""

    batch: int = -1
    dropped: int = 0
    dead_letters: int = 0
    late: int = 0

    def add(self, query: "StreamingQuery", last: "StreamingQueryProgress") -> None:
        """Up to this micro-batch. Those between it and the one seen before are asked for where there are any."""
        if last.batchId == self.batch:
            return
        told = [last] if last.batchId == self.batch + 1 else query.recentProgress
        for one in told:
            if one.batchId > self.batch:
                self.batch = one.batchId
                self.dropped += sum(operator.numRowsDroppedByWatermark for operator in one.stateOperators)
                counts = one.observedMetrics.get(JUDGED)
                if counts is not None:
                    self.dead_letters += counts[DEAD_LETTERS]
                    self.late += counts[LATE_EVENTS]


@dataclass
class _Run:
    """What is kept of a query from one report to the next."""

    left_out: LeftOut = field(default_factory=LeftOut)
    delay: Delay = field(default_factory=Delay)


@dataclass(frozen=True)
class _Lag:
    """How much a query has not taken, and how old that is; None where nobody knows yet."""

    records: int | None = None
    behind_ms: int | None = None
    delay_ms: int | None = None


def _progress_of(
    query: "StreamingQuery",
    last: "StreamingQueryProgress | None",
    lag: _Lag,
    left_out: LeftOut,
    now_ms: int,
    *,
    is_stopped: bool,
) -> Progress:
    """Of a query that was started as `<pipeline>.<query>`; `last` is what Spark tells of its last micro-batch."""
    pipeline, _, name = (query.name or "").partition(".")
    if query.isActive:
        state = STARTING if last is None else RUNNING
    else:
        # One that is stopped within a micro-batch has an exception, too: that of the batch.
        state = ENDED if is_stopped or query.exception() is None else FAILED
    if last is None:
        return Progress(pipeline, name, state, at_ms=now_ms)
    return Progress(
        pipeline,
        name,
        state,
        batch=last.batchId,
        rows=last.numInputRows,
        rows_per_second=round(last.processedRowsPerSecond or 0.0, 1),
        # Without what the source waits for its turn (`Query.phase`).
        batch_ms=last.batchDuration - last.durationMs.get("latestOffset", 0),
        lag=lag.records,
        state_bytes=sum(one.memoryUsedBytes for one in last.stateOperators),
        dropped=left_out.dropped,
        dead_letters=left_out.dead_letters,
        late=left_out.late,
        at_ms=now_ms,
        behind_ms=lag.behind_ms,
        delay_ms=lag.delay_ms,
    )


class Reporter:
    """Measures queries, and publishes what it finds."""

    def __init__(self, brokers: Mapping[str, object]) -> None:
        self._runs: defaultdict[str, _Run] = defaultdict(_Run)
        self._admin = Admin(config=brokers)
        self._times = SendTimes(brokers)
        self._producer = Producer[str, dict[str, Any]](config=brokers, key_serializer="str", value_serializer="json")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._producer.__exit__(kind, error, trace)
        finally:
            self._times.close()
            self._admin.close()

    def report(self, queries: "Iterable[StreamingQuery]", stopped: Collection[str] = ()) -> list[Progress]:
        """Few questions, to Spark and to the brokers: it is done every second, and for many queries. `stopped` are the
        `runId`s of those that ran until they were stopped."""
        told = [(query, self._runs[str(query.runId)], query.lastProgress) for query in queries]
        taken = [None if last is None else taken_by(last) for _, _, last in told]
        ends = self._ends({place for offsets in taken if offsets for place in offsets})
        oldest = [untaken(offsets or {}, ends) for offsets in taken]
        firsts = [run.delay.see(last) for _, run, last in told if last is not None]
        times = self._times.at(set().union(*oldest, *firsts))
        now_ms = _now_ms()
        found = []
        for (query, run, last), offsets, spots in zip(told, taken, oldest, strict=True):
            lag = _Lag()
            if last is not None and offsets is not None:
                run.left_out.add(query, last)
                lag = _Lag(_behind(offsets, ends), behind_ms(spots, times, now_ms), run.delay.measured(times))
            is_stopped = str(query.runId) in stopped
            found.append(_progress_of(query, last, lag, run.left_out, now_ms, is_stopped=is_stopped))
        for one in found:
            self._producer.send(PROGRESS.name, one.row(), key=one.key)
        return found

    def _ends(self, places: set[tuple[str, int]]) -> Offsets:
        if not places:
            return {}
        ends = self._admin.list_offsets(sorted(places), isolation_level="read_committed").succeeded
        return {(one.topic, one.partition): end.offset for one, end in ends.items() if end is not None}


def _behind(taken: Offsets, ends: Offsets) -> int:
    return sum(max(ends.get(place, offset) - offset, 0) for place, offset in taken.items())


def published(brokers: Mapping[str, object]) -> list[Progress]:
    """What was published last for each query, as it looks now; nothing where no pipeline ever ran."""
    with Admin(config=brokers) as admin:
        if PROGRESS.name not in {one.name for one in admin.list_topics()}:
            return []
    known = {field.name for field in fields(Progress)}
    rows = read_tables(brokers, [PROGRESS.name])[PROGRESS.name]
    told = [Progress(**{name: row[name] for name in row.keys() & known}) for _, row in sorted(rows.items())]
    now_ms = _now_ms()
    return [one.as_of(now_ms) for one in told]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
