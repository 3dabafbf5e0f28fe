"""Ottla for Spark: `format("ottla")`, a source and a sink that need no jars and take the options of `format("kafka")`.

    import ottla.spark

    ottla.spark.register(spark)
    orders = spark.readStream.format("ottla").option("kafka.bootstrap.servers", "localhost:9092")

| module            | holds                                                                              |
|-------------------|------------------------------------------------------------------------------------|
| `datasource`      | `OttlaDataSource`, which Spark makes for every read and write                      |
| `client_settings` | from `kafka.*` options to settings of clients                                      |
| `source`, `sink`  | the two directions                                                                 |

Where the package is installed, Spark finds the format by itself (`pyspark_ottla`); `register` also lets Spark push
filters into it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.spark.datasource import OttlaDataSource

__all__ = ["OttlaDataSource", "register"]

_FILTER_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def register(spark: "SparkSession") -> None:
    """Make `format("ottla")` known to a session, and let it push filters of batch queries into Python sources."""
    from ottla.spark.datasource import OttlaDataSource

    spark.dataSource.register(OttlaDataSource)
    spark.conf.set(_FILTER_PUSHDOWN, "true")


def __getattr__(name: str) -> Any:
    if name == "OttlaDataSource":
        from ottla.spark.datasource import OttlaDataSource

        return OttlaDataSource
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
