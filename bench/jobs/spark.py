"""Spark on a topic, by its own Kafka connector and by Ottla's data source, in one session and in turns.

The session is warm before anything counts: a first round of every measurement is thrown away. Rows go nowhere (Spark's
`noop` sink), so that what is measured is the way from the log into Spark, or from Spark into the log.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.peers.paths import SPARK_CONNECTOR_LIBS, require_libs

from bench.job import Figures, Specification, job_main
from bench.jobs.library import ACKS, BATCH_BYTES, LINGER_MS
from bench.jobs.processor_time import tree_processor_seconds

CONNECTOR, OWN = "kafka", "ottla"
CORES = 2
_TRIGGERS_BEFORE = 10
_FIRST_NUMBER = 1_000_000_000


def session(directory: str) -> Any:
    from pyspark.sql import SparkSession

    import ottla.spark
    from ottla.spark.home import quick_spark_home

    # As docs/SPARK.md advises; the connector, which has no Python processes, does not notice.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_HOME"] = str(quick_spark_home(f"{directory}/spark"))
    jars = sorted(map(str, require_libs(SPARK_CONNECTOR_LIBS, "spark-connector").glob("*.jar")))
    spark = (
        SparkSession.builder.master(f"local[{CORES}]")
        .appName("bench")
        .config("spark.jars", ",".join(jars))
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.shuffle.partitions", str(CORES))
        .config("spark.sql.streaming.numRecentProgressUpdates", "1000")
        .config("spark.sql.warehouse.dir", f"{directory}/warehouse")
        .config("spark.python.daemon.module", "ottla.spark.daemon")
        .config("spark.python.unix.domain.socket.enabled", "true")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    ottla.spark.register(spark)
    return spark


def _read(source: Any, how: str, specification: Specification) -> Any:
    return (
        source.format(how)
        .option("kafka.bootstrap.servers", specification["bootstrap"])
        .option("subscribe", specification["topic"])
        .option("startingOffsets", "earliest")
    )


def batch(spark: Any, how: str, specification: Specification, directory: str) -> Figures:
    """All columns of all records."""
    records = specification["records"]
    processor, started = tree_processor_seconds(), time.perf_counter()
    _read(spark.read, how, specification).load().write.format("noop").mode("overwrite").save()
    seconds = time.perf_counter() - started
    used = tree_processor_seconds() - processor
    return {"rate": records / seconds, "seconds": seconds, "processor_us": used / records * 1e6}


def _stream(spark: Any, how: str, specification: Specification, directory: str, **options: str) -> tuple[float, Any]:
    """Seconds from the start of a query until everything was read, and what it says of its triggers."""
    frame = _read(spark.readStream, how, specification).options(**options).load()
    started = time.perf_counter()
    query = (
        frame.writeStream.format("noop")
        .option("checkpointLocation", tempfile.mkdtemp(dir=directory))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    seconds = time.perf_counter() - started
    progress = [one for one in query.recentProgress if one["numInputRows"]]
    read = sum(one["numInputRows"] for one in progress)
    if read != specification["records"]:
        raise RuntimeError(f"{how} read {read} of {specification['records']} records")
    return seconds, progress


def drain(spark: Any, how: str, specification: Specification, directory: str) -> Figures:
    records = specification["records"]
    processor = tree_processor_seconds()
    seconds, progress = _stream(spark, how, specification, directory)
    used = tree_processor_seconds() - processor
    triggers = sum(one["durationMs"]["triggerExecution"] for one in progress) / 1000
    return {"seconds": seconds, "trigger_seconds": triggers, "processor_us": used / records * 1e6}


def floor(spark: Any, how: str, specification: Specification, directory: str) -> Figures:
    """One record in every micro-batch: what remains is what a micro-batch costs at least."""
    _, progress = _stream(spark, how, specification, directory, maxOffsetsPerTrigger="1")
    took = [one["durationMs"]["triggerExecution"] for one in progress[_TRIGGERS_BEFORE:]]
    return {"trigger_ms": statistics.median(took), "triggers": len(took)}


def sink(spark: Any, how: str, specification: Specification, directory: str) -> Figures:
    """Values that differ and cost Spark next to nothing: a constant, and a number of ten digits behind it."""
    records = specification["records"]
    constant = "x" * (specification["record_bytes"] - len(str(_FIRST_NUMBER)))
    rows = spark.range(_FIRST_NUMBER, _FIRST_NUMBER + records, 1, CORES).selectExpr(
        f"concat('{constant}', cast(id as string)) as value"
    )
    options = {
        "kafka.bootstrap.servers": specification["bootstrap"],
        "topic": specification["topic"],
        "kafka.acks": ACKS,
        "kafka.linger.ms": str(LINGER_MS),
        "kafka.batch.size": str(BATCH_BYTES),
        "kafka.compression.type": specification["codec"],
        **specification.get("options", {}),
    }
    processor, started = tree_processor_seconds(), time.perf_counter()
    rows.write.format(how).options(**options).mode("append").save()
    seconds = time.perf_counter() - started
    used = tree_processor_seconds() - processor
    return {"rate": records / seconds, "seconds": seconds, "processor_us": used / records * 1e6}


Measure = Callable[[Any, str, Specification, str], Figures]
MEASURES: dict[str, Measure] = {"batch": batch, "drain": drain, "floor": floor, "sink": sink}


def work(specification: Specification) -> Figures:
    """Rounds of the named sides in turns, the first `warm` of them thrown away."""
    measure = MEASURES[specification["what"]]
    found: list[Figures] = []
    with tempfile.TemporaryDirectory(prefix="bench-spark-", ignore_cleanup_errors=True) as directory:
        spark = session(directory)
        try:
            for number in range(specification["warm"] + specification["rounds"]):
                for side in specification["sides"]:
                    own = {**specification, **side}
                    figures = measure(spark, own["how"], own, directory)
                    if number >= specification["warm"]:
                        found.append({"side": own["side"], **figures})
        finally:
            spark.stop()
    return {"runs": found}


if __name__ == "__main__":
    assert Path(SPARK_CONNECTOR_LIBS).exists(), "the connector's jars are not there: make setup"
    job_main(work)
