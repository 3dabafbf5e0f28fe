"""A run of pipelines from beginning to end: session, queries, reports, stop.

The session is made and the queries are started in a thread of their own, so that the one that was called stays free to
draw a screen and to hear Ctrl-C, which Spark would take for itself otherwise.
"""

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ottla.pipelines.frame.pipeline import Pipeline
from ottla.pipelines.frame.place import Place
from ottla.pipelines.frame.progress import FAILED, Progress, Reporter
from ottla.pipelines.frame.running import Running, prepare_topics
from ottla.pipelines.frame.session import spark_session

TICK_SECONDS = 1.0

Tick = Callable[[list[Progress]], None]


@dataclass(frozen=True)
class Order:
    """What to run, where, and for how long: `is_once` ends when all that is there is worked off, `seconds` after so
    long; without either it goes on. `settings` are Spark's."""

    pipelines: Sequence[Pipeline]
    place: Place
    master: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    every: str = "1 second"
    is_once: bool = False
    seconds: float | None = None


class _Work:
    """What goes on in the thread, and how it ended."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._thread = threading.Thread(target=self._run, name="pipelines", daemon=True)
        self.running: Running | None = None
        self.failure: BaseException | None = None
        self._thread.start()

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def _run(self) -> None:
        order = self._order
        try:
            spark = spark_session(master=order.master, settings=order.settings, source=order.place.source)
            self.running = Running(spark, order.place, order.every)
            if order.is_once:
                self.running.once(order.pipelines)
            else:
                self.running.start(order.pipelines)
        except BaseException as error:
            self.failure = error

    def end(self) -> None:
        """Stop what was started; a session that is being made is waited for."""
        while self.running is None and not self.is_over:
            time.sleep(TICK_SECONDS / 10)
        if self.running is not None:
            self.running.stop()
            self._thread.join()
            self.running.spark.stop()


def carry_out(order: Order, tick: Tick, stop: threading.Event) -> None:
    """Run it until it is done, its time is over, or `stop` is set. `tick` is told about every second how far it is.

    Raises what kept it from running, or what ended a query.
    """
    prepare_topics(order.pipelines, order.place.brokers)
    ends_at = None if order.seconds is None else time.monotonic() + order.seconds
    work = _Work(order)
    try:
        with Reporter(order.place.brokers) as reporter:
            while not stop.wait(TICK_SECONDS):
                found = reporter.report(work.running.queries if work.running else ())
                tick(found)
                if work.failure is not None:
                    raise work.failure
                if work.running is not None and any(one.state == FAILED for one in found):
                    work.running.check()
                if (order.is_once and work.is_over) or (ends_at is not None and time.monotonic() >= ends_at):
                    break
    finally:
        work.end()


@contextlib.contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """Set by Ctrl-C and SIGTERM; a second Ctrl-C does not wait for anything."""
    stop = threading.Event()

    def set_stop(number: int, frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, set_stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
