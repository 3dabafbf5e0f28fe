"""A loop that lends itself: while it waits for events, another thread may do a piece of its work.

A record that is to leave at once would otherwise wake the loop's thread, which then waits for the interpreter, and so
does everybody else: the hand-over takes longer than the work. For the same reason the loop keeps the interpreter while
it looks for events, and gives it away only to wait for them (see `prompt_io`).

What must stay true: whoever runs code of the loop holds `_held`. The loop's own thread gives it away only inside of
`select`, where it runs none, and whatever a visitor schedules wakes it up. A visitor never waits.

Where visits follow each other, the loop may nap (see `naps`): what comes meanwhile is worked on by the next visitor.
"""

import asyncio
import select
import selectors
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.client.prompt_io import ready_now, ready_within
from ottla.client.sync.naps import Naps
from ottla.client.sync.wheel import deferred_interrupt, may_drive_here

if TYPE_CHECKING:
    import socket

_MOST_SECONDS = 3600.0
# Among more than these, asyncio's own turns look for cancelled ones.
_MANY_TIMERS = 50
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
        self.naps: Naps | None = None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        is_look = timeout is not None and timeout <= 0
        if ready_now is None:
            if is_look:
                return super().select(timeout)
        elif (ready := ready_now(self._epoll)) or is_look:
            return self._with_keys(ready)
        naps = self.naps
        if naps is not None and naps.begin():
            self._held.release()
            try:
                naps.sleep(timeout)
            finally:
                self._held.acquire()
                naps.is_asleep = False
            return self.look()
        self._held.release()
        try:
            if ready_within is None:
                return super().select(timeout)
            ready = ready_within(self._epoll, timeout)
        finally:
            self._held.acquire()
        return self._with_keys(ready)

    def look(self) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready now."""
        return super().select(0) if ready_now is None else self._with_keys(ready_now(self._epoll))

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
        _selector: _LendingSelector
        _ssock: socket.socket
        _stopping: bool
        _debug: bool

        def _process_events(self, found: list[tuple[selectors.SelectorKey, int]]) -> None: ...

    def __init__(self, may_nap: Callable[[], bool] | None = None) -> None:
        self._held = threading.Lock()
        # The loop's from the beginning, and again once it has stopped: it is lent only while it waits.
        self._held.acquire()
        super().__init__(_LendingSelector(self._held))
        # What `call_soon_threadsafe` rings.
        self._bell = self._ssock.fileno()
        self._naps = None
        if may_nap is not None and Naps.are_possible:
            self._naps = self._selector.naps = Naps(may_nap, self._bell)

    def visit(self, work: Callable[[], None]) -> bool:
        """Call `work` here and now, as if in the loop; False, and nothing happened, when the loop is busy.

        What it raises goes to the loop's handler of exceptions. A Ctrl-C waits until it is over.
        """
        if self.get_debug() or not may_drive_here() or not self._held.acquire(blocking=False):
            return False
        if self._naps is not None:
            self._naps.visits += 1
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

    def catch_up(self) -> None:
        """In a visit: if the loop naps, work on what has come meanwhile, and wake it where it should nap no longer."""
        naps = self._naps
        if naps is None or not naps.is_asleep or self._ready:
            return
        found = self._selector.look()
        for key, _ in found:
            if key.fd == self._bell:
                # It is waking up.
                return
        self._work_on(found)
        if not naps.may_go_on():
            self.call_soon(_nothing)

    def _run_once(self) -> None:
        """A turn of the loop. One that only waits for sockets, as nearly all do, needs less than asyncio's own."""
        timeout = None
        is_usual = not self._ready and not self._stopping and not self._debug
        if is_usual and self._scheduled:
            first = self._scheduled[0]
            timeout = min(first.when() - self.time(), _MOST_SECONDS)
            is_usual = timeout > 0 and not first.cancelled() and len(self._scheduled) <= _MANY_TIMERS
        if not is_usual:
            super()._run_once()  # type: ignore[misc]  # asyncio's own, and in no stub
            return
        found = self._selector.select(timeout)
        if self._ready:
            # What others have left meanwhile comes first.
            self._process_events(found)
        else:
            self._work_on(found)

    def _work_on(self, found: list[tuple[selectors.SelectorKey, int]]) -> None:
        for key, events in found:
            reader, writer = key.data
            if events & _READ and reader is not None and not reader._cancelled:
                reader._run()
            if events & _WRITE and writer is not None and not writer._cancelled:
                writer._run()

    def rouse(self) -> None:
        """From any thread: somebody waits for what may come."""
        if self._naps is not None and self._naps.end():
            self.call_soon_threadsafe(_nothing)


def _nothing() -> None:
    """To wake a loop up, or where nothing has to be done."""
