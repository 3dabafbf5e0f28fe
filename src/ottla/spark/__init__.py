"""Ottla for Spark: `format("ottla")`, a source and a sink that need no jars and take the options of `format("kafka")`.

    import ottla.spark

    ottla.spark.register(spark)
    orders = spark.readStream.format("ottla").option("kafka.bootstrap.servers", "localhost:9092")

| module            | holds                                                                              |
|-------------------|------------------------------------------------------------------------------------|
| `datasource`      | `OttlaDataSource`, which Spark makes for every read and write                      |
| `client_settings` | from `kafka.*` options to settings of clients                                      |
| `source`, `sink`  | the two directions                                                                 |
| `clients`         | clients that live as long as a Python process of Spark's                           |
| `memory`          | memory that tasks free is kept for what comes next                                 |
| `threads`         | for which session a thread looks a format up                                       |
| `telling`         | errors as one sentence in the driver, without the traces of workers                |
| `home`            | a SPARK_HOME whose Python processes start faster                                   |

Where the package is installed, Spark finds the format by itself (`pyspark_ottla`).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.spark.datasource import OttlaDataSource

__all__ = ["OttlaDataSource", "register"]

_FILTER_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def register(spark: "SparkSession", *, push_filters: bool = False) -> None:
    """Make `format("ottla")` known to a session, and see to it that the offsets of a query's last batch are published
    when it ends (`offsetsGroup`). That needs the driver's JVM: a session of Spark Connect goes without.

    Call it in every thread that writes, if that is not the one that made the session: Spark looks up the format of a
    write in the session that is the thread's active one, and a new thread has none.

    `push_filters` lets Spark push filters of batch queries into Python sources. It is off, as Spark has it, for a
    reason: Spark 4.2 keeps the plan of a pushed filter with the DataFrame, so that the next query of the same DataFrame
    that has no filter to push gets the rows of the one before. Call `load()` anew for each query where it is on.
    """
    from pyspark.sql import SparkSession

    from ottla.spark.datasource import NAME, OttlaDataSource

    spark.dataSource.register(OttlaDataSource)
    if isinstance(spark, SparkSession):
        from ottla.spark.source.ending import watch_ends
        from ottla.spark.threads import know_here

        watch_ends(spark, NAME)
        know_here(spark, NAME)
    if push_filters:
        spark.conf.set(_FILTER_PUSHDOWN, "true")


def __getattr__(name: str) -> Any:
    if name == "OttlaDataSource":
        from ottla.spark.datasource import OttlaDataSource

        return OttlaDataSource
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
