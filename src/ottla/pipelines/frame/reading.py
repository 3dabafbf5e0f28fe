"""What queries are built from: events that count, result topics of other queries, tables.

The source is `format("ottla")`, or Spark's own Kafka connector; the rows are the same.
"""

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from ottla.pipelines.frame.beginning import starting_offsets
from ottla.pipelines.frame.judging import row_verdict, verdict
from ottla.pipelines.frame.pipeline import Pipeline
from ottla.pipelines.frame.place import Place
from ottla.pipelines.frame.schemas import RECORD, fields_of, merged_fields, struct_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

_WHOLE_RECORD = f"{RECORD}, value BINARY"
# What is read again is fetched and parsed once: records that come out of several places of a query's plan, and tables
# until their offsets move.
_KEPT = {"rereadBytes": str(8 * 1024 * 1024)}
# And few records make one task, whatever number of partitions they are in.
_ONE_PASS = {"minRecordsPerPartition": "2000", **_KEPT}


class Streams:
    """The streams and tables of one query of a pipeline."""

    def __init__(
        self, spark: "SparkSession", pipeline: Pipeline, place: Place, query: str, phase: str | None = None
    ) -> None:
        self.spark = spark
        self.pipeline = pipeline
        self.place = place
        self._group = f"{pipeline.name}-{query}"
        self._phase = phase
        self._raw: DataFrame | None = None

    def events(self, *topics: str) -> "DataFrame":
        """The accepted events of these inputs, of all where none is named, with a watermark on `event_time`."""
        inputs = tuple(map(self.pipeline.input_of, topics)) or self.pipeline.inputs
        names = [one.topic.name for one in inputs]
        accepted = self.raw().where(F.col("topic").isin(names) & verdict(self.pipeline, inputs).isNull())
        fields = dict.fromkeys(name for one in inputs for name in fields_of(one).names)
        columns = [*fields, *struct_of(RECORD).names]
        return (
            accepted.select(*columns)
            .withColumn("event_time", F.timestamp_millis("event_time"))
            .withWatermark("event_time", f"{2 * self.pipeline.lateness_seconds} seconds")
        )

    def raw(self) -> "DataFrame":
        """All records of all inputs and tables, with the fields of those that have them; nothing is left out. Whatever
        is made of it in one query reads the same records."""
        if self._raw is None:
            sources = (*self.pipeline.inputs, *self.pipeline.tables)
            self._raw = self._stream(
                [one.topic.name for one in sources], merged_fields(sources), struct_of(_WHOLE_RECORD)
            )
        return self._raw

    def chained(self, topic: str, fields: str) -> "DataFrame":
        """What another query has written, as soon as it is committed."""
        return self._stream([topic], struct_of(fields), struct_of(RECORD))

    def everything(self, pattern: str) -> "DataFrame":
        """All records of all topics in whose names the pattern is found, as they are, with their headers."""
        reader = self._reader({**self._cluster(), "subscribePattern": pattern, "includeHeaders": "true"})
        if self.place.source != "kafka":
            reader = reader.options(**self._own_options())
        return reader.load()

    def with_fields(self, records: "DataFrame") -> "DataFrame":
        """Records as they are, of any topics, with the fields of those that are inputs or tables."""
        sources = (*self.pipeline.inputs, *self.pipeline.tables)
        fields = merged_fields(sources)
        is_known = F.col("topic").isin([one.topic.name for one in sources])
        parsed = F.when(is_known, F.from_json(F.col("value").cast("string"), fields))
        return records.withColumn("fields", parsed).select(*records.columns, "fields.*")

    def table(self, topic: str) -> "DataFrame":
        """The last value of each key of a table, as it is when a micro-batch begins. A key whose last value is null or
        malformed is not in it: what it had before may be gone by compaction at any time."""
        table = self.pipeline.table_of(topic)
        fields = fields_of(table)
        reader = self.spark.read.format(self.place.source).options(**self._options([topic]))
        if self.place.source != "kafka":
            reader = reader.options(**_KEPT)
        rows = self._parsed(reader, fields, struct_of(_WHOLE_RECORD)).withColumn("key", F.col("key").cast("string"))
        newest = F.max_by(F.struct("value", *fields.names), "offset")
        last = rows.groupBy("key").agg(newest.alias("last")).select("key", "last.*")
        return last.where(F.col("value").isNotNull() & row_verdict(table).isNull()).drop("value")

    def _stream(self, topics: list[str], fields: StructType, columns: StructType) -> "DataFrame":
        starting = starting_offsets(self.pipeline, self.place, topics)
        reader = self._reader(self._options(topics), starting)
        if self.place.source != "kafka":
            reader = reader.options(**self._own_options())
        return self._parsed(reader, fields, columns)

    def _parsed(
        self, reader: "DataFrameReader | DataStreamReader", fields: StructType, columns: StructType
    ) -> "DataFrame":
        """These columns of records, and the fields of the JSON in their values."""
        if self.place.source == "kafka":
            parsed = F.from_json(F.col("value").cast("string"), fields)
            return reader.load().select(*columns.names, parsed.alias("fields")).select(*columns.names, "fields.*")
        both = StructType([*fields.fields, *columns.fields])
        return reader.schema(both).option("valueFormat", "json").load()

    def _reader(self, options: dict[str, Any], starting: str = "earliest") -> "DataStreamReader":
        reader = self.spark.readStream.format(self.place.source).options(**options)
        reader = reader.option("startingOffsets", starting)
        if self.place.most_per_batch is not None:
            reader = reader.option("maxOffsetsPerTrigger", self.place.most_per_batch)
        return reader

    def _options(self, topics: list[str]) -> dict[str, Any]:
        return {**self._cluster(), "subscribe": ",".join(topics)}

    def _own_options(self) -> dict[str, Any]:
        """Of a stream, where the source is ours."""
        phase = {} if self._phase is None else {"triggerPhase": self._phase}
        return {"offsetsGroup": self._group, **_ONE_PASS, **phase}

    def _cluster(self) -> dict[str, Any]:
        return {**self.place.spark_options, "kafka.isolation.level": "read_committed"}


def once_each(events: "DataFrame") -> "DataFrame":
    """Without events that came before. A repeated event that counts comes before its id is forgotten: ids are kept for
    as long as the watermark waits after their event time has passed, which is twice what an event may be late."""
    return events.dropDuplicatesWithinWatermark(["event_id"])
