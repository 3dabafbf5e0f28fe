"""The checkpoint files of the log directories: one offset for each partition, written for all of a directory at once.

A checkpoint is about one log, not about a name. So that a topic which is made again never takes over what a file says
of its predecessor, an entry goes from the device before a directory of that name is made: see `forget`. One write at
a time for a directory, and what it says is chosen only then: an older list never replaces a newer one.
"""

import asyncio
import logging
from collections.abc import Callable

from ottla.log.directory import CHECKPOINTS, LogDirectory, is_full
from ottla.log.files import TopicPartition
from ottla.runtime import Executor

logger = logging.getLogger(__name__)

Offsets = dict[TopicPartition, int]


class OffsetCheckpoints:
    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._writing: dict[str, asyncio.Lock] = {}

    def _lock(self, directory: LogDirectory) -> asyncio.Lock:
        return self._writing.setdefault(directory.path, asyncio.Lock())

    async def write(self, directory: LogDirectory, name: str, choose: Callable[[], Offsets]) -> None:
        """Replace a file. A full disk keeps the old one; any other trouble is the directory's."""
        if directory.failure is not None:
            return
        async with self._lock(directory):
            try:
                await self._executor.run(directory.write_checkpoint, name, choose())
            except OSError as error:
                if is_full(error):
                    logger.warning("%s in %s stays as it was: %s", name, directory.path, error)
                else:
                    directory.fail(error)

    async def must_write(self, directory: LogDirectory, name: str, choose: Callable[[], Offsets]) -> None:
        """The same for whoever cannot go on without; OSError when it did not work, and nothing else happens."""
        async with self._lock(directory):
            await self._executor.run(directory.write_checkpoint, name, choose())

    async def forget(self, directory: LogDirectory, topic_partition: TopicPartition) -> None:
        """Return once no checkpoint on the device has an entry for the partition. OSError when that cannot be."""
        async with self._lock(directory):
            if directory.may_be_checkpointed(topic_partition):
                await self._executor.run(self._forget, directory, topic_partition)

    def _forget(self, directory: LogDirectory, topic_partition: TopicPartition) -> None:
        for name in CHECKPOINTS:
            offsets = directory.known_checkpoint(name)
            if topic_partition in offsets:
                kept = {key: offset for key, offset in offsets.items() if key != topic_partition}
                directory.write_checkpoint(name, kept)
