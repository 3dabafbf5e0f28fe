"""Pipelines that run: one Spark session for all of them, what feeds them, and how they are stopped."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from ottla.pipelines.frame import job
from ottla.pipelines.frame.generating import feed
from ottla.pipelines.frame.pipeline import Pipeline
from ottla.pipelines.frame.place import Place
from ottla.pipelines.frame.progress import PROGRESS
from ottla.pipelines.frame.telling import PipelineError, PipelineFailed, reason
from ottla.pipelines.frame.topics import create_topics, ensure_topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


Sent = TypeVar("Sent")

_FIRST_BATCH_SECONDS = 20.0
_GLANCE_SECONDS = 0.2

_logger = logging.getLogger(__name__)


class FeedFailed(PipelineError):
    """Made-up events are sent no more, and the reason."""


class Feeder:
    """Generators in threads: the events of pipelines, in their time, until stopped. One that fails ends alone, and
    `check` tells."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._failures: list[tuple[str, Exception]] = []
        self.sent: dict[str, int] = {}

    def start(self, pipeline: Pipeline, seed: int, start_ms: int, rate: float | None = None) -> None:
        """As its generator gives them; a pipeline that has a way of its own feeds itself."""
        wanted = rate or pipeline.rate
        if pipeline.feed is not None:
            sent = self._counted(pipeline.name, pipeline.feed(self._place, self._stop, seed, start_ms, wanted))
            # A deque without room takes everything, and keeps nothing.
            self._run(pipeline.name, deque, sent, 0)
            return
        events = self._counted(pipeline.name, pipeline.generate(seed, start_ms, wanted))
        self._run(pipeline.name, feed, events, self._place.brokers, self._stop)

    def check(self) -> None:
        """Raise what ended a generator."""
        for name, failure in self._failures:
            text = f"the events of {name} are sent no more: {type(failure).__name__}: {reason(failure)}"
            raise FeedFailed(text) from failure

    def stop(self) -> None:
        """May be called again."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, name: str, work: Callable[..., object], *arguments: object) -> None:
        def run() -> None:
            try:
                work(*arguments)
            except Exception as failure:
                _logger.exception("the generator of %s has failed", name)
                self._failures.append((name, failure))

        thread = threading.Thread(target=run, name=f"feed-{name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _counted(self, name: str, events: Iterator[Sent]) -> Iterator[Sent]:
        self.sent[name] = 0
        for event in events:
            yield event
            self.sent[name] += 1


class Running:
    """Pipelines in one session. `start` is for a thread that has prepared the session (`session.prepare`), `stop` for
    any: it ends queries where they are, and they go on from there when they are started again."""

    def __init__(self, spark: "SparkSession", place: Place, every: str) -> None:
        self.spark = spark
        self._place = place
        self._every = every
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._queries: list[StreamingQuery] = []
        # The `runId`s of those that ran until they were stopped.
        self.stopped: set[str] = set()

    @property
    def queries(self) -> "list[StreamingQuery]":
        with self._lock:
            return list(self._queries)

    def start(self, pipelines: Sequence[Pipeline]) -> None:
        """One pipeline after the other, each when the one before has its first answers: where all began at once, the
        first of them would come as late as the last."""
        for pipeline in pipelines:
            job.begin(self.spark, pipeline, self._place)
            self._await_first_batches([self._start_query(pipeline, query) for query in pipeline.queries])

    def once(self, pipelines: Iterable[Pipeline]) -> None:
        """Work off what is there now, and end; or earlier, when it is stopped."""
        for pipeline in pipelines:
            job.run_once(self.spark, pipeline, self._place, self._begun, self._stop)

    def check(self) -> None:
        """Raise what ended a query that should run."""
        for query in self.queries:
            failure = query.exception()
            if failure is not None:
                raise PipelineFailed(f"query {query.name} failed: {reason(failure)}")

    def stop(self) -> None:
        """All at once: each waits for what it has under way to be aborted."""
        self._stop.set()
        if queries := self.queries:
            self.stopped.update(str(query.runId) for query in queries if query.isActive)
            with ThreadPoolExecutor(len(queries)) as stopping:
                list(stopping.map(lambda query: query.stop(), queries))

    def _start_query(self, pipeline: Pipeline, query: job.AnyQuery) -> "StreamingQuery | None":
        """None where all is to stop by now."""
        if self._stop.is_set():
            return None
        started = job.start_query(self.spark, pipeline, query, self._place, self._every)
        self._begun(started)
        return started

    def _begun(self, query: "StreamingQuery") -> None:
        """A query that was started while all was being stopped is not among those that `stop` has seen."""
        with self._lock:
            self._queries.append(query)
        if self._stop.is_set():
            self.stopped.add(str(query.runId))
            query.stop()

    def _await_first_batches(self, queries: "Iterable[StreamingQuery | None]") -> None:
        """Until each has done something, or has nothing to do; not for ever."""
        ends_at = time.monotonic() + _FIRST_BATCH_SECONDS
        for query in queries:
            while query is not None and not _has_begun(query) and time.monotonic() < ends_at:
                if self._stop.wait(_GLANCE_SECONDS):
                    return


def _has_begun(query: "StreamingQuery") -> bool:
    is_waiting = str(query.status["message"]).startswith("Waiting")
    return is_waiting or query.lastProgress is not None or not query.isActive


def prepare_topics(pipelines: Iterable[Pipeline], brokers: Mapping[str, object]) -> None:
    create_topics([PROGRESS], brokers)
    for pipeline in pipelines:
        ensure_topics(pipeline, brokers)
