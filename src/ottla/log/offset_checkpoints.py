"""The checkpoint files of the log directories: one offset for each partition, written for all of a directory at once.

A checkpoint is about one log, not about a name. So that a topic which is made again never takes over what a file says
of its predecessor, an entry goes from the device before a directory of that name is made: see `forget`. One write at
a time for a directory, and what it says is chosen only then: an older list never replaces a newer one, and two that
write the same file do not take it from each other. A file that would stay the same is not written.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ottla.log.directory import CHECKPOINTS, LogDirectory, is_passing
from ottla.log.files import TopicPartition
from ottla.runtime import Executor

logger = logging.getLogger(__name__)

Offsets = dict[TopicPartition, int]
Choose = Callable[[], Awaitable[Offsets]]


class OffsetCheckpoints:
    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._writing: dict[str, asyncio.Lock] = {}

    def _lock(self, directory: LogDirectory) -> asyncio.Lock:
        return self._writing.setdefault(directory.path, asyncio.Lock())

    async def write(self, directory: LogDirectory, name: str, choose: Choose) -> None:
        """Replace a file. What may pass keeps the old one; any other trouble is the directory's."""
        if directory.failure is not None:
            return
        try:
            await self.must_write(directory, name, choose)
        except OSError as error:
            if is_passing(error):
                logger.warning("%s in %s stays as it was: %s", name, directory.path, error)
            else:
                directory.fail(error)

    async def must_write(self, directory: LogDirectory, name: str, choose: Choose) -> None:
        """The same for whoever cannot go on without; OSError when it did not work, and nothing else happens."""
        async with self._lock(directory):
            offsets = await choose()
            if not directory.has_checkpointed(name, offsets):
                await self._executor.run(directory.write_checkpoint, name, offsets)

    async def forget(
        self, directory: LogDirectory, topic_partition: TopicPartition, is_used: Callable[[TopicPartition], bool]
    ) -> None:
        """Return once no checkpoint on the device has an entry for the partition. OSError when that cannot be.

        With it go the entries of all other partitions that nobody uses: a topic that is made again has many.
        """
        async with self._lock(directory):
            if directory.may_be_checkpointed(topic_partition):
                for name in CHECKPOINTS:
                    known = await self._executor.run(directory.known_checkpoint, name)
                    kept = {key: offset for key, offset in known.items() if key != topic_partition and is_used(key)}
                    if len(kept) != len(known):
                        await self._executor.run(directory.write_checkpoint, name, kept)
