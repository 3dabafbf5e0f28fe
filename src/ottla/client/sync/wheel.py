"""Who runs the loop of a client: whoever waits for it, in its own thread, or a keeper while nobody does.

A record that arrives while somebody waits for it is then read, decoded and handed out in one thread, and no other has
to be woken up in between, which is a good part of the latency.

| the wheel is held by | while                                                                                     |
|----------------------|-------------------------------------------------------------------------------------------|
| a caller             | it waits for the loop. Errands for it are done between two runs of the loop               |
| the keeper           | nobody came for a few milliseconds: prefetching, heartbeats and commits go on             |
| nobody               | between two calls that follow closely: taking and leaving it costs no switch of threads   |

A caller that finds it with the keeper asks for it; one that finds it with another caller waits as for any thread. So
does one in whose thread Python code may be run at any time by a signal, and one in a thread with a loop of its own:
what a handler raises would hit the loop in the middle of its work.

However the keeper comes to its end, the loop is closed then, and whoever still waits for it is told.
"""

import asyncio
import logging
import signal
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress

try:
    # What is behind the functions of `signal`, which make an enum of every number: single records wait for this.
    from _signal import getsignal  # type: ignore[import-not-found]
    from _signal import signal as set_handler
except ImportError:
    from signal import getsignal
    from signal import signal as set_handler

logger = logging.getLogger(__name__)

_PATIENCE_SECONDS = 0.005
_MOST_PATIENCE_SECONDS = 0.02
_HANDOVER_SECONDS = 0.05
_HARMLESS = (int(signal.SIG_DFL), int(signal.SIG_IGN), signal.default_int_handler, None)
_INTERRUPT = int(signal.SIGINT)
_WATCHED = tuple(
    int(getattr(signal, name))
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
)


class Wheel:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._held = threading.Lock()
        self._driver = 0
        self._depth = 0
        self._drives = 0
        # From the beginning: the first caller may be faster than its thread.
        self._is_with_keeper = True
        self._is_parked = False
        self._unpark = threading.Event()
        self._ended = threading.Event()

    @property
    def is_ended(self) -> bool:
        return self._ended.is_set()

    # A caller's side.

    def take(self) -> bool:
        """Whether the caller drives from now on, until it calls `leave`. It may be taken again by who has it."""
        if self._driver == threading.get_ident():
            self._depth += 1
            return True
        if not may_drive_here():
            return False
        if not self._held.acquire(blocking=False):
            if not self._is_with_keeper or self.is_ended:
                return False
            self._stop_soon()
            if not self._held.acquire(timeout=_HANDOVER_SECONDS):
                return False
        if self.is_ended:
            # The keeper waits for it to end the loop, or has done so.
            self._held.release()
            return False
        self._driver = threading.get_ident()
        self._depth = 1
        return True

    def leave(self) -> None:
        self._depth -= 1
        if self._depth:
            return
        self._driver = 0
        self._drives += 1
        self._held.release()
        if self._is_parked:
            self._unpark.set()

    @property
    def is_mine(self) -> bool:
        return self._driver == threading.get_ident()

    def drive(self, interrupt: Callable[[], None]) -> None:
        """Run the loop until it is stopped. A Ctrl-C does not hit it in the middle: it calls `interrupt` in the loop,
        and is raised when the loop was stopped."""
        with deferred_interrupt(lambda: self._loop.call_soon_threadsafe(interrupt)):
            self._loop.run_forever()

    # The keeper's side.

    def keep(self, abandon: Callable[[], None]) -> None:
        """Drive whenever nobody else does, until the end; then end what is left in the loop, and call `abandon`:
        nothing that was not done by then will ever be."""
        try:
            while not self.is_ended:
                self._is_with_keeper = True
                with self._held:
                    if not self.is_ended:
                        self._run()
                    self._is_with_keeper = False
                self._stand_by()
        finally:
            self._ended.set()
            with self._held:
                try:
                    _end(self._loop)
                finally:
                    abandon()

    def _run(self) -> None:
        try:
            self._loop.run_forever()
        except (SystemExit, KeyboardInterrupt):
            # Raised by code of the user's that the loop called: others wait for the loop, which can go on.
            logger.exception("a callback cannot end the program from the thread of a client")

    def _stand_by(self) -> None:
        """Until callers have left the wheel alone for a while; those who came often are given longer, since every
        look takes the interpreter from somebody."""
        patience = _PATIENCE_SECONDS
        while not self.is_ended:
            drives = self._drives
            self._ended.wait(patience)
            if drives != self._drives:
                patience = min(2 * patience, _MOST_PATIENCE_SECONDS)
                continue
            if not self._held.locked():
                return
            # Somebody waits for something that takes long.
            self._is_parked = True
            if self._held.locked():
                self._unpark.wait()
            self._is_parked = False
            self._unpark.clear()

    def end(self) -> None:
        """From any thread: whoever drives leaves, and the keeper ends the loop."""
        self._ended.set()
        self._unpark.set()
        self._stop_soon()

    def _stop_soon(self) -> None:
        with suppress(RuntimeError):  # It is closed already.
            self._loop.call_soon_threadsafe(self._loop.stop)


def may_drive_here() -> bool:
    if asyncio._get_running_loop() is not None:
        return False
    if threading.current_thread() is not threading.main_thread():
        return True
    for number in _WATCHED:  # noqa: SIM110 - a generator costs more than the question
        if getsignal(number) not in _HARMLESS:
            return False
    return True


class deferred_interrupt:  # noqa: N801 - read as `with deferred_interrupt(...)`
    """In the main thread: a Ctrl-C during the block calls `tell`, and is raised at its end."""

    __slots__ = ("_came", "_is_set", "_tell")

    def __init__(self, tell: Callable[[], object]) -> None:
        self._tell = tell
        self._came = False
        self._is_set = False

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self._is_set = getsignal(_INTERRUPT) is signal.default_int_handler
            if self._is_set:
                set_handler(_INTERRUPT, self._note)

    def _note(self, *_: object) -> None:
        self._came = True
        self._tell()

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if self._is_set:
            set_handler(_INTERRUPT, signal.default_int_handler)
            if self._came and error is None:
                raise KeyboardInterrupt


def _end(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        while left := asyncio.all_tasks(loop):
            for task in left:
                task.cancel()
            _finish(loop, asyncio.gather(*left, return_exceptions=True))
        _finish(loop, loop.shutdown_asyncgens())
        _finish(loop, loop.shutdown_default_executor())
    finally:
        loop.close()


def _finish(loop: asyncio.AbstractEventLoop, work: Awaitable[object]) -> None:
    """Unlike `run_until_complete`, also when somebody stops the loop meanwhile: who drove it before, for example."""
    finished = asyncio.ensure_future(work, loop=loop)
    finished.add_done_callback(lambda _: loop.stop())
    while not finished.done():
        loop.run_forever()
    finished.result()
