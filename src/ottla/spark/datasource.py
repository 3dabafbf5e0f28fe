"""`format("ottla")`: the class that Spark makes for every read and write.

Options are checked where Spark first asks, in the driver, before any task runs.
"""

from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from ottla.client.errors import OttlaError
from ottla.spark.source.failures import SchemaError
from ottla.spark.telling import told_plainly

NAME = "ottla"


class OttlaDataSource(DataSource):
    """Topics of Ottla or Apache Kafka, read and written as by Spark's Kafka connector, without its jars.

        spark.read.format("ottla").option("kafka.bootstrap.servers", "localhost:9092").option("subscribe", "orders")

    Parts load where they are used: a task that reads does not load what writes.
    """

    @classmethod
    def name(cls) -> str:
        return NAME

    @told_plainly
    def schema(self) -> StructType:
        from ottla.spark.source.columns import connector_schema
        from ottla.spark.source.option_values import truth
        from ottla.spark.source.options import value_format_of

        if value_format_of(self.options) is not None:
            raise SchemaError(
                'option valueFormat needs a schema that names the fields of the values: .schema("amount DOUBLE, ...")'
            )
        return connector_schema(has_headers=truth(self.options, "includeHeaders", default=False))

    @told_plainly
    def reader(self, schema: StructType) -> DataSourceReader:
        from ottla.spark.source.batch import BatchReader
        from ottla.spark.source.columns import projection_of
        from ottla.spark.source.options import read_options

        options = read_options(self.options, is_stream=False)
        return BatchReader(options, projection_of(schema, options.value_format))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        from ottla.spark.source.columns import projection_of
        from ottla.spark.source.options import read_options
        from ottla.spark.source.stream import RefusedStream, StreamReader

        try:
            options = read_options(self.options, is_stream=True)
            return StreamReader(options, projection_of(schema, options.value_format))
        except OttlaError as error:
            return RefusedStream(error)

    @told_plainly
    def writer(self, schema: StructType, overwrite: bool) -> Any:
        from ottla.spark.sink import batch_writer

        return batch_writer(self.options, schema, overwrite)

    @told_plainly
    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:  # noqa: N802
        from ottla.spark.sink import stream_writer

        return stream_writer(self.options, schema, overwrite)
