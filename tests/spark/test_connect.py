"""Spark Connect: a server that finds the format by itself, and a client that has none of Spark's JVM."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.peers.spark_cluster import ConnectServer
from tests.spark.conftest import SETTINGS, Target, run_script, workers_environment
from tests.spark.sink.writing import values

pytestmark = pytest.mark.timeout(180)

CLIENT = """
import json, sys
from pyspark.sql import SparkSession
import ottla.spark

job = json.loads(sys.argv[1])
spark = SparkSession.builder.remote(job["remote"]).getOrCreate()
if job["register"]:
    ottla.spark.register(spark)
servers = {"kafka.bootstrap.servers": job["servers"]}
rows = spark.range(40).selectExpr("cast(id as string) as value")
rows.write.format("ottla").mode("append").options(**servers, topic=job["source"]).save()
source = {**servers, "subscribe": job["source"], "startingOffsets": "earliest"}
found = spark.read.format("ottla").options(**source).load().selectExpr("cast(value as string) as value")
print("read", sorted(int(row.value) for row in found.collect()))
sink = {**servers, "topic": job["sink"], "deliveryGuarantee": "exactly-once", "checkpointLocation": job["checkpoint"]}
stream = spark.readStream.format("ottla").options(**source, offsetsGroup=job["sink"]).load().select("value")
stream.writeStream.format("ottla").options(**sink).trigger(availableNow=True).start().awaitTermination()
try:
    spark.read.format("ottla").options(**servers, subscribe="nowhere").load().collect()
except Exception as error:
    print("told", error)
spark.stop()
"""


@pytest.mark.parametrize("register", [False, True], ids=["found", "registered"])
def test_batches_and_streams_over_spark_connect(
    ottla_target: Target, connect_server: ConnectServer, tmp_path: Path, register: bool
) -> None:
    source, sink = ottla_target.topic(2), ottla_target.topic(1)
    job = {
        "remote": connect_server.url,
        "register": register,
        "servers": ottla_target.bootstrap,
        "source": source,
        "sink": sink,
        "checkpoint": str(tmp_path / "checkpoint"),
    }
    printed = run_script(CLIENT, job, workers_environment(), tmp_path)
    assert f"read {list(range(40))}" in printed
    assert "option subscribe names the topic 'nowhere', which does not exist" in printed
    assert values(ottla_target, sink) == sorted(str(number).encode() for number in range(40))
    published = ottla_target.admin.list_group_offsets(sink)[sink]
    assert sum(found.offset for found in published.values() if found) == 40


@pytest.fixture(scope="module")
def connect_server(spark_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    directory = tmp_path_factory.mktemp("connect")
    settings = {**SETTINGS, "spark.sql.warehouse.dir": str(directory / "warehouse")}
    with ConnectServer(directory, spark_home, workers_environment(), settings) as server:
        yield server
