"""Where Spark looks for data sources by itself: top-level packages named `pyspark_*` that have a `DefaultSource`."""

from ottla.spark.datasource import OttlaDataSource as DefaultSource

__all__ = ["DefaultSource"]
