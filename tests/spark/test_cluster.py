"""A job from topic to topic on a standalone Spark cluster: driver, master, worker and executor are processes of their
own."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.peers.spark_cluster import spark_cluster
from tests.spark.conftest import SETTINGS, Target, run_script, workers_environment
from tests.spark.sink.writing import values
from tests.spark.source.reading import numbered, write

pytestmark = pytest.mark.timeout(180)

# Nothing is registered here: Spark finds the format where the package is.
JOB = """
import json, sys
from pyspark.sql import SparkSession

job = json.loads(sys.argv[1])
builder = SparkSession.builder.master(job["master"])
for name, value in job["settings"].items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
servers = {"kafka.bootstrap.servers": job["servers"]}
source = {**servers, "subscribe": job["source"], "startingOffsets": "earliest", "minPartitions": "2"}
sink = {**servers, "topic": job["sink"], "deliveryGuarantee": "exactly-once", "checkpointLocation": job["checkpoint"]}
stream = spark.readStream.format("ottla").options(**source).load().select("value")
stream.writeStream.format("ottla").options(**sink).trigger(availableNow=True).start().awaitTermination()
spark.stop()
"""


def test_a_standalone_cluster_reads_and_writes(ottla_target: Target, spark_home: Path, tmp_path: Path) -> None:
    source, sink = ottla_target.topic(2), ottla_target.topic(1)
    write(ottla_target, source, numbered(40))
    environment = workers_environment() | {"SPARK_HOME": str(spark_home)}
    with spark_cluster(tmp_path, spark_home, environment) as master:
        job = {
            "master": master,
            "settings": {**SETTINGS, "spark.driver.memory": "512m", "spark.executor.memory": "512m"},
            "servers": ottla_target.bootstrap,
            "source": source,
            "sink": sink,
            "checkpoint": str(tmp_path / "checkpoint"),
        }
        run_script(JOB, job, environment, tmp_path)
    assert values(ottla_target, sink) == sorted(numbered(40))
