"""The sink of `format("ottla")`: rows of a DataFrame become records, at least once or exactly once.

| module          | holds                                                                             |
|-----------------|-----------------------------------------------------------------------------------|
| `options`       | the options of a write                                                            |
| `rows`          | the columns that rows must have, and their way to records                         |
| `topics`        | is there such a topic? asked in the driver                                        |
| `at_least_once` | writing as Spark's connector does                                                 |
| `exactly_once`  | the protocol, as an essay with its table of crashes; the writers that follow it   |
| `staging`       | its tasks: rows in a transaction that stays open                                  |
| `decisions`     | its log: which batch was decided, and with which transactions                     |
| `settlement`    | its driver: decide, end, abort what is left over                                  |
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.client.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter
    from pyspark.sql.types import StructType

__all__ = ["batch_writer", "stream_writer"]


def batch_writer(options: Mapping[str, str], schema: "StructType", overwrite: bool) -> "DataSourceArrowWriter":
    """The writer of a batch query, made in the driver: what is wrong with options, columns or topic is said here."""
    from ottla.spark.sink.at_least_once import AtLeastOnceWriter
    from ottla.spark.sink.exactly_once import ExactlyOnceWriter, NumberedWriter
    from ottla.spark.sink.options import read_options
    from ottla.spark.sink.rows import row_shape
    from ottla.spark.sink.topics import check_topic

    if overwrite:
        raise ConfigError('save mode overwrite is not allowed: a topic is only ever appended to; use .mode("append")')
    read = read_options(options)
    shape = row_shape(schema, read.topic)
    check_topic(read)
    if not read.is_exactly_once:
        return AtLeastOnceWriter(read, shape)
    return ExactlyOnceWriter(read, shape) if read.numbered is None else NumberedWriter(read, shape, *read.numbered)


def stream_writer(options: Mapping[str, str], schema: "StructType", overwrite: bool) -> "DataSourceStreamArrowWriter":
    """The writer of a micro-batch. In complete mode (`overwrite`) all rows of a batch are appended, as by Spark's
    connector."""
    from ottla.spark.sink.at_least_once import AtLeastOnceStreamWriter
    from ottla.spark.sink.exactly_once import ExactlyOnceStreamWriter
    from ottla.spark.sink.options import read_options
    from ottla.spark.sink.rows import row_shape
    from ottla.spark.sink.topics import check_topic

    read = read_options(options)
    shape = row_shape(schema, read.topic)
    check_topic(read)
    return ExactlyOnceStreamWriter(read, shape) if read.is_exactly_once else AtLeastOnceStreamWriter(read, shape)
