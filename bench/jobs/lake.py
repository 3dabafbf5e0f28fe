"""A topic into Parquet files by topic, date and hour, in a warm session: by Spark's connector, and by the offline load.

Both read at read_committed and compress by zstd. The connector's files are what Spark's own writer makes of its rows;
the load's count as they are published, range by range.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from bench.job import Figures, Specification, job_main
from bench.jobs.pipelines import session
from ottla.pipelines.ingestion.lake import Lake
from ottla.pipelines.ingestion.loading import plan, run_tasks


def by_connector(spark: Any, bootstrap: str, topic: str, directory: Path) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    rows = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", topic)
        .option("includeHeaders", "true")
        .load()
        .withColumn("date", F.date_format("timestamp", "yyyy-MM-dd"))
        .withColumn("hour", F.date_format("timestamp", "HH"))
    )
    writer = rows.drop("timestampType").write.partitionBy("topic", "date", "hour")
    writer.option("compression", "zstd").parquet(str(directory))


def by_load(spark: Any, bootstrap: str, topic: str, directory: Path) -> None:
    brokers, lake = {"bootstrap.servers": bootstrap}, Lake(directory)
    run_tasks(spark, brokers, list(plan(brokers, [topic], lake.state())), lake)


def rows_in(directory: Path) -> int:
    import pyarrow.parquet as pq

    return sum(pq.read_metadata(path).num_rows for path in directory.rglob("*.parquet"))


def work(specification: Specification) -> Figures:
    """Each side once on a small topic, to be warm, and then on the large one."""
    sides = {"connector": by_connector, "load": by_load}
    found: Figures = {}
    spark = session()
    try:
        for topic, records in specification["topics"].items():
            for side, write in sides.items():
                with tempfile.TemporaryDirectory(prefix="bench-lake-", ignore_cleanup_errors=True) as directory:
                    lake = Path(directory) / "lake"
                    started = time.perf_counter()
                    write(spark, specification["bootstrap"], topic, lake)
                    seconds = time.perf_counter() - started
                    written = rows_in(lake)
                if written != records:
                    raise RuntimeError(f"{side} wrote {written} of {records} records")
                found[side] = {"rate": records / seconds, "seconds": seconds}
    finally:
        spark.stop()
    return found


if __name__ == "__main__":
    job_main(work)
