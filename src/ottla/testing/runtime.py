"""A clock, an executor and dice that do the same thing in every run."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from ottla.runtime.real import SystemClock

Result = TypeVar("Result")


class ManualClock:
    """Stands still until it is moved."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms
        self._start_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic(self) -> float:
        return (self._now_ms - self._start_ms) / 1000

    def advance(self, by: int | timedelta) -> None:
        """Move on, or back, by a number of milliseconds or by a `timedelta`."""
        self._now_ms += _milliseconds(by)


class MovableClock:
    """The machine's clock, with all that it was moved added on top. It goes forward only."""

    def __init__(self) -> None:
        self._machine = SystemClock()
        self._ahead_ms = 0

    def now_ms(self) -> int:
        return self._machine.now_ms() + self._ahead_ms

    def monotonic(self) -> float:
        return self._machine.monotonic() + self._ahead_ms / 1000

    def advance(self, by: int | timedelta) -> None:
        """Move on by a number of milliseconds, or by a `timedelta`."""
        milliseconds = _milliseconds(by)
        if milliseconds < 0:
            raise ValueError(f"the clock cannot go back: it was to be moved by {milliseconds} ms")
        self._ahead_ms += milliseconds


def _milliseconds(by: int | timedelta) -> int:
    return by // timedelta(milliseconds=1) if isinstance(by, timedelta) else by


class InlineExecutor:
    """Runs the work on the loop, one turn later than it was handed in, in the order it came."""

    def run(self, work: Callable[..., Result], /, *args: object) -> Awaitable[Result]:
        async def later() -> Result:
            await asyncio.sleep(0)
            return work(*args)

        return asyncio.ensure_future(later())


class SeededIds:
    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def uuid(self) -> bytes:
        # The first six bits keep the text form from beginning with a dash.
        return bytes([self._random.randrange(1, 128), *self._random.randbytes(15)])

    def below(self, limit: int) -> int:
        return self._random.randrange(limit)
