"""Files that left a log: kept for `file.delete.delay.ms`, so that who still reads them can finish, and then removed.

What waits here has names that no start takes for data. So whatever a stop or a crash leaves behind is removed at the
next start, and closing the files is all there is to do in the end.
"""

import asyncio
import logging
from collections.abc import Sequence

from ottla.log.directory import LogDirectory, is_passing
from ottla.log.segment import Segment
from ottla.log.unusable import is_of_one_log
from ottla.runtime import Disk, Executor

logger = logging.getLogger(__name__)


class DelayedRemovals:
    """Closes segments and removes files or whole directories, each after its delay."""

    def __init__(self, disk: Disk, executor: Executor) -> None:
        self._disk = disk
        self._executor = executor
        self._waiting: dict[asyncio.Task[None], tuple[Segment, ...]] = {}
        self._is_closed = False

    def add(self, delay_ms: int, directory: LogDirectory, segments: Sequence[Segment], paths: Sequence[str]) -> None:
        """Let go of segments, and of paths in `directory`, which fails if they cannot be removed."""
        if self._is_closed:
            for segment in segments:
                segment.close()
            return
        work = self._remove_later(delay_ms, directory, tuple(segments), tuple(paths))
        task = asyncio.get_running_loop().create_task(work)
        self._waiting[task] = tuple(segments)
        task.add_done_callback(lambda done: self._waiting.pop(done, None))

    async def _remove_later(
        self, delay_ms: int, directory: LogDirectory, segments: tuple[Segment, ...], paths: tuple[str, ...]
    ) -> None:
        await asyncio.sleep(delay_ms / 1000)
        # Closed first: then it is the removal, off the loop, that gives the blocks back.
        for segment in segments:
            segment.close()
        if directory.failure is not None:
            return
        try:
            await self._executor.run(self._remove, paths)
        except OSError as error:
            logger.warning("%s could not be deleted, the next start will: %s", ", ".join(paths[:3]), error)
            if not (is_passing(error) or is_of_one_log(error)):
                directory.fail(error)

    def _remove(self, paths: tuple[str, ...]) -> None:
        for path in paths:
            if self._disk.is_directory(path):
                self._disk.delete_directory(path)
            else:
                self._disk.delete(path)

    def close(self) -> None:
        """Nobody reads any more. What was not removed yet is left to the next start."""
        self._is_closed = True
        for task, segments in list(self._waiting.items()):
            task.cancel()
            for segment in segments:
                segment.close()
