"""Who waits for room in `buffer.memory`: coroutines of the loop, and other threads."""

import asyncio
import threading
from collections.abc import Callable

from ottla.client.errors import BufferFull
from ottla.client.producer._twin import twin
from ottla.runtime import Clock

_MOST_BETWEEN_PAUSES_BYTES = 256 * 1024


class Room:
    """`wake` makes the loop look, from any thread; `turn` is that look, which calls `offer` while somebody waits."""

    def __init__(
        self,
        appender: "twin.Appender",
        buffer_bytes: int,
        max_block_ms: int,
        clock: Clock,
        *,
        wake: Callable[[], None],
        turn: Callable[[], None],
    ) -> None:
        self._appender = appender
        self._buffer_bytes = buffer_bytes
        self._max_block_ms = max_block_ms
        self._clock = clock
        self._wake = wake
        self._turn = turn
        self._waiters: list[Callable[[], None]] = []
        self._wanted_bytes = 0
        self._pause_bytes = min(appender.batch_bytes, _MOST_BETWEEN_PAUSES_BYTES, max(buffer_bytes // 8, 1))
        appender.pause_at = self._pause_bytes
        appender.pause = self.pause

    def __len__(self) -> int:
        return len(self._waiters)

    def refuse(self, size_bytes: int) -> None:
        """There is none, and nobody waits here."""
        self._wanted_bytes = max(self._wanted_bytes, size_bytes)
        self._appender.pause_at = 0
        raise BufferFull(
            f"buffer.memory ({self._buffer_bytes} bytes) is full: await drain() before sending more, or raise it"
        )

    def block(self, size_bytes: int) -> None:
        """Block this thread, which is not the loop's, until there is room; BufferFull after `max.block.ms`."""
        if threading.get_ident() == self._appender.owner_thread:
            self.refuse(size_bytes)
        deadline = self._clock.monotonic() + self._max_block_ms / 1000
        while size_bytes > self._appender.available_bytes and not self._appender.refuses:
            there_is = threading.Lock()
            there_is.acquire()
            self._wanted_bytes = max(self._wanted_bytes, size_bytes)
            self._waiters.append(there_is.release)
            self._wake()
            left = deadline - self._clock.monotonic()
            if left <= 0 or not there_is.acquire(timeout=left):
                raise BufferFull(
                    f"no room in buffer.memory ({self._buffer_bytes} bytes) within max.block.ms "
                    f"({self._max_block_ms} ms): brokers take less than is sent"
                )
        if self._appender.refuses:
            self._appender.refuse()

    def offer(self, *, to_all: bool = False) -> None:
        """Those who wait look again when a good part of the memory is free, not for every batch."""
        share = min(max(self._wanted_bytes, self._buffer_bytes // 4), self._buffer_bytes)
        if to_all or self._appender.available_bytes >= share or self._appender.refuses:
            self._wanted_bytes = 0
            waiters, self._waiters = self._waiters, []
            for told in waiters:
                told()

    async def pause(self) -> None:
        """Let the loop have a turn for every batch that was filled, and wait while the memory is nearly used up."""
        self._appender.pause_at = self._appender.appended_bytes + self._pause_bytes
        await asyncio.sleep(0)
        if self._wanted_bytes or self._appender.available_bytes < self._buffer_bytes // 4:
            await self._wait()

    async def wait_for(self, size_bytes: int) -> None:
        while size_bytes > self._appender.available_bytes:
            if self._appender.refuses:
                self._appender.refuse()
            self._wanted_bytes = max(self._wanted_bytes, size_bytes)
            await self._wait()

    async def _wait(self) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(lambda: None if future.done() else future.set_result(None))
        self._turn()
        await future
