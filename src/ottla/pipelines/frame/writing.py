"""Where answers go: topics and the lake, both exactly once, all answers of a query in one pass.

The rows of all answers are one stream, with the columns `topic`, `key` and `value` for records, and one column of
structs for each table of the lake. Each micro-batch of it is one job: tasks write files of the lake, and stage records
or hand them over; the driver adds the files to the lake's log, and decides (`ottla.spark.sink.micro_batch`), under the
query's id and the batch's number. A batch that is repeated after a crash finds itself written.
"""

from collections.abc import Callable
from functools import partial, reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from ottla.pipelines.frame import lake
from ottla.pipelines.frame.checkpoints import Checkpoint
from ottla.pipelines.frame.judging import judged, letters
from ottla.pipelines.frame.lake import LakeLog, LakeTable, LakeTasks
from ottla.pipelines.frame.pipeline import BatchQuery, Query, ToLake, ToTopic
from ottla.pipelines.frame.reading import Streams
from ottla.pipelines.frame.telling import reason
from ottla.spark.sink.micro_batch import MicroBatchWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter


class WriteFailed(RuntimeError):
    """A micro-batch could not be written; it will be repeated when the query is started again."""


def json_value(*columns: str | Column) -> Column:
    """The columns as one JSON object, which is the column `value`. Times are epoch milliseconds if they were made so
    before."""
    return F.to_json(F.struct(*columns), {"ignoreNullFields": "false"}).alias("value")


def writer_of(query: Query | BatchQuery, streams: Streams) -> "DataStreamWriter":
    """What starts the query."""
    directory = streams.place.checkpoint(streams.pipeline.name, query.name)
    if isinstance(query, BatchQuery):
        # A pipeline says first where it cannot write.
        writer_of_batches = _batches(query, streams)
        Checkpoint(streams.spark, directory).prepare({})
        return writer_of_batches
    checkpoint = Checkpoint(streams.spark, directory)
    tables = tuple(_tables(query, streams))
    logs = {table.name: LakeLog(streams.spark, table.directory) for table in tables}
    first_numbers = checkpoint.prepare({name: log.next_number for name, log in logs.items()})
    writer = MicroBatchWriter(
        streams.place.spark_options,
        aside=LakeTasks(tables) if tables else None,
        settle=partial(lake.settled, logs, first_numbers) if tables else None,
    )
    rows = _rows(query, streams, tables)
    return rows.writeStream.outputMode(query.mode).foreachBatch(_told_briefly(writer.write))


def _batches(query: BatchQuery, streams: Streams) -> "DataStreamWriter":
    writer = MicroBatchWriter(streams.place.spark_options)
    records = query.build(streams)
    place, pipeline = streams.place, streams.pipeline

    def write(batch: "DataFrame", number: int) -> None:
        query.write(batch.select(*records.columns), place)
        writer.write(letters(batch, pipeline), number)

    rows = judged(streams.with_fields(records), pipeline)
    return rows.writeStream.foreachBatch(_told_briefly(write))


def _told_briefly(write: "Callable[[DataFrame, int], None]") -> "Callable[[DataFrame, int], None]":
    """Spark looks for a pattern in the text of an error, and a long one is more than its stack can hold."""

    def told(batch: "DataFrame", number: int) -> None:
        try:
            write(batch, number)
        except Exception as error:
            raise WriteFailed(reason(error)) from None

    return told


def _tables(query: Query, streams: Streams) -> "list[LakeTable]":
    place, name = streams.place, streams.pipeline.name
    return [
        LakeTable(one.sink.table, place.lake_path(name, one.sink.table), one.sink.partition_by)
        for one in query.answers
        if isinstance(one.sink, ToLake)
    ]


def _rows(query: Query, streams: Streams, tables: tuple[LakeTable, ...]) -> "DataFrame":
    """Of all answers, and of the letters."""
    answers = [(answer.build(streams), answer) for answer in query.answers]
    schemas = {one.sink.table: rows.schema for rows, one in answers if isinstance(one.sink, ToLake)}
    empty = {table.column: F.lit(None).cast(schemas[table.name]).alias(table.column) for table in tables}
    parts = [_unified(rows, answer.sink, empty) for rows, answer in answers]
    if query.takes_rejects:
        rejects = letters(judged(streams.raw(), streams.pipeline), streams.pipeline)
        parts.insert(0, _unified(rejects, ToTopic(), empty))
    return reduce(lambda left, right: left.unionAll(right), parts)


def _unified(rows: "DataFrame", sink: ToTopic | ToLake, empty: dict[str, Column]) -> "DataFrame":
    if isinstance(sink, ToLake):
        whole = F.struct(*(F.col(name) for name in rows.columns))
        own = f"{lake.PREFIX}{sink.table}"
        nothing = [F.lit(None).cast(kind).alias(name) for name, kind in _RECORD]
        return rows.select(*nothing, *(whole.alias(own) if name == own else column for name, column in empty.items()))
    topic = F.col("topic") if sink.topic is None else F.lit(sink.topic).alias("topic")
    return rows.select(topic, F.col("key").cast("binary").alias("key"), F.col("value").cast("string"), *empty.values())


_RECORD = (("topic", "string"), ("key", "binary"), ("value", "string"))
