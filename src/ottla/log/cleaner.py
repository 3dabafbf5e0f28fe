"""The cleaner: compacts the logs of topics with `cleanup.policy=compact`, the dirtiest first, one at a time.

    offsets of a log   log start ...... first dirty ................ first uncleanable ...... end
                       (cleaned before)  (what would be cleaned)      (not to be touched yet)

Not to be touched are the active segment, what is not committed or belongs to an open transaction, and segments with a
record younger than `min.compaction.lag.ms`. A log is due when more than `min.cleanable.dirty.ratio` of its cleanable
bytes are dirty, or when a dirty record is older than `max.compaction.lag.ms`. First dirty offsets are kept in Kafka's
`cleaner-offset-checkpoint`; losing one means cleaning again, never a loss.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from ottla.log.cleaner_stats import CleanerStats
from ottla.log.compaction import Compaction, CompactionStopped
from ottla.log.config_keys import INT64_MAX
from ottla.log.directory import CLEANER_CHECKPOINT, LogDirectory, is_passing
from ottla.log.files import TopicPartition
from ottla.log.log import Log
from ottla.log.manager import LogManager
from ottla.log.segment import BrokenSegment, Segment
from ottla.log.stability import last_stable_offset
from ottla.log.unusable import is_of_one_log
from ottla.protocol.errors import KafkaError
from ottla.records import HEADER_BYTES, CorruptRecord, read_header
from ottla.runtime import Clock, Disk, Executor, IdSource, Workbench, WorkbenchLost

logger = logging.getLogger(__name__)

_LOGS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class CleanerSettings:
    """Broker-wide settings of the cleaner: Kafka's `log.cleaner.*`."""

    backoff_ms: int = 15_000
    dedupe_buffer_bytes: int = 134_217_728
    load_factor: float = 0.9


@dataclass(frozen=True, slots=True)
class DirtyLog:
    """A log that could be cleaned, and how much it needs it."""

    log: Log
    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    dirty_bytes: int
    overdue_ms: int

    @property
    def is_overdue(self) -> bool:
        """Whether a dirty record has waited longer than `max.compaction.lag.ms`."""
        return self.overdue_ms > 0

    @property
    def dirty_ratio(self) -> float:
        return self.dirty_bytes / max(self.clean_bytes + self.dirty_bytes, 1)

    @property
    def is_due(self) -> bool:
        if not self.dirty_bytes:
            return False
        return self.is_overdue or self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio


class LogCleaner:
    """See the module. A log with a batch that does not read is left alone from then on, and counted."""

    def __init__(
        self,
        logs: LogManager,
        *,
        disk: Disk,
        clock: Clock,
        executor: Executor,
        workbench: Workbench,
        ids: IdSource,
        settings: CleanerSettings | None = None,
    ) -> None:
        self._logs = logs
        self._disk = disk
        self._clock = clock
        self._executor = executor
        self._workbench = workbench
        self._ids = ids
        self.settings = settings or CleanerSettings()
        # By log, not only by name: a topic that was deleted and made again begins anew.
        self._first_dirty: dict[TopicPartition, tuple[Log, int]] = {}
        self._uncleanable: dict[TopicPartition, Log] = {}
        self._cleaning: asyncio.Task[bool] | None = None
        self.stats = CleanerStats()
        logs.moves.on_moved = self._log_moved

    def uncleanable(self, directory: LogDirectory) -> tuple[int, int]:
        """How many logs of a directory cannot be cleaned because of what is in them, and how many bytes that leaves."""
        logs = [
            log
            for name, log in self._uncleanable.items()
            if log.directory is directory and self._logs.get(*name) is log
        ]
        return len(logs), sum(sum(segment.size_bytes for segment in self._dirty_segments(log)[0]) for log in logs)

    # Running.

    async def run(self) -> None:
        """Clean whatever is due, then wait for a while, until cancelled."""
        try:
            await self.read_checkpoints()
            while True:
                if not await self.clean_dirtiest():
                    await self._workbench.clear()
                    await asyncio.sleep(self.settings.backoff_ms / 1000)
        except Exception:
            self.stats.is_dead = True
            logger.exception("the cleaner ended: nothing is compacted until the broker is restarted")

    async def read_checkpoints(self) -> None:
        """Where earlier runs of this broker, or Kafka, have got to."""
        for directory in self._logs.directories:
            if directory.failure is not None:
                continue
            try:
                offsets = await self._executor.run(directory.read_checkpoint, CLEANER_CHECKPOINT)
            except OSError as error:
                directory.fail(error)
                continue
            for log in self._logs.all_logs():
                if log.directory is directory and log.topic_partition in offsets:
                    self._first_dirty[log.topic_partition] = (log, offsets[log.topic_partition])

    async def clean_dirtiest(self) -> bool:
        """Compact the log that needs it most; False when none does, or when it did not work out."""
        found = await self._dirty_logs()
        self.stats.last_look = self._clock.monotonic()
        self.stats.dirtiest_ratio = max((dirty.dirty_ratio for dirty in found), default=0.0)
        due = [dirty for dirty in found if dirty.is_due]
        if not due:
            return False
        dirtiest = max(due, key=lambda dirty: dirty.dirty_ratio)
        # Not to be cancelled halfway: a worker may be renaming files. Closing the log ends it soon.
        self._cleaning = asyncio.get_running_loop().create_task(self._clean(dirtiest))
        return await asyncio.shield(self._cleaning)

    # Choosing.

    async def _dirty_logs(self) -> list[DirtyLog]:
        dirty: list[DirtyLog] = []
        for number, log in enumerate(self._logs.all_logs(), 1):
            if self._may_clean(log):
                dirty.append(await self._measure(log))
            if not number % _LOGS_AT_ONCE:
                await asyncio.sleep(0)
        return dirty

    def _may_clean(self, log: Log) -> bool:
        return (
            log.config.compact
            and not log.is_closed
            and log.directory.failure is None
            and not self._logs.moves.is_moving(log)
            and self._uncleanable.get(log.topic_partition) is not log
        )

    async def _measure(self, log: Log) -> DirtyLog:
        dirty, first_dirty, first_uncleanable = self._dirty_segments(log)
        return DirtyLog(
            log,
            first_dirty,
            first_uncleanable,
            clean_bytes=sum(segment.size_bytes for segment in log.segments if segment.base_offset < first_dirty),
            dirty_bytes=sum(segment.size_bytes for segment in dirty),
            overdue_ms=await self._overdue_ms(log, dirty),
        )

    def _dirty_segments(self, log: Log) -> tuple[list[Segment], int, int]:
        """What would be cleaned, with the offsets where it begins and ends."""
        segments = log.segments
        first_dirty = self._first_dirty_offset(log)
        first_uncleanable = self._first_uncleanable_offset(log, segments, first_dirty)
        dirty = [
            segment
            for number, segment in enumerate(segments[:-1])
            if segment.base_offset < first_uncleanable and segments[number + 1].base_offset > first_dirty
        ]
        return dirty, first_dirty, first_uncleanable

    def _first_dirty_offset(self, log: Log) -> int:
        known, offset = self._first_dirty.get(log.topic_partition, (log, log.log_start_offset))
        # A checkpoint from outside of the log is not about this log.
        return offset if known is log and log.log_start_offset <= offset <= log.log_end_offset else log.log_start_offset

    def _first_uncleanable_offset(self, log: Log, segments: Sequence[Segment], first_dirty: int) -> int:
        """The base offset of the first segment that must stay as it is."""
        stable_offset = last_stable_offset(log)
        youngest_ms = self._clock.now_ms() - log.config.min_compaction_lag_ms
        for number, segment in enumerate(segments[:-1]):
            next_base = segments[number + 1].base_offset
            latest_ms = segment.max_timestamp if segment.max_timestamp >= 0 else segment.created_ms
            is_young = log.config.min_compaction_lag_ms > 0 and latest_ms > youngest_ms
            if next_base > stable_offset or (next_base > first_dirty and is_young):
                return segment.base_offset
        return segments[-1].base_offset

    async def _overdue_ms(self, log: Log, dirty: Sequence[Segment]) -> int:
        """How much longer than `max.compaction.lag.ms` a dirty record has waited; 0 when none has."""
        lag_ms = log.config.max_compaction_lag_ms
        if lag_ms == INT64_MAX:
            return 0
        oldest_ms = self._clock.now_ms() - lag_ms
        overdue_ms = 0
        for segment in dirty:
            if segment.first_timestamp is None and segment.size_bytes:
                try:
                    segment.first_timestamp = await self._executor.run(_first_timestamp, segment)
                except (OSError, CorruptRecord):
                    continue  # Cleaning it, if it comes to that, says what is wrong.
            if segment.first_timestamp is not None and segment.first_timestamp > 0:
                overdue_ms = max(overdue_ms, oldest_ms - segment.first_timestamp)
        return overdue_ms

    # Cleaning.

    async def _clean(self, dirty: DirtyLog) -> bool:
        """Whether something was done: a log that turned out uncleanable is out of the way, so go on at once."""
        log = dirty.log
        compaction = Compaction(
            log,
            disk=self._disk,
            executor=self._executor,
            workbench=self._workbench,
            cache=self._logs.index_cache,
            now_ms=self._clock.now_ms(),
            map_bytes=self.settings.dedupe_buffer_bytes,
            load_factor=self.settings.load_factor,
            seed=self._ids.uuid(),
        )
        async with log.reshaping:
            if self._logs.moves.is_moving(log):
                return False
            started = self._clock.monotonic()
            try:
                end_offset = await compaction.run(dirty.first_dirty_offset, dirty.first_uncleanable_offset)
            except CompactionStopped:
                return False
            except WorkbenchLost as error:
                if not log.is_closed:
                    logger.warning("%s was not compacted, and will be tried again: %s", log.topic_partition, error)
                return False
            except (CorruptRecord, BrokenSegment) as error:
                if not log.is_closed:
                    self._give_up(log, error)
                return True
            except (OSError, KafkaError, MemoryError) as error:
                self._failed(log, error)
                return False
            except Exception as error:
                # A mistake in here must not end the compaction of all other logs.
                logger.exception("the compaction of %s went wrong", log.topic_partition)
                self._give_up(log, error)
                return True
            finally:
                # Readers may be sending from what was replaced for a while.
                delay_ms = log.config.file_delete_delay_ms
                self._logs.removals.add(delay_ms, log.directory, compaction.replaced, compaction.leftovers)
            self._note_stats(dirty, compaction, self._clock.monotonic() - started)
            self._first_dirty[log.topic_partition] = (log, end_offset)
            await self._write_checkpoint(log.directory)
        return True

    def _note_stats(self, dirty: DirtyLog, compaction: Compaction, seconds: float) -> None:
        stats = self.stats
        stats.bytes_read, stats.bytes_written = compaction.bytes_read, compaction.bytes_written
        stats.seconds, stats.map_utilization = seconds, compaction.map_utilization
        stats.overdue_ms = dirty.overdue_ms

    def _give_up(self, log: Log, error: Exception) -> None:
        logger.warning("%s cannot be compacted and is left as it is: %s", log.topic_partition, error)
        self._uncleanable[log.topic_partition] = log

    def _failed(self, log: Log, error: Exception) -> None:
        """Room on the disk, memory and descriptors may be there later; any other failure is the directory's."""
        if log.is_closed or log.directory.failure is not None:
            return
        if isinstance(error, OSError) and is_of_one_log(error):
            self._give_up(log, error)
            return
        logger.warning("%s could not be compacted: %s", log.topic_partition, error)
        if isinstance(error, OSError) and not is_passing(error):
            log.directory.fail(error)

    async def _log_moved(self, log: Log, old: LogDirectory) -> None:
        """What is known of a log goes with it to its new directory."""
        if log.topic_partition in self._first_dirty:
            await self._write_checkpoint(log.directory)
            await self._write_checkpoint(old)

    async def _write_checkpoint(self, directory: LogDirectory) -> None:
        async def choose() -> dict[TopicPartition, int]:
            return {
                name: offset
                for name, (log, offset) in self._first_dirty.items()
                if log.directory is directory and self._logs.get(*name) is log
            }

        await self._logs.checkpoints.write(directory, CLEANER_CHECKPOINT, choose)


def _first_timestamp(segment: Segment) -> int:
    return read_header(segment.file.read_at(0, HEADER_BYTES)).max_timestamp
