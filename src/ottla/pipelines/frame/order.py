"""A run of pipelines from beginning to end: topics, generators, session, queries, reports, stop.

It ends in this order: generators, queries, the last report, the session. So the last report says what became of each
query, and `ottla pipeline status` shows nothing as running that was stopped.

The session is made and the queries are started in a thread of their own, so that the one that was called stays free to
draw a screen and to hear Ctrl-C, which Spark would take for itself otherwise.
"""

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ottla.client.errors import OttlaError
from ottla.pipelines.frame.pipeline import Pipeline
from ottla.pipelines.frame.place import Place
from ottla.pipelines.frame.progress import FAILED, Progress, Reporter
from ottla.pipelines.frame.running import Feeder, Running, prepare_topics
from ottla.pipelines.frame.session import SparkFailed, spark_session
from ottla.pipelines.frame.telling import told_as

TICK_SECONDS = 1.0
# Windows has no end of a terminal.
_STOPPING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]

Tick = Callable[[list[Progress]], None]


@dataclass(frozen=True)
class Order:
    """What to run, where, and for how long: `is_once` ends when all that is there is worked off, `seconds` after so
    long; without either it goes on. `settings` are Spark's. `is_fed` has made-up events sent too: `rate` a second for
    each pipeline, or `rate_in_all`, shared out in proportion to what is usual for each, or as many as is usual.
    `before_spark` is waited for before there is a session; it returns early when the event is set."""

    pipelines: Sequence[Pipeline]
    place: Place
    master: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    every: str = "1 second"
    is_once: bool = False
    seconds: float | None = None
    is_fed: bool = False
    rate: float | None = None
    rate_in_all: float | None = None
    before_spark: Callable[[threading.Event], None] | None = None

    def rate_of(self, pipeline: Pipeline) -> float:
        """How many events a second are sent for it."""
        if self.rate_in_all is not None:
            return self.rate_in_all * pipeline.rate / sum(one.rate for one in self.pipelines)
        return pipeline.rate if self.rate is None else self.rate


class _Work:
    """What goes on in the thread, and how it ended."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._thread = threading.Thread(target=self._run, name="pipelines", daemon=True)
        self._running: Running | None = None
        self._failure: BaseException | None = None
        self._stop = threading.Event()
        self._thread.start()

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def report(self, reporter: Reporter) -> list[Progress]:
        if self._running is None:
            # Spark may not even be installed yet.
            return reporter.report(())
        with told_as(SparkFailed, "Spark has gone away"):
            return reporter.report(self._running.queries)

    def check(self, found: list[Progress]) -> None:
        """Raise what kept it from running, or what ended a query."""
        if self._failure is not None:
            raise self._failure
        if self._running is not None and any(one.state == FAILED for one in found):
            self._running.check()

    def _run(self) -> None:
        order = self._order
        try:
            if order.before_spark is not None:
                order.before_spark(self._stop)
                if self._stop.is_set():
                    return
            spark = spark_session(master=order.master, settings=order.settings, source=order.place.source)
            self._running = Running(spark, order.place, order.every)
            if order.is_once:
                self._running.once(order.pipelines)
            else:
                self._running.start(order.pipelines)
        except BaseException as error:
            self._failure = error

    def end(self, reporter: Reporter) -> None:
        """Stop what was started, and report that; a session that is being made is waited for."""
        self._stop.set()
        while self._running is None and not self.is_over:
            time.sleep(TICK_SECONDS / 10)
        if self._running is None:
            return
        with told_as(SparkFailed, "Spark has gone away"):
            self._running.stop()
            self._thread.join()
            # Without brokers nobody can be told; that the run is silent is seen by whoever looks.
            with contextlib.suppress(OttlaError):
                reporter.report(self._running.queries, self._running.stopped)
            self._running.spark.stop()


@contextlib.contextmanager
def fed(order: Order) -> Iterator[Feeder]:
    """The topics are there, and events are sent to them where the order wants that."""
    prepare_topics(order.pipelines, order.place.brokers)
    feeder = Feeder(order.place)
    try:
        if order.is_fed:
            now_ms = time.time_ns() // 1_000_000
            for pipeline in order.pipelines:
                feeder.start(pipeline, now_ms, now_ms, order.rate_of(pipeline))
        yield feeder
    finally:
        feeder.stop()


def carry_out(order: Order, feeder: Feeder, tick: Tick, stop: threading.Event) -> None:
    """Run it until it is done, its time is over, or `stop` is set. `tick` is told about every second how far it is.

    Raises what kept it from running, or what ended a query or a generator.
    """
    ends_at = None if order.seconds is None else time.monotonic() + order.seconds
    with Reporter(order.place.brokers) as reporter:
        work = _Work(order)
        try:
            while not stop.wait(TICK_SECONDS):
                was_over = work.is_over
                found = work.report(reporter)
                tick(found)
                work.check(found)
                feeder.check()
                if (order.is_once and was_over) or (ends_at is not None and time.monotonic() >= ends_at):
                    break
        finally:
            feeder.stop()
            work.end(reporter)


@contextlib.contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """Set by Ctrl-C, SIGTERM and the end of the terminal; a second Ctrl-C does not wait for anything."""
    stop = threading.Event()

    def set_stop(number: int, frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, set_stop) for number in _STOPPING}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
