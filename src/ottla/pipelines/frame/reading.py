"""What queries are built from: events that count, result topics of other queries, tables.

The source is `format("ottla")`, or Spark's own Kafka connector; the rows are the same.
"""

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from ottla.pipelines.frame.judging import verdict
from ottla.pipelines.frame.pipeline import Input, Pipeline
from ottla.pipelines.frame.place import Place
from ottla.pipelines.frame.schemas import RECORD, merged_fields, struct_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader


class Streams:
    """The streams and tables of one query of a pipeline."""

    def __init__(self, spark: "SparkSession", pipeline: Pipeline, place: Place, query: str) -> None:
        self.spark = spark
        self.pipeline = pipeline
        self.place = place
        self._group = f"{pipeline.name}-{query}"
        self._readings = 0

    def events(self, *topics: str) -> "DataFrame":
        """The accepted events of these inputs, of all where none is named, with a watermark on `event_time`."""
        inputs = tuple(map(self.pipeline.input_of, topics)) or self.pipeline.inputs
        accepted = self._inputs(inputs, RECORD).where(verdict(self.pipeline, inputs).isNull())
        return accepted.withColumn("event_time", F.timestamp_millis("event_time")).withWatermark(
            "event_time", f"{2 * self.pipeline.lateness_seconds} seconds"
        )

    def raw(self) -> "DataFrame":
        """All records of all inputs, with the fields of those that have them; nothing is left out."""
        return self._inputs(self.pipeline.inputs, f"{RECORD}, value BINARY")

    def chained(self, topic: str, fields: str) -> "DataFrame":
        """What another query has written, as soon as it is committed."""
        return self._stream([topic], struct_of(fields), RECORD)

    def everything(self, pattern: str) -> "DataFrame":
        """All records of all topics in whose names the pattern is found, as they are, with their headers."""
        reader = self._reader({**self._cluster(), "subscribePattern": pattern, "includeHeaders": "true"})
        return (reader if self.place.source == "kafka" else reader.option("offsetsGroup", self._group)).load()

    def table(self, topic: str, fields: str) -> "DataFrame":
        """The last value of each key of a compacted topic, as it is when a micro-batch begins. Keys whose last value is
        a tombstone are not in it."""
        reader = self.spark.read.format(self.place.source).options(**self._options([topic]))
        rows = reader.load().select(F.col("key").cast("string").alias("key"), "value", "offset")
        last = rows.groupBy("key").agg(F.max_by("value", "offset").alias("value")).where(F.col("value").isNotNull())
        parsed = F.from_json(F.col("value").cast("string"), struct_of(fields))
        return last.select("key", parsed.alias("fields")).select("key", "fields.*")

    def _inputs(self, inputs: tuple[Input, ...], record: str) -> "DataFrame":
        return self._stream([one.topic.name for one in inputs], merged_fields(inputs), record)

    def _stream(self, topics: list[str], fields: StructType, record: str) -> "DataFrame":
        columns = struct_of(record)
        reader = self._reader(self._options(topics))
        if self.place.source == "kafka":
            parsed = F.from_json(F.col("value").cast("string"), fields)
            return reader.load().select(*columns.names, parsed.alias("fields")).select(*columns.names, "fields.*")
        self._readings += 1
        group = self._group if self._readings == 1 else f"{self._group}-{self._readings}"
        both = StructType([*fields.fields, *columns.fields])
        return reader.schema(both).option("valueFormat", "json").option("offsetsGroup", group).load()

    def _reader(self, options: dict[str, Any]) -> "DataStreamReader":
        reader = self.spark.readStream.format(self.place.source).options(**options)
        reader = reader.option("startingOffsets", "earliest")
        if self.place.most_per_batch is not None:
            reader = reader.option("maxOffsetsPerTrigger", self.place.most_per_batch)
        return reader

    def _options(self, topics: list[str]) -> dict[str, Any]:
        return {**self._cluster(), "subscribe": ",".join(topics)}

    def _cluster(self) -> dict[str, Any]:
        return {**self.place.spark_options, "kafka.isolation.level": "read_committed"}


def once_each(events: "DataFrame") -> "DataFrame":
    """Without events that came before. A repeated event that counts comes before its id is forgotten: ids are kept for
    as long as the watermark waits after their event time has passed, which is twice what an event may be late."""
    return events.dropDuplicatesWithinWatermark(["event_id"])
