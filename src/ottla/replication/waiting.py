"""Requests that wait for a partition to move: long polls for bytes, producers for the high watermark."""

import asyncio
import heapq
from collections.abc import Iterable
from typing import Protocol

from ottla.runtime.promise import Promise


class WatchedPartition(Protocol):
    """The side of a partition that a waiting fetch sees."""

    def add_fetch_wait(self, wait: "FetchWait") -> None: ...

    def remove_fetch_wait(self, wait: "FetchWait") -> None: ...


class FetchWait:
    """A long poll: ends when enough bytes became readable, when something changed, or when its time is up.

    It registers with every partition it reads and leaves all of them when it ends, however it ends. `over` is told in
    the call that ends it, which may be in the middle of an append: who answers then does it a little later.
    """

    __slots__ = ("_bytes_missing", "_partitions", "_timer", "is_for_committed", "over")

    def __init__(
        self,
        partitions: Iterable[WatchedPartition],
        bytes_missing: int,
        wait_seconds: float,
        is_for_committed: bool = False,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.is_for_committed = is_for_committed
        self.over: Promise[None] = Promise()
        self._bytes_missing = bytes_missing
        self._partitions = list(partitions)
        self._timer = loop.call_later(wait_seconds, self.end)
        self.over.add_done_callback(self._leave)
        for partition in self._partitions:
            partition.add_fetch_wait(self)

    def bytes_added(self, size_bytes: int) -> None:
        self._bytes_missing -= size_bytes
        if self._bytes_missing <= 0:
            self.end()

    def end(self) -> None:
        """Answer with what there is: also when the partition is deleted or led by another broker."""
        self.over.resolve(None)

    def _leave(self, _: Promise[None]) -> None:
        self._timer.cancel()
        for partition in self._partitions:
            partition.remove_fetch_wait(self)


def end_waits(waits: list[FetchWait]) -> None:
    for wait in waits:
        wait.end()


class OffsetWaits:
    """Futures that wait until an offset is reached, in the order of their offsets."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrivals = 0

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, offset: int) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._arrivals += 1
        heapq.heappush(self._heap, (offset, self._arrivals, future))
        return future

    def reached(self, offset: int) -> None:
        heap = self._heap
        while heap and heap[0][0] <= offset:
            future = heapq.heappop(heap)[2]
            if not future.done():
                future.set_result(None)

    def fail(self, error: Exception) -> None:
        waiting, self._heap = self._heap, []
        for _, _, future in waiting:
            if not future.done():
                future.set_exception(error)
