"""What queries are built from: events that count, result topics of other queries, tables.

The source is `format("ottla")`, or Spark's own Kafka connector; the rows are the same.
"""

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from ottla.pipelines.frame.judging import row_verdict, verdict
from ottla.pipelines.frame.pipeline import Pipeline, Source
from ottla.pipelines.frame.place import Place
from ottla.pipelines.frame.schemas import RECORD, fields_of, merged_fields, struct_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

_WHOLE_RECORD = f"{RECORD}, value BINARY"


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
        """All records of all inputs and tables, with the fields of those that have them; nothing is left out."""
        return self._inputs((*self.pipeline.inputs, *self.pipeline.tables), _WHOLE_RECORD)

    def chained(self, topic: str, fields: str) -> "DataFrame":
        """What another query has written, as soon as it is committed."""
        return self._stream([topic], struct_of(fields), RECORD)

    def everything(self, pattern: str) -> "DataFrame":
        """All records of all topics in whose names the pattern is found, as they are, with their headers."""
        reader = self._reader({**self._cluster(), "subscribePattern": pattern, "includeHeaders": "true"})
        return (reader if self.place.source == "kafka" else reader.option("offsetsGroup", self._group)).load()

    def table(self, topic: str) -> "DataFrame":
        """The last value of each key of a table, as it is when a micro-batch begins. A key whose last value is null or
        malformed is not in it: what it had before may be gone by compaction at any time."""
        table = self.pipeline.table_of(topic)
        fields = fields_of(table)
        reader = self.spark.read.format(self.place.source).options(**self._options([topic]))
        rows = self._parsed(reader, fields, struct_of(_WHOLE_RECORD)).withColumn("key", F.col("key").cast("string"))
        newest = F.max_by(F.struct("value", *fields.names), "offset")
        last = rows.groupBy("key").agg(newest.alias("last")).select("key", "last.*")
        return last.where(F.col("value").isNotNull() & row_verdict(table).isNull()).drop("value")

    def _inputs(self, inputs: tuple[Source, ...], record: str) -> "DataFrame":
        return self._stream([one.topic.name for one in inputs], merged_fields(inputs), record)

    def _stream(self, topics: list[str], fields: StructType, record: str) -> "DataFrame":
        reader = self._reader(self._options(topics))
        if self.place.source != "kafka":
            self._readings += 1
            group = self._group if self._readings == 1 else f"{self._group}-{self._readings}"
            reader = reader.option("offsetsGroup", group)
        return self._parsed(reader, fields, struct_of(record))

    def _parsed(
        self, reader: "DataFrameReader | DataStreamReader", fields: StructType, columns: StructType
    ) -> "DataFrame":
        """These columns of records, and the fields of the JSON in their values."""
        if self.place.source == "kafka":
            parsed = F.from_json(F.col("value").cast("string"), fields)
            return reader.load().select(*columns.names, parsed.alias("fields")).select(*columns.names, "fields.*")
        both = StructType([*fields.fields, *columns.fields])
        return reader.schema(both).option("valueFormat", "json").load()

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
