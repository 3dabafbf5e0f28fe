"""Runs the queries of a pipeline in a Spark session."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.pipelines.frame.pipeline import UNHURRIED, Pipeline, Query, ToTopic
from ottla.pipelines.frame.place import Place
from ottla.pipelines.frame.telling import PipelineFailed, told_as

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from ottla.pipelines.frame.reading import Streams

REJECTS = "rejects"


def queries_of(pipeline: Pipeline) -> tuple[Query, ...]:
    """Its own, and the one that takes what does not count."""
    return (*pipeline.queries, rejects_query())


def rejects_query() -> Query:
    return Query(REJECTS, _rejects, ToTopic(), every=UNHURRIED)


def start_query(spark: "SparkSession", pipeline: Pipeline, query: Query, place: Place, every: str) -> "StreamingQuery":
    """From where it was; it runs until it is stopped."""
    with told_as(PipelineFailed, f"query {query_name(pipeline, query)} could not be started"):
        return _writer(spark, pipeline, query, place).trigger(processingTime=query.pace(every)).start()


def run_once(
    spark: "SparkSession",
    pipeline: Pipeline,
    place: Place,
    started: "Callable[[StreamingQuery], None] | None" = None,
    stop: threading.Event | None = None,
) -> None:
    """Work off what is there, one query after the other: each finds all that the ones before it have written. None is
    begun after `stop` is set; whoever sets it stops the one that runs."""
    for query in queries_of(pipeline):
        if stop is not None and stop.is_set():
            return
        name = query_name(pipeline, query)
        with told_as(PipelineFailed, f"query {name} could not be started"):
            running = _writer(spark, pipeline, query, place).trigger(availableNow=True).start()
        if started is not None:
            started(running)
        with told_as(PipelineFailed, f"query {name} failed"):
            running.awaitTermination()


def query_name(pipeline: Pipeline, query: Query) -> str:
    return f"{pipeline.name}.{query.name}"


def _writer(spark: "SparkSession", pipeline: Pipeline, query: Query, place: Place) -> "DataStreamWriter":
    from ottla.pipelines.frame.reading import Streams
    from ottla.pipelines.frame.writing import writer_of

    rows = query.build(Streams(spark, pipeline, place, query.name))
    writer = writer_of(rows, query.sink, place, pipeline.name).queryName(query_name(pipeline, query))
    return writer.option("checkpointLocation", place.checkpoint(pipeline.name, query.name))


def _rejects(streams: "Streams") -> "DataFrame":
    from ottla.pipelines.frame.judging import rejected

    return rejected(streams.raw(), streams.pipeline)
