"""Where results go: topics and the lake, both exactly once.

In append mode the sink of `format("ottla")` is the query's own. Spark does not let sinks in Python take part in update
mode, so there each micro-batch is written by `foreachBatch`, under the query's id and the batch's number: a batch that
is repeated after a crash finds itself written.
"""

from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from ottla.pipelines.frame.pipeline import ToBatches, ToLake, ToTopic
from ottla.pipelines.frame.place import Place
from ottla.pipelines.frame.telling import reason

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter


class WriteFailed(RuntimeError):
    """A micro-batch could not be written; it will be repeated when the query is started again."""


_QUERY_ID = "sql.streaming.queryId"


def json_value(*columns: str | Column) -> Column:
    """The columns as one JSON object, which is the column `value`. Times are epoch milliseconds if they were made so
    before."""
    return F.to_json(F.struct(*columns), {"ignoreNullFields": "false"}).alias("value")


def writer_of(rows: "DataFrame", sink: ToTopic | ToLake | ToBatches, place: Place, pipeline: str) -> "DataStreamWriter":
    if isinstance(sink, ToBatches):
        hand_over = sink.write
        return rows.writeStream.foreachBatch(lambda batch, _number: hand_over(batch, place))
    if isinstance(sink, ToLake):
        writer = rows.writeStream.format("parquet").option("path", place.lake(pipeline, sink.table))
        return writer.partitionBy(*sink.partition_by) if sink.partition_by else writer
    options = _sink_options(sink, place)
    if sink.mode == "append":
        return rows.writeStream.format("ottla").options(**options)

    def write(batch: "DataFrame", number: int) -> None:
        query_id = batch.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
        numbered = {**options, "txnAppId": query_id, "txnVersion": str(number)}
        try:
            batch.write.format("ottla").mode("append").options(**numbered).save()
        except Exception as error:
            # Spark looks for a pattern in the text of this error, and a long one is more than its stack can hold.
            raise WriteFailed(reason(error)) from None

    return rows.writeStream.outputMode("update").foreachBatch(write)


def _sink_options(sink: ToTopic, place: Place) -> dict[str, Any]:
    options = {**place.spark_options, "deliveryGuarantee": "exactly-once"}
    return options if sink.topic is None else {**options, "topic": sink.topic}
