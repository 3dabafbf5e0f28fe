"""Writing the checkpoints of offsets, of all logs, without holding up the loop."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence

from ottla.log.checkpoints import encode_lines, offset_line
from ottla.log.directory import LogDirectory, is_passing
from ottla.log.log import Log
from ottla.log.unusable import UnusableLogs
from ottla.runtime import Executor

logger = logging.getLogger(__name__)

_LOGS_AT_ONCE = 500


class OffsetCheckpoints:
    """One checkpoint is written by one at a time, so what was collected later is also written later.

    A file that would be the same as the last one is not written again. What is known of logs that could not be opened
    is written with the rest.
    """

    def __init__(self, directories: Sequence[LogDirectory], executor: Executor, unusable: UnusableLogs) -> None:
        self._directories = directories
        self._unusable = unusable
        self._executor = executor
        self._locks: dict[str, asyncio.Lock] = {}
        self._written: dict[tuple[str, str], bytes] = {}

    async def write(
        self, name: str, all_logs: Callable[[], Iterable[Log]], offset_of: Callable[[Log], int | None]
    ) -> None:
        """Note `offset_of` each log, in the checkpoint of that name in the log's directory; None leaves it out."""
        async with self._locks.setdefault(name, asyncio.Lock()):
            lines: dict[str, list[str]] = {
                directory.path: [offset_line(*known) for known in self._unusable.checkpointed(directory, name)]
                for directory in self._directories
            }
            for number, log in enumerate(list(all_logs()), 1):
                offset = offset_of(log)
                if offset is not None:
                    lines[log.directory.path].append(offset_line(log.topic_partition, offset))
                if not number % _LOGS_AT_ONCE:
                    await asyncio.sleep(0)
            for directory in self._directories:
                if directory.failure is None:
                    await self._replace(directory, name, encode_lines(lines[directory.path]))

    async def _replace(self, directory: LogDirectory, name: str, data: bytes) -> None:
        key = (directory.path, name)
        if self._written.get(key) == data:
            return
        self._written.pop(key, None)
        try:
            await self._executor.run(directory.replace_checkpoint, name, data)
        except OSError as error:
            if is_passing(error):
                logger.warning("%s in %s stays as it was: %s", name, directory.path, error)
            else:
                directory.fail(error)
        else:
            self._written[key] = data
