"""For which session a thread looks a format up.

A read asks the session that it belongs to which Python data sources there are. A write asks the active session of the
thread that it is begun in. The thread that made the first session has that one; any other thread of Python's has none,
and a write there fails as if the format did not exist (DATA_SOURCE_NOT_FOUND).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def know_here(spark: "SparkSession", format_name: str) -> None:
    """Make the session this thread's active one, unless that has the format, too."""
    jvm: Any = spark.sparkContext._jvm
    sessions = jvm.org.apache.spark.sql.classic.SparkSession
    active = sessions.getActiveSession()
    if active.isEmpty() or not active.get().sessionState().dataSourceManager().dataSourceExists(format_name):
        sessions.setActiveSession(spark._jsparkSession)
