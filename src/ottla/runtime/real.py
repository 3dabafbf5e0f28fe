"""The machine's own clock, threads and randomness: the adapters behind the interfaces of this package."""

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ottla.runtime.open_files import DEFAULT_LIMIT

Result = TypeVar("Result")

ZERO_UUID = bytes(16)
METADATA_TOPIC_ID = bytes(15) + b"\x01"


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


class ThreadExecutor:
    """A few threads for calls that wait in the kernel, or work in native code, with the GIL released."""

    def __init__(self, threads: int = 4) -> None:
        self._pool = ThreadPoolExecutor(threads, "ottla-disk")

    def run(self, work: Callable[..., Result], /, *args: object) -> Awaitable[Result]:
        return asyncio.get_running_loop().run_in_executor(self._pool, work, *args)

    def shutdown(self) -> None:
        self._pool.shutdown(wait=True)


def usual_open_files() -> int:
    """How many files of logs may be open where nobody says: half of the descriptors that this process may have."""
    try:
        import resource
    except ImportError:
        return DEFAULT_LIMIT
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return DEFAULT_LIMIT if allowed == resource.RLIM_INFINITY else max(allowed // 2, 1)


class SystemIds:
    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def uuid(self) -> bytes:
        while True:
            candidate = os.urandom(16)
            # Kafka never hands out an id whose text form starts with a dash, so that tools can take it as an argument.
            if candidate not in (ZERO_UUID, METADATA_TOPIC_ID) and candidate[0] >> 2 != 62:
                return candidate

    def below(self, limit: int) -> int:
        return self._random.randrange(limit)
