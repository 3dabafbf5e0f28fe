"""What the jobs of the client libraries have in common: the same settings, records and times for each of them."""

from __future__ import annotations

import asyncio
import random
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path

from bench.batches import RECORD_BYTES
from bench.job import Figures

ACKS = "all"
LINGER_MS = 10
BATCH_BYTES = 1_000_000
SILENCE_SECONDS = 30.0
LATENCY_WARM_SECONDS = 1.0
STAMP = struct.Struct(">id")
FILLER = bytes(RECORD_BYTES - STAMP.size)
_NOT_COUNTED = -1

# Text that differs from record to record, so that a codec has something to do and something to gain.
_DICE = random.Random(7)
VALUES = [_DICE.randbytes(RECORD_BYTES // 2).hex().encode() for _ in range(1000)]


class LibraryError(RuntimeError):
    """A library reported an error, or records did not come back."""


def rate(records: int, seconds: float) -> Figures:
    return {"records_per_second": records / seconds, "seconds": seconds, "records": records}


def peak_megabytes() -> float:
    """The most memory that this process had. `getrusage` counts what the process had that started it, too."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "VmHWM":
            return int(value.split()[0]) / 1024
    raise LibraryError("the kernel does not say how much memory this process had at most")


def value_of(number: int) -> bytes:
    """A value that carries when it was handed to the producer."""
    return STAMP.pack(number, time.perf_counter()) + FILLER


class Stopwatch:
    """Takes values as they arrive; those of the warm-up are left out."""

    def __init__(self, rate_per_second: int, seconds: float) -> None:
        self.warm = int(rate_per_second * LATENCY_WARM_SECONDS)
        self.expected = int(rate_per_second * seconds) + self.warm
        self.took: list[float] = []
        self.is_ready = threading.Event()

    @property
    def is_done(self) -> bool:
        return len(self.took) >= self.expected

    def arrived(self, value: bytes) -> None:
        now = time.perf_counter()
        number, sent = STAMP.unpack_from(value)
        if number == _NOT_COUNTED:
            self.is_ready.set()
        else:
            self.took.append(now - sent)

    def figures(self) -> Figures:
        if not self.is_done:
            raise LibraryError(f"expected {self.expected} records, {len(self.took)} came")
        counted = sorted(self.took[self.warm :])
        return {"p50_ms": counted[len(counted) // 2] * 1000, "p99_ms": counted[len(counted) * 99 // 100] * 1000}


async def pace_in_loop(stopwatch: Stopwatch, rate_per_second: int, send: Callable[[bytes], object]) -> None:
    """The same as `pace` for who sends from a loop: a coroutine sends, and the time of a value begins in it.

    When it is due is told by a thread. The timers of a loop have the resolution of a millisecond, so that a coroutine
    that sleeps from value to value sends them in pairs.
    """
    loop, due = asyncio.get_running_loop(), asyncio.Semaphore(0)

    def tell(_: bytes) -> None:
        loop.call_soon_threadsafe(due.release)

    telling = asyncio.create_task(asyncio.to_thread(pace, stopwatch, rate_per_second, tell))
    counted = 0
    while counted < stopwatch.expected:
        await due.acquire()
        is_ready = stopwatch.is_ready.is_set()
        send(value_of(counted if is_ready else _NOT_COUNTED))
        counted += is_ready
    await telling


def pace(stopwatch: Stopwatch, rate_per_second: int, send: Callable[[bytes], object]) -> None:
    """From a thread: first until something arrives, then one value after the other, each when it is due."""
    deadline = time.monotonic() + SILENCE_SECONDS
    while not stopwatch.is_ready.wait(0.05):
        if time.monotonic() > deadline:
            raise LibraryError(f"no record came within {SILENCE_SECONDS} s")
        send(value_of(_NOT_COUNTED))
    time.sleep(0.2)
    due = time.perf_counter()
    for number in range(stopwatch.expected):
        due += 1 / rate_per_second
        time.sleep(max(0.0, due - time.perf_counter()))
        send(value_of(number))
