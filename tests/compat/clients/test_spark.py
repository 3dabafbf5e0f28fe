"""Spark's own Kafka connector (its jars, no code of Ottla), unchanged: batch write, batch read, streaming read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.compat.clients.adapters.confluent import ConfluentClient
from tests.compat.clients.contract import assert_stored
from tests.compat.clients.model import CODECS, CREATE_TIME_MS, Codec, Message
from tests.compat.clients.segments import read_batches
from tests.peers.paths import SPARK_CONNECTOR_LIBS, require_libs
from tests.peers.process import ServerProcess

pyspark_sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
pytestmark = pytest.mark.timeout(180)

_ROWS = 500


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One session for all tests here: starting Spark costs more than they do."""
    jars = sorted(map(str, require_libs(SPARK_CONNECTOR_LIBS, "spark-connector").glob("*.jar")))
    if (other := pyspark_sql.SparkSession.getActiveSession()) is not None:
        # Of tests elsewhere, which make it again: there is one session in a process, and here rows come in one task.
        other.stop()
    session = (
        pyspark_sql.SparkSession.builder.master("local[1]")
        .appName("ottla-compat")
        .config("spark.jars", ",".join(jars))
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "768m")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def client(broker: ServerProcess) -> ConfluentClient:
    return ConfluentClient(broker.bootstrap)


def _reader(source: Any, broker: ServerProcess, topic: str) -> Any:
    return (
        source.format("kafka")
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("includeHeaders", "true")
    )


@pytest.mark.parametrize("codec", CODECS)
def test_batch_write(spark: Any, broker: ServerProcess, client: ConfluentClient, topic: str, codec: Codec) -> None:
    client.create_topic(topic)
    rows = spark.range(_ROWS).selectExpr(
        "cast(id as string) as key",
        "if(id % 10 = 0, null, repeat(cast(id as string), 50)) as value",
        "array(named_struct('key', 'source', 'value', cast('spark' as binary))) as headers",
    )
    writer = rows.write.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap).option("topic", topic)
    writer.option("includeHeaders", "true").option("kafka.compression.type", codec).save()
    expected = [
        Message(None if n % 10 == 0 else b"%d" % n * 50, key=b"%d" % n, headers=(("source", b"spark"),))
        for n in range(_ROWS)
    ]
    assert_stored(client.consume(topic, 0, 0, _ROWS), expected)
    batches = read_batches(broker.partition_directory(topic, 0))
    assert {batch.codec for batch in batches} == {codec}
    assert all(batch.crc_matches for batch in batches)


def test_batch_read(spark: Any, broker: ServerProcess, client: ConfluentClient, topic: str) -> None:
    """A partition for each codec. Spark's driver finds the offsets with the admin client: first, last and by time."""
    client.create_topic(topic, partitions=len(CODECS))
    messages = [
        Message(b"value %d" % n, key=b"%d" % n, headers=(("n", b"%d" % n),), timestamp_ms=CREATE_TIME_MS + n)
        for n in range(_ROWS)
    ]
    for partition, codec in enumerate(CODECS):
        client.produce(topic, partition, messages, codec=codec)
    partitions = range(len(CODECS))
    rows = _reader(spark.read, broker, topic).load().orderBy("partition", "offset").collect()
    assert [(row.partition, row.offset) for row in rows] == [(p, n) for p in partitions for n in range(_ROWS)]
    for row, message in zip(rows, messages * len(CODECS), strict=True):
        assert (bytes(row.key), bytes(row.value)) == (message.key, message.value)
        assert [(header.key, bytes(header.value)) for header in row.headers] == list(message.headers)
        assert round(row.timestamp.timestamp() * 1000) == message.timestamp_ms
    times = json.dumps({topic: {str(partition): CREATE_TIME_MS + _ROWS - 10 - partition for partition in partitions}})
    late = _reader(spark.read, broker, topic).option("startingOffsetsByTimestamp", times).load()
    counts = late.groupBy("partition").count().orderBy("partition").collect()
    assert counts == [(partition, 10 + partition) for partition in partitions]


def test_streaming_read(spark: Any, broker: ServerProcess, client: ConfluentClient, topic: str, tmp_path: Path) -> None:
    """Two runs of one query: the second starts where the first ended, from offsets in Spark's own checkpoint."""
    client.create_topic(topic, partitions=2)
    seen: list[tuple[int, int, bytes]] = []

    def run() -> None:
        def collect(frame: Any, _: int) -> None:
            seen.extend((row.partition, row.offset, bytes(row.value)) for row in frame.collect())

        query = (
            _reader(spark.readStream, broker, topic)
            .option("maxOffsetsPerTrigger", "300")
            .load()
            .writeStream.foreachBatch(collect)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    for start in (0, 250):
        for partition in range(2):
            client.produce(topic, partition, [Message(b"%d" % n) for n in range(start, start + 250)])
        run()
    assert sorted(seen) == [(partition, n, b"%d" % n) for partition in range(2) for n in range(500)]
