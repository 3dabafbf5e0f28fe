"""The offsets of a query's last batch, published when the query has ended.

A source learns that a batch is done by Spark's question for what follows it (`publishing`). Behind the last batch of a
query that is stopped, fails, or has `Trigger.Once`, nobody asks, and Spark kills the process that the source lives in.
The driver is told, though: listeners hear of every end, and the last progress of the query has the offsets of the last
batch that Spark has written down as done. Brokers and group are options of the source, which the query's plan has.

A listener that is a Python class of PySpark's gets each progress as Python objects, for dozens of calls between Python
and the JVM. This one implements Java's interface itself, and looks at nothing but starts and ends.
"""

import json
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from py4j.protocol import Py4JError

from ottla.client.errors import OttlaError
from ottla.spark.source.cluster import Lookup
from ottla.spark.source.limits import Offsets, from_offset_map
from ottla.spark.source.options import SourceOptions, read_options
from ottla.spark.source.publishing import PATIENCE_SECONDS, Publisher

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = logging.getLogger(__name__)
_RELATION = "StreamingRelationV2"

_watched: "WeakSet[SparkSession]" = WeakSet()
# By the `runId` of a query: what else is to be done when it has ended.
_at_end: dict[str, Callable[[], None]] = {}


def at_end(run_id: str, call: Callable[[], None]) -> None:
    """Have this called, in a thread of Spark's, when the run of a query has ended, in whichever way."""
    _at_end[run_id] = call


def watch_ends(spark: "SparkSession", format_name: str) -> None:
    """Publish what queries of this session have done when they end. Once for each session, however often called."""
    from pyspark.java_gateway import ensure_callback_server_started

    if spark in _watched:
        return
    gateway: Any = spark.sparkContext._gateway
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]  # PySpark has no types for it
    queries = spark._jsparkSession.streams()
    wrapper = gateway.jvm.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper
    queries.addListener(wrapper(_Ends(queries, format_name)))
    _watched.add(spark)


@dataclass(frozen=True)
class _Run:
    run_id: str
    query: Any
    has_ended: threading.Event = field(default_factory=threading.Event)


class _Ends:
    """Starts are told in the thread that starts the query, ends in a thread of Spark's, a moment after them."""

    def __init__(self, queries: Any, format_name: str) -> None:
        self._queries = queries
        self._format_name = format_name
        self._runs: dict[str, _Run] = {}

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """The run before publishes first: what it has to say must not come behind what this one does."""
        query_id = event.id()
        before = self._runs.get(query_id.toString())
        if before is not None:
            before.has_ended.wait(PATIENCE_SECONDS)
        self._runs[query_id.toString()] = _Run(event.runId().toString(), self._queries.get(query_id))

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """The source publishes these."""

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """There is nothing new."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        query_id = event.id().toString()
        call = _at_end.pop(event.runId().toString(), None)
        if call is not None:
            call()
        run = self._runs.get(query_id)
        if run is None or run.run_id != event.runId().toString():
            return
        del self._runs[query_id]
        try:
            for options, offsets in _done(run.query, self._format_name):
                if options.offsets_group is not None:
                    with Lookup(options) as lookup:
                        Publisher(options.offsets_group, is_asked_for=False).publish(lookup.admin, offsets, waits=True)
        except (OttlaError, Py4JError) as error:
            _LOG.warning("the last offsets of query %s were not published: %s", query_id, error)
        finally:
            run.has_ended.set()

    class Java:
        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


def _done(query: Any, format_name: str) -> Iterator[tuple[SourceOptions, Offsets]]:
    """By source of this format: its options, and where its last batch that is done has ended.

    A progress names sources by nothing but their order, which is that of the plan's different streaming leaves.
    """
    progress = query.lastProgress()
    if progress is None:
        return
    sources = json.loads(progress.json())["sources"]
    leaves = query.streamingQuery().analyzedPlan().collectLeaves().distinct()
    streams = [leaf for leaf in map(leaves.apply, range(leaves.size())) if leaf.isStreaming()]
    if len(streams) != len(sources):
        raise OttlaError(f"its plan has {len(streams)} sources, its progress {len(sources)}")
    for stream, source in zip(streams, sources, strict=True):
        is_ours = stream.getClass().getSimpleName() == _RELATION and stream.sourceName() == format_name
        if is_ours and source["endOffset"] is not None:
            options = read_options(dict(stream.extraOptions().asCaseSensitiveMap()), is_stream=True)
            yield options, from_offset_map(source["endOffset"])
