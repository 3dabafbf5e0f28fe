"""The reader of a streaming query. It lives in one process beside the driver, as long as a run of the query does.

That process is started for every run, and what it loads is waited for: it knows nothing of what tasks do.

How Spark uses it: `initialOffset` for a query without a checkpoint, `latestOffset` before each batch, `partitions` for
each batch, `commit` for one that is followed by another. On a restart the batch that was not committed is planned
again, from offsets in Spark's log; for the very first batch, from `initialOffset` of the new process.

So `initialOffset` has to give the same answer in another process, where "latest" is another offset by then. It cannot;
but the first batch is made to end where it begins in partitions that begin at the latest offset, so the end that Spark
has in its log is that very answer (`_begun_again`).
"""

import time
from collections.abc import Iterator
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from ottla.client.errors import OttlaError
from ottla.spark.source.admission import Patience, at_most
from ottla.spark.source.cluster import Lookup, Resolved
from ottla.spark.source.columns import Projection
from ottla.spark.source.limits import OffsetMap, Offsets, from_offset_map, to_offset_map
from ottla.spark.source.options import SourceOptions
from ottla.spark.source.planning import OffsetRange, OffsetRanges, split, stream_ranges, together
from ottla.spark.source.publishing import Publisher
from ottla.spark.telling import told_plainly


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Pickled right after it was made, for tasks, which only read: what it finds out stays in `_Course`."""

    def __init__(self, options: SourceOptions, projection: Projection) -> None:
        self._options = options
        self._projection = projection
        self._course: _Course | None = None
        # Offsets mean the same records only as long as the topic is the same: it may be made anew between two runs.
        self._run_id = uuid4().hex

    @property
    def _here(self) -> "_Course":
        if self._course is None:
            self._course = _Course(self._options)
        return self._course

    @told_plainly
    def initialOffset(self) -> OffsetMap:  # noqa: N802
        return to_offset_map(self._here.initial().offsets)

    @told_plainly
    def latestOffset(self, start: OffsetMap, limit: ReadLimit) -> OffsetMap:  # noqa: N802
        starts = from_offset_map(start)
        ends = self._here.ends_after(starts, is_limited=not isinstance(limit, ReadAllAvailable))
        return start if ends == starts else to_offset_map(ends)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Spark hands it back as it is, or ReadAllAvailable in its place; both limits are in the options."""
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.min_offsets_per_trigger is not None:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def reportLatestOffset(self) -> OffsetMap | None:  # noqa: N802
        latest = self._here.latest
        return to_offset_map(latest) if latest else None

    @told_plainly
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._here.end_with_what_is_there()

    @told_plainly
    def partitions(self, start: OffsetMap, end: OffsetMap) -> list[InputPartition]:
        return list(self._here.ranges(from_offset_map(start), from_offset_map(end)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from ottla.spark.source.tasks import TaskReader

        assert isinstance(partition, OffsetRange | OffsetRanges)
        return TaskReader(self._options, self._projection, run_id=self._run_id).read(partition)

    @told_plainly
    def commit(self, end: OffsetMap) -> None:
        self._here.done(from_offset_map(end))

    def stop(self) -> None:
        if self._course is not None:
            self._course.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_course": None}


class RefusedStream(StreamReader):
    """In the place of a reader that cannot be made. Spark loses what is raised while a stream's reader is made, but
    not what its methods raise."""

    def __init__(self, error: OttlaError) -> None:
        self._error = error

    @property
    def _here(self) -> "_Course":
        raise self._error

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable()

    def stop(self) -> None:
        """There is nothing to stop."""

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__


class _Course:
    """One run of a query, as the source sees it."""

    _NO_OFFSETS: Final[Offsets] = {}

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._lookup = Lookup(options)
        self._initial: Resolved | None = None
        self._is_planned = False
        self._planned: tuple[Offsets, Offsets, list[OffsetRange | OffsetRanges]] | None = None
        self._is_bounded = False
        self._target: Offsets | None = None
        self.latest: Offsets = {}
        least = options.min_offsets_per_trigger
        self._patience = None if least is None else Patience(least, options.max_trigger_delay_ms)
        group = options.offsets_group
        self._publisher = None if group is None else Publisher(group, is_asked_for=options.is_group_asked_for)

    def initial(self) -> Resolved:
        """The same in every call."""
        if self._initial is None:
            partitions = self._lookup.partitions()
            self._initial = self._lookup.resolve(self._options.starting, partitions, is_start=True)
        return self._initial

    def end_with_what_is_there(self) -> None:
        """Whatever comes later is not read in this run."""
        self._is_bounded = True

    def ends_after(self, starts: Offsets, *, is_limited: bool) -> Offsets:
        """Where a batch that begins at `starts` ends. That it is asked for says that all before is done."""
        self.done(starts)
        if self._options.trigger_phase is not None and not self._is_bounded:
            time.sleep(self._options.trigger_phase.wait_seconds(time.time()))
        self.latest = self._latest(starts)
        ends = dict(self.latest)
        if not self._is_planned and self._initial is not None and starts == self._initial.offsets:
            ends |= {one: starts[one] for one in self._initial.at_latest if one in ends}
        self._is_planned = True
        if not is_limited:
            return ends
        patience = None if self._is_bounded else self._patience
        if patience is not None and patience.waits(starts, ends, time.monotonic() * 1000):
            return starts
        if self._options.max_offsets_per_trigger is not None:
            new = self._lookup.earliest(ends.keys() - starts.keys())
            ends = at_most(self._options.max_offsets_per_trigger, {**new, **starts}, ends)
        return ends

    def _latest(self, starts: Offsets) -> Offsets:
        if self._target is None or not self._is_bounded:
            known = starts if not self._options.is_failing_on_loss else self._NO_OFFSETS
            self._target = self._lookup.latest(self._lookup.partitions(known=known), known=starts)
        return self._target

    def ranges(self, starts: Offsets, ends: Offsets) -> list[OffsetRange | OffsetRanges]:
        """A query that reads the stream in several places of its plan asks for the same ranges several times."""
        if self._planned is None or self._planned[:2] != (starts, ends):
            self._planned = (starts, ends, self._plan(starts, ends))
        return self._planned[2]

    def _plan(self, starts: Offsets, ends: Offsets) -> list[OffsetRange | OffsetRanges]:
        if not self._is_planned and self._initial is not None and starts == self._initial.offsets:
            starts = self._begun_again(self._initial, ends)
        self._is_planned = True
        found = stream_ranges(starts, ends, self._lookup, is_failing_on_loss=self._options.is_failing_on_loss)
        cut = split(found, self._options.min_partitions, self._options.max_records_per_partition)
        return together(cut, self._options.min_records_per_partition)

    def _begun_again(self, initial: Resolved, ends: Offsets) -> Offsets:
        """Where the first batch began, in a process that plans it again and was never asked where it ends.

        A partition that was found at its latest offset began where the batch ends. One that the batch does not have
        came later, and is new to the next batch.
        """
        return {
            one: ends[one] if one in initial.at_latest else offset
            for one, offset in initial.offsets.items()
            if one in ends
        }

    def done(self, offsets: Offsets) -> None:
        if self._publisher is not None and offsets:
            self._publisher.publish(self._lookup.admin, offsets, waits=self._is_bounded)

    def close(self) -> None:
        if self._publisher is not None:
            self._publisher.close()
        self._lookup.close()
