"""Staying awake between requests that follow each other closely.

A thread that sleeps in the kernel takes 30 to 60 microseconds to wake, more in a virtual machine, and a client that
sends one request after the other pays that each time: as much as the broker's own work on a small fetch. So, after
requests that came close together, the loop asks for the next one without sleeping, for `ottla.busy.poll.us` at most.

What must stay true:
- A broker without requests, or with requests that are far apart, sleeps: `_trust` grows with every request that comes
  soon and falls twice as fast with every one that does not, and nothing is polled for before it has grown.
- Other processes that want the processor get it: each round of polling yields.
"""

import asyncio
import os
import time
from collections.abc import Callable

CLOSE_SECONDS = 0.0003
MOST_TRUST = 8
ENOUGH_TRUST = 4


def _do_nothing() -> None:
    pass


_yield_processor: Callable[[], None] = getattr(os, "sched_yield", _do_nothing)


def processors() -> int:
    """How many processors this process may use: with one, staying awake keeps the clients from running."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Vigil:
    """`arrived` is called whenever a client sent something; 0 seconds of vigil is none at all."""

    __slots__ = ("_clock", "_deadline", "_last_arrival", "_loop", "_news", "_seconds", "_trust", "awake")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, seconds: float, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.awake = False
        self._loop = loop
        self._seconds = seconds if processors() > 1 else 0.0
        self._clock = clock
        self._trust = 0
        self._news = False
        self._deadline = 0.0
        self._last_arrival = 0.0

    def arrived(self) -> None:
        if self.awake:
            self._news = True
            return
        if not self._seconds:
            return
        now = self._clock()
        if now - self._last_arrival < CLOSE_SECONDS:
            self._trust += 1
        else:
            self._trust = max(self._trust - 2, 0)
        self._last_arrival = now
        if self._trust >= ENOUGH_TRUST:
            self.awake = self._news = True
            self._loop.call_soon(self._watch)

    def _watch(self) -> None:
        """One round: the loop looks for events without sleeping, because this is called again right after."""
        now = self._clock()
        if self._news:
            self._news = False
            self._deadline = now + self._seconds
            self._trust = min(self._trust + 1, MOST_TRUST)
        elif now >= self._deadline:
            self.awake = False
            self._trust -= 2
            self._last_arrival = now - self._seconds
            return
        else:
            _yield_processor()
        self._loop.call_soon(self._watch)
