"""The Spark session that pipelines run in.

What the user has set (`--conf`; under `spark-submit` all that it was given) wins over what is set here; the state store
is RocksDB in any case, and a killed query may always start again.
"""

import importlib.util
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.pipelines.frame.telling import PipelineError, told_as

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"

_NEEDED = {
    # A driver that was killed while it noted its first batch leaves half of a note behind, for which Spark would refuse
    # the checkpoint for good. It looks for checkpoints that are shared; those of pipelines are named after their query.
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
    "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Counting keys costs a read for each write.
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
}
_DEFAULTS = {
    "spark.sql.session.timeZone": "UTC",
    # The number of state stores of each operator; fixed by the first run of a query.
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.minBatchesToRetain": "10",
    # A snapshot of a store is many files; what it saves is reading so many small ones after a restart.
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": "30",
    # Micro-batches are small, and a plan has the watermark in it: code that is generated for one batch is of no use to
    # the next, and to compile it takes longer than to do without.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # What each plan looks like is written down twice otherwise.
    "spark.sql.ui.explainMode": "simple",
    # Workers that are there at once, and do not look for garbage after each small task.
    "spark.python.daemon.module": "ottla.spark.daemon",
    # Over TCP, each exchange with a worker may wait 40 ms for an acknowledgement.
    "spark.python.unix.domain.socket.enabled": str(os.name == "posix").lower(),
}
_LOCAL_DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    # Each broadcast takes a block of memory as large as this, 4 MB otherwise, and a micro-batch has a dozen small ones.
    "spark.broadcast.blockSize": "64k",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # Without pages nobody looks at what was done before; Spark keeps a thousand of each otherwise.
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
    "spark.sql.ui.retainedExecutions": "20",
}
# What starts Spark sets it for shells, and takes this for one; bars have no place between tables.
_QUIET = {"spark.ui.showConsoleProgress": "false"}


class SparkMissing(PipelineError):
    """PySpark is not installed."""

    def __init__(self) -> None:
        super().__init__('pipelines run on Spark, which is not installed: pip install "ottla[pipelines]"')


class JavaMissing(PipelineError):
    """Spark is there, and nothing to run it."""

    def __init__(self, where: str) -> None:
        super().__init__(
            f"Spark needs Java 17 or newer, and {where}: install it (Debian: apt-get install default-jre-headless), "
            "or set JAVA_HOME to where it is"
        )


class SparkFailed(PipelineError):
    """No session could be made, or Spark has gone away."""


def require_spark() -> None:
    """SparkMissing where it is."""
    if importlib.util.find_spec("pyspark") is None:
        raise SparkMissing


def _require_java() -> None:
    """JavaMissing where Spark's own script would find none."""
    home = os.environ.get("JAVA_HOME")
    if home and shutil.which("java", path=f"{home}/bin") is None:
        raise JavaMissing(f"JAVA_HOME is {home}, which has no bin/java")
    if not home and shutil.which("java") is None:
        raise JavaMissing("there is no java on the PATH")


def spark_session(
    *, master: str | None = None, settings: Mapping[str, str] | None = None, source: str = "ottla"
) -> "SparkSession":
    """A session with `format("ottla")`, and with Spark's Kafka connector where that is the source.

    Without a master it is the one that `spark-submit` was given, else `local[*]`. Raises a PipelineError that says why
    there can be none.
    """
    require_spark()
    import pyspark
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if is_submitted:
        SparkContext._ensure_initialized()
    else:
        _require_java()
        _prepare_environment()
    given = SparkConf(loadDefaults=is_submitted)
    chosen = dict(settings or {})
    if master is not None:
        chosen["spark.master"] = master
    elif not given.contains("spark.master"):
        chosen["spark.master"] = "local[*]"
    chosen_master = chosen.get("spark.master") or str(given.get("spark.master"))
    defaults = dict(_DEFAULTS)
    if chosen_master.startswith("local["):
        defaults |= _LOCAL_DEFAULTS
    if source == "kafka" and "spark.jars" not in chosen and not given.contains("spark.jars"):
        defaults["spark.jars.packages"] = f"{CONNECTOR}:{pyspark.__version__}"
    builder = SparkSession.builder.appName("ottla-pipelines")
    for name, value in {**defaults, **_QUIET, **chosen}.items():
        if name in chosen or name in _QUIET or not given.contains(name):
            builder = builder.config(name, value)
    with told_as(SparkFailed, f"Spark did not start with master {chosen_master}"):
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        prepare(spark)
    return spark


def prepare(spark: "SparkSession") -> None:
    """What pipelines need of a session that somebody else has made."""
    import ottla.spark

    for name, value in _NEEDED.items():
        spark.conf.set(name, value)
    ottla.spark.register(spark)


def _prepare_environment() -> None:
    """Before the JVM starts: this Python for Spark's workers too, little memory for what RocksDB has freed, and a home
    from which workers start fast."""
    from ottla.spark.home import shared_spark_home

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # RocksDB allocates in many threads, and the C library keeps a heap for each: with two, less is held that is free.
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")
    if "SPARK_HOME" not in os.environ:
        os.environ["SPARK_HOME"] = str(shared_spark_home(Path.home() / ".cache" / "ottla" / "spark-home"))
