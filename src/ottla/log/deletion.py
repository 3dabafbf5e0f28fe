"""Logs that are deleted: out of use at once, their files gone after `file.delete.delay.ms`."""

import asyncio
import logging

from ottla.log.log import Log
from ottla.protocol.errors import KafkaError

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 10.0


class LogDeletions:
    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[None], Log] = {}

    def add(self, log: Log) -> None:
        task = asyncio.get_running_loop().create_task(self._delete(log))
        self._tasks[task] = log
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def _delete(self, log: Log) -> None:
        await asyncio.sleep(log.config.file_delete_delay_ms / 1000)
        while True:
            try:
                await log.delete()
            except KafkaError as error:
                if log.directory.failure is None:
                    logger.warning("the files of %s are still there: %s", log.topic_partition, error)
                    await asyncio.sleep(_RETRY_SECONDS)
                    continue
            # Where the directory failed, the leftovers go at the next start.
            return

    def close(self) -> None:
        """What is left has names that the next start deletes."""
        for task, log in list(self._tasks.items()):
            task.cancel()
            log.close_files()
