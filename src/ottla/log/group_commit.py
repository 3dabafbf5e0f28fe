"""One flush at a time, shared by everybody who waits for it."""

import asyncio
from collections.abc import Callable, Coroutine


class Background:
    """Work that runs beside everything else, and whose failure nobody waits for."""

    __slots__ = ("_tasks",)

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())


class GroupCommit:
    """Runs `flush` whenever somebody waits for an offset that `flushed_offset` has not reached.

    Who comes while a flush is running may have appended after it began, so if that one does not reach far enough he
    shares the next one with all others who came meanwhile. A flush that fails fails for all who wait for it.
    """

    __slots__ = ("_flush", "_flushed_offset", "_running")

    def __init__(self, flush: Callable[[], Coroutine[None, None, None]], flushed_offset: Callable[[], int]) -> None:
        self._flush = flush
        self._flushed_offset = flushed_offset
        self._running: asyncio.Task[None] | None = None

    async def reach(self, offset: int) -> None:
        while self._flushed_offset() < offset:
            if self._running is None:
                self._running = asyncio.get_running_loop().create_task(self._run())
            # Shielded: one caller who gives up must not take the flush from the others.
            await asyncio.shield(self._running)

    async def _run(self) -> None:
        try:
            await self._flush()
        finally:
            self._running = None

    async def finish_running(self) -> None:
        """Wait for the flush that is running, if there is one, however it ends."""
        if self._running is not None:
            await asyncio.wait([self._running])

    async def settle(self) -> None:
        """Wait until no flush is running."""
        while self._running is not None:
            await self.finish_running()
