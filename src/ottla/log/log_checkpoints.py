"""What the checkpoints of the log directories say of the logs, of those on their way, and of those out of use."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ottla.log.directory import (
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    REPLICATION_CHECKPOINT,
    LogDirectory,
)
from ottla.log.files import TopicPartition
from ottla.log.log import Log
from ottla.log.offset_checkpoints import OffsetCheckpoints, Offsets
from ottla.log.unusable import UnusableLogs
from ottla.runtime import Executor

if TYPE_CHECKING:
    from ottla.log.moves import LogMoves

_LOGS_AT_ONCE = 500

# What is written of a log; nothing where a start finds it out by itself.
_CHECKPOINTED: dict[str, Callable[[Log], int | None]] = {
    RECOVERY_POINT_CHECKPOINT: lambda log: log.recovery_point,
    REPLICATION_CHECKPOINT: lambda log: log.high_watermark,
    LOG_START_CHECKPOINT: lambda log: (
        log.log_start_offset if log.log_start_offset > log.segments[0].base_offset else None
    ),
}


class LogCheckpoints:
    """`logs` is the manager's own, by name. `moves` is set before anything is written."""

    moves: "LogMoves"

    def __init__(
        self,
        directories: Sequence[LogDirectory],
        executor: Executor,
        logs: Mapping[TopicPartition, Log],
        unusable: UnusableLogs,
    ) -> None:
        self._directories = directories
        self._files = OffsetCheckpoints(executor)
        self._logs = logs
        self._unusable = unusable
        self.write = self._files.write

    async def write_all(self, name: str) -> None:
        """In all directories."""
        for directory in self._directories:
            await self._files.write(directory, name, partial(self._offsets, directory, name))

    async def announce(self, directory: LogDirectory) -> None:
        """Tell the checkpoints of logs that move there; OSError when that does not work."""
        for name in _CHECKPOINTED:
            await self._files.must_write(directory, name, partial(self._offsets, directory, name))

    async def forget(self, directory: LogDirectory, topic_partition: TopicPartition) -> None:
        """Return once nothing on the device speaks of the partition. OSError when that cannot be."""
        await self._files.forget(directory, topic_partition, self._is_used)

    def _is_used(self, topic_partition: TopicPartition) -> bool:
        """Whether what is known of it is about a log that is here, or arrives."""
        return (
            topic_partition in self._logs
            or self._unusable.place_of(topic_partition) is not None
            or self.moves.get(topic_partition) is not None
        )

    async def _offsets(self, directory: LogDirectory, name: str) -> Offsets:
        """In many turns of the loop where there are many logs."""
        offset_of = _CHECKPOINTED[name]
        offsets = dict(self._unusable.checkpointed(directory, name))
        for number, log in enumerate(list(self._logs.values()), 1):
            if not number % _LOGS_AT_ONCE:
                await asyncio.sleep(0)
            if log.directory is directory and (offset := offset_of(log)) is not None:
                offsets[log.topic_partition] = offset
        for log in self.moves.arriving_in(directory):
            if (offset := offset_of(log)) is not None:
                offsets[log.topic_partition] = offset
        return offsets
