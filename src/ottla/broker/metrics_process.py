"""The process around the broker: memory, processor time, files, garbage collection, and how late its loop is."""

import asyncio
import gc
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ottla.broker.metrics_text import COUNTER, GAUGE, HISTOGRAM, Family, Histogram

CPU = Family("process_cpu_seconds_total", COUNTER, "Processor time of this process, in seconds.")
RESIDENT = Family("process_resident_memory_bytes", GAUGE, "Memory of this process that is in RAM.")
VIRTUAL = Family("process_virtual_memory_bytes", GAUGE, "Address space of this process.")
OPEN_FILES = Family("process_open_fds", GAUGE, "Open file descriptors.")
MOST_FILES = Family("process_max_fds", GAUGE, "How many file descriptors may be open.")
STARTED = Family("process_start_time_seconds", GAUGE, "When this process started, in seconds since 1970.")
COLLECTIONS = Family("python_gc_collections_total", COUNTER, "Runs of the garbage collector.", ("generation",))
COLLECTED = Family(
    "python_gc_objects_collected_total", COUNTER, "Objects that the garbage collector freed.", ("generation",)
)
UNCOLLECTABLE = Family(
    "python_gc_objects_uncollectable_total", COUNTER, "Objects that it could not free.", ("generation",)
)
PYTHON = Family("python_info", GAUGE, "The Python that runs this process; always 1.", ("implementation", "version"))
LAG = Family("ottla_loop_lag_seconds", HISTOGRAM, "How much later than asked for the event loop calls a timer.")
FAMILIES = (
    CPU,
    RESIDENT,
    VIRTUAL,
    OPEN_FILES,
    MOST_FILES,
    STARTED,
    COLLECTIONS,
    COLLECTED,
    UNCOLLECTABLE,
    PYTHON,
    LAG,
)

LAG_BOUNDS_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
LAG_PERIOD_SECONDS = 0.5
_PROC = "/proc/self"


@dataclass(frozen=True, slots=True)
class ProcessNumbers:
    """What the system tells of this process; None where it does not."""

    cpu_seconds: float
    resident_bytes: int | None = None
    virtual_bytes: int | None = None
    open_files: int | None = None
    most_files: int | None = None
    started_seconds: float | None = None


def read_process() -> ProcessNumbers:
    """Ask the system. It takes a while where very many files are open, so it runs in the executor."""
    cpu_seconds = time.process_time()
    try:
        with open(f"{_PROC}/stat", "rb") as file:
            # The name of the program is in parentheses and may have blanks; what follows has a fixed order.
            fields = file.read().rpartition(b")")[2].split()
        open_files = len(os.listdir(f"{_PROC}/fd"))
        since_boot = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        started = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + since_boot
        resident_bytes = int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
        return ProcessNumbers(cpu_seconds, resident_bytes, int(fields[20]), open_files, _most_files(), started)
    except (OSError, AttributeError, IndexError, ValueError):
        return ProcessNumbers(cpu_seconds, most_files=_most_files())


def _most_files() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def process_lines(numbers: ProcessNumbers) -> Iterator[str]:
    for family, value in (
        (CPU, numbers.cpu_seconds),
        (RESIDENT, numbers.resident_bytes),
        (VIRTUAL, numbers.virtual_bytes),
        (OPEN_FILES, numbers.open_files),
        (MOST_FILES, numbers.most_files),
        (STARTED, numbers.started_seconds),
    ):
        yield family.head
        if value is not None:
            yield family.line(value)
    generations = gc.get_stats()
    for family, key in ((COLLECTIONS, "collections"), (COLLECTED, "collected"), (UNCOLLECTABLE, "uncollectable")):
        yield family.head
        for generation, stats in enumerate(generations):
            yield family.line(stats[key], generation)
    yield PYTHON.head
    yield PYTHON.line(1, platform.python_implementation(), platform.python_version())


class LoopLag:
    """Asks the loop for a timer, again and again, and notes how late it comes."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float]) -> None:
        self.times = Histogram(LAG_BOUNDS_SECONDS)
        self._loop = loop
        self._clock = clock
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._due = self._clock() + LAG_PERIOD_SECONDS
        self._timer = self._loop.call_later(LAG_PERIOD_SECONDS, self._called)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _called(self) -> None:
        self.times.observe(max(0.0, self._clock() - self._due))
        self.start()

    def lines(self) -> Iterator[str]:
        yield LAG.head
        yield from self.times.lines(LAG)
