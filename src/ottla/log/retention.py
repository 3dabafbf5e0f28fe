"""Forgetting: which segments a log no longer keeps, and how they go.

Whole segments go, the oldest first, each for one of three reasons:

| reason                                                              | asked for by                             |
|---------------------------------------------------------------------|------------------------------------------|
| the log starts at or after the next segment                         | DeleteRecords, under every cleanup.policy |
| without it, the log is still at least `retention.bytes` large       | cleanup.policy with `delete`             |
| its newest record is older than `retention.ms`                      | cleanup.policy with `delete`             |

Nothing at or above the high watermark goes. The active segment is never deleted: when its turn comes it is rolled
first and goes as a closed one, so the log keeps its end offset. A segment whose records have no timestamps is as old
as its file.

    in the log -> files renamed to `.deleted`, the log starts at the next segment -> `file.delete.delay.ms` -> removed

Reads that began before the rename go on until the files are removed. What a stop or a crash leaves behind as
`.deleted` is removed at the next start.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import NamedTuple

from ottla.log.config import LogConfig
from ottla.log.config_keys import INT64_MAX
from ottla.log.files import LOG_SUFFIX
from ottla.log.log import Log
from ottla.log.removal import DelayedRemovals
from ottla.log.segment import Segment
from ottla.protocol.errors import KafkaError
from ottla.runtime import Clock, Disk, Executor

logger = logging.getLogger(__name__)


class Candidate(NamedTuple):
    """A segment as retention sees it. `next_offset` is where the next one begins, or the log's end."""

    next_offset: int
    size_bytes: int
    newest_ms: int


def count_deletable(
    candidates: Sequence[Candidate], config: LogConfig, log_start_offset: int, high_watermark: int, now_ms: int
) -> int:
    """How many of a log's segments go now, counted from the oldest. The last candidate is the active segment."""
    count, last = 0, len(candidates) - 1
    while count < last and candidates[count].next_offset <= log_start_offset:
        count += 1
    if not config.delete:
        return count

    def may_go(number: int) -> bool:
        is_empty_active = number == last and not candidates[number].size_bytes
        return number <= last and not is_empty_active and candidates[number].next_offset <= high_watermark

    if config.retention_bytes >= 0:
        excess_bytes = sum(candidate.size_bytes for candidate in candidates[count:]) - config.retention_bytes
        while may_go(count) and candidates[count].size_bytes <= excess_bytes:
            excess_bytes -= candidates[count].size_bytes
            count += 1
    if config.retention_ms >= 0:
        while may_go(count) and now_ms - candidates[count].newest_ms > config.retention_ms:
            count += 1
    return count


class Retention:
    """Applies the retention of logs, and removes the files of segments that left theirs.

    Work on a log that has begun goes on to its end, also when whoever asked for it is cancelled.
    """

    def __init__(self, *, disk: Disk, clock: Clock, executor: Executor, removals: DelayedRemovals) -> None:
        self._disk = disk
        self._clock = clock
        self._executor = executor
        self._removals = removals
        self._under_way: set[asyncio.Task[int]] = set()

    async def apply(self, logs: Sequence[Log]) -> None:
        """Delete what each log no longer keeps; a log that cannot is left for the next time."""
        for log in logs:
            if log.directory.failure is None:
                try:
                    await self.apply_to(log)
                except KafkaError as error:
                    logger.warning("old segments of %s could not be deleted: %s", log.topic_partition, error)

    async def apply_to(self, log: Log) -> int:
        """How many segments left the log."""
        task = asyncio.get_running_loop().create_task(self._apply_to(log))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(task)

    async def _apply_to(self, log: Log) -> int:
        async with log.reshaping:
            written_ms = await self._written_ms(log)
            segments = log.segments
            count = count_deletable(
                _candidates(segments, log.log_end_offset, written_ms),
                log.config,
                log.log_start_offset,
                log.high_watermark,
                self._clock.now_ms(),
            )
            if not count:
                return 0
            if count == len(segments):
                await log.roll()
            removed, paths = await log.detach_oldest(count)
        logger.info("%s starts at %d: %d segments deleted", log.topic_partition, log.log_start_offset, count)
        self._removals.add(log.config.file_delete_delay_ms, log.directory, removed, paths)
        return count

    async def _written_ms(self, log: Log) -> dict[int, int]:
        """When the segments whose records have no timestamps were written to last, by base offset."""
        if not log.config.delete or log.config.retention_ms < 0:
            return {}
        *closed, active = log.segments
        undated = [segment for segment in closed if segment.max_timestamp < 0]
        if active.max_timestamp < 0 and active.size_bytes:
            undated.append(active)
        if not undated:
            return {}
        try:
            times = await self._executor.run(self._modified_ms, [segment.path_of(LOG_SUFFIX) for segment in undated])
        except FileNotFoundError:
            return {}  # The log was moved away because its topic is gone.
        except OSError as error:
            log.directory.fail(error)
            return {}
        return {segment.base_offset: time_ms for segment, time_ms in zip(undated, times, strict=True)}

    def _modified_ms(self, paths: list[str]) -> list[int]:
        return [self._disk.modified_ms(path) for path in paths]

    async def close(self) -> None:
        """Finish what is under way."""
        if self._under_way:
            await asyncio.wait(self._under_way)


def _candidates(segments: tuple[Segment, ...], log_end_offset: int, written_ms: dict[int, int]) -> list[Candidate]:
    ends = [*(segment.base_offset for segment in segments[1:]), log_end_offset]
    return [
        Candidate(
            end,
            segment.size_bytes,
            segment.max_timestamp if segment.max_timestamp >= 0 else written_ms.get(segment.base_offset, INT64_MAX),
        )
        for segment, end in zip(segments, ends, strict=True)
    ]
