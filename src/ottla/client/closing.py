"""The end of a client, which comes once."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any


class Closing:
    """The first who closes a client does it. Who comes meanwhile waits for that: to be closed is to have let go of
    everything, of what is still on its way, too."""

    def __init__(self) -> None:
        self.has_begun = False
        self._closer: asyncio.Task[Any] | None = None
        self._ended = asyncio.Event()

    async def once(self, close: Callable[[], Coroutine[Any, Any, None]], timeout: float | None) -> None:
        """Close, or wait for so many seconds at most until somebody has closed."""
        if self.has_begun:
            await self._wait(timeout)
            return
        self.has_begun = True
        self._closer = asyncio.current_task()
        try:
            await close()
        finally:
            self._closer = None
            self._ended.set()

    async def _wait(self, timeout: float | None) -> None:
        if self._closer is asyncio.current_task():
            # Code that the closing itself calls.
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._ended.wait()
