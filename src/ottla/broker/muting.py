"""Not listening to a client for a while (KIP-219)."""

import asyncio
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """Something that was set to happen later."""

    def cancel(self) -> object: ...


class Timers(Protocol):
    """Whoever can make something happen later: a server, on its loop."""

    loop: asyncio.AbstractEventLoop

    def later(self, seconds: float, callback: Callable[[], None]) -> Timer: ...


class Muting:
    """From `extend` until its time is over or it is cancelled; of two times, the one that ends later counts."""

    __slots__ = ("_ended", "_timer", "_timers", "_until")

    def __init__(self, timers: Timers, ended: Callable[[], None]) -> None:
        self._timers = timers
        self._ended = ended
        self._timer: Timer | None = None
        self._until = 0.0

    def extend(self, seconds: float) -> None:
        until = self._timers.loop.time() + seconds
        if self._timer is not None:
            if until <= self._until:
                return
            self._timer.cancel()
        self._until = until
        self._timer = self._timers.later(seconds, self._ended)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
