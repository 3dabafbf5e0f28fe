"""A loop that lends itself: while it waits for events, another thread may do a piece of its work.

A record that is to leave at once would otherwise wake the loop's thread, which then waits for the interpreter, and so
does everybody else: the hand-over takes longer than the work. For the same reason the loop keeps the interpreter while
it looks for events, and gives it away only to wait for them (see `prompt_io`).

What must stay true: whoever runs code of the loop holds `_held`. The loop's own thread gives it away only inside of
`select`, where it runs none, and whatever a visitor schedules wakes it up. A visitor never waits.
"""

import asyncio
import select
import selectors
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.client.prompt_io import ready_now
from ottla.client.sync.wheel import deferred_interrupt, may_drive_here

_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
_READABLE, _WRITABLE = getattr(select, "EPOLLIN", 1), getattr(select, "EPOLLOUT", 4)


class _LendingSelector(selectors.DefaultSelector):
    if TYPE_CHECKING:
        # In no stub.
        _fd_to_key: dict[int, selectors.SelectorKey]

        def fileno(self) -> int: ...

    def __init__(self, held: threading.Lock) -> None:
        super().__init__()
        self._held = held
        self._epoll = -1 if ready_now is None else self.fileno()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        is_look = timeout is not None and timeout <= 0
        if ready_now is None:
            if is_look:
                return super().select(timeout)
        elif (ready := ready_now(self._epoll)) or is_look:
            return self._with_keys(ready)
        self._held.release()
        try:
            return super().select(timeout)
        finally:
            self._held.acquire()

    def _with_keys(self, ready: list[tuple[int, int]]) -> list[tuple[selectors.SelectorKey, int]]:
        found = []
        for descriptor, events in ready:
            key = self._fd_to_key.get(descriptor)
            if key is not None:
                # An error, or the other side's end, is for whoever waits to read and to write.
                can_read = _READ if events & ~_WRITABLE else 0
                can_write = _WRITE if events & ~_READABLE else 0
                found.append((key, (can_read | can_write) & key.events))
        return found


class LentLoop(asyncio.SelectorEventLoop):
    if TYPE_CHECKING:
        # What is to be called in the next turn, and later: asyncio's own, and in no stub.
        _ready: deque[asyncio.Handle]
        _scheduled: list[asyncio.TimerHandle]

    def __init__(self) -> None:
        self._held = threading.Lock()
        # The loop's from the beginning, and again once it has stopped: it is lent only while it waits.
        self._held.acquire()
        super().__init__(_LendingSelector(self._held))

    def visit(self, work: Callable[[], None]) -> bool:
        """Call `work` here and now, as if in the loop; False, and nothing happened, when the loop is busy.

        What it raises goes to the loop's handler of exceptions. A Ctrl-C waits until it is over.
        """
        if self.get_debug() or not may_drive_here() or not self._held.acquire(blocking=False):
            return False
        with deferred_interrupt(_nothing):
            try:
                self._receive(work)
            finally:
                self._held.release()
        return True

    def _receive(self, work: Callable[[], None]) -> None:
        before = len(self._ready), len(self._scheduled)
        asyncio._set_running_loop(self)
        try:
            work()
        except Exception as error:
            self.call_exception_handler({"message": f"{work!r} failed in a visit", "exception": error})
        finally:
            asyncio._set_running_loop(None)
            # What was scheduled is in one of the two, also if it was given up again: the loop has to look at it.
            if (len(self._ready), len(self._scheduled)) != before:
                self.call_soon_threadsafe(_nothing)


def _nothing() -> None:
    """To wake a loop up, or where nothing has to be done."""
