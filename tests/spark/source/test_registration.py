"""How Spark comes to know the format: by a call, or by itself; and on a cluster of processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.spark.conftest import Target, workers_environment
from tests.spark.source.reading import numbered, reader, rows_of, write

pytestmark = pytest.mark.timeout(180)

# What a job on a cluster looks like: nothing is registered, and executors are processes of their own.
JOB = """
import sys
from pyspark.sql import SparkSession

servers, topic = sys.argv[1:]
spark = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false").getOrCreate()
options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "minPartitions": "6", "startingOffsets": "earliest"}
rows = spark.read.format("ottla").options(**options).load().collect()
print("offsets", sorted(row.offset for row in rows))
counts = []
stream = spark.readStream.format("ottla").options(**options).load()
writer = stream.writeStream.foreachBatch(lambda frame, _: counts.append(frame.count()))
writer.trigger(availableNow=True).start().awaitTermination()
print("streamed", sum(counts))
spark.stop()
"""


def test_spark_finds_the_format_by_itself(spark: Any, ottla_target: Target) -> None:
    topic = ottla_target.topic(1)
    write(ottla_target, topic, numbered(3))
    session = spark.newSession()
    assert len(rows_of(reader(session.read, "ottla", ottla_target, subscribe=topic).load())) == 3


def test_executors_in_processes_of_their_own(ottla_target: Target, tmp_path: Path) -> None:
    topic = ottla_target.topic(2)
    write(ottla_target, topic, numbered(40))
    job = tmp_path / "job.py"
    job.write_text(JOB)
    done = subprocess.run(
        [sys.executable, str(job), ottla_target.bootstrap, topic],
        env=workers_environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert f"offsets {list(range(40))}" in done.stdout
    assert "streamed 40" in done.stdout
