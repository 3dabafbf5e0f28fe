"""Runs the queries of a pipeline in a Spark session."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.pipelines.frame.pipeline import BatchQuery, Pipeline, Query
from ottla.pipelines.frame.place import Place, is_address
from ottla.pipelines.frame.telling import PipelineFailed, told_as

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter
AnyQuery = Query | BatchQuery

# A batch without events only forgets what is too old, unless the query waits for time; the next one with events does so
# as well.
_ALSO_WITHOUT_EVENTS = "spark.sql.streaming.noDataMicroBatches.enabled"
# For checkpoints on a local disk. Spark's own choice starts a process for each file that it makes there, and two for
# each that it renames.
_FILES = "spark.sql.streaming.checkpointFileManagerClass"
_PLAIN_FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


def start_query(
    spark: "SparkSession", pipeline: Pipeline, query: AnyQuery, place: Place, every: str
) -> "StreamingQuery":
    """From where it was; it runs until it is stopped."""
    with told_as(PipelineFailed, f"query {query_name(pipeline, query)} could not be started"):
        return _writer(spark, pipeline, query, place).trigger(processingTime=query.pace(every)).start()


def begin(spark: "SparkSession", pipeline: Pipeline, place: Place) -> None:
    """Before the first query of a run is started: put checkpoints aside where that is wanted."""
    if place.begin is not None:
        from ottla.pipelines.frame.beginning import put_aside

        put_aside(spark, pipeline, place)


def run_once(
    spark: "SparkSession",
    pipeline: Pipeline,
    place: Place,
    started: "Callable[[StreamingQuery], None] | None" = None,
    stop: threading.Event | None = None,
) -> None:
    """Work off what is there, one query after the other: each finds all that the ones before it have written. None is
    begun after `stop` is set; whoever sets it stops the one that runs."""
    begin(spark, pipeline, place)
    for query in pipeline.queries:
        if stop is not None and stop.is_set():
            return
        name = query_name(pipeline, query)
        with told_as(PipelineFailed, f"query {name} could not be started"):
            running = _writer(spark, pipeline, query, place).trigger(availableNow=True).start()
        if started is not None:
            started(running)
        with told_as(PipelineFailed, f"query {name} failed"):
            running.awaitTermination()


def query_name(pipeline: Pipeline, query: AnyQuery) -> str:
    return f"{pipeline.name}.{query.name}"


def _writer(spark: "SparkSession", pipeline: Pipeline, query: AnyQuery, place: Place) -> "DataStreamWriter":
    from ottla.pipelines.frame.reading import Streams
    from ottla.pipelines.frame.writing import writer_of

    # Each query takes the settings that the session has when it is started.
    spark.conf.set(_ALSO_WITHOUT_EVENTS, str(query.waits_for_time).lower())
    if not is_address(place.data) and spark.conf.get(_FILES, None) is None:
        spark.conf.set(_FILES, _PLAIN_FILES)
    writer = writer_of(query, Streams(spark, pipeline, place, query.name, query.phase)).queryName(
        query_name(pipeline, query)
    )
    return writer.option("checkpointLocation", place.checkpoint(pipeline.name, query.name))
