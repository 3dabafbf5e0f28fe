"""Kafka's own command line tools, unchanged."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.compat.clients.adapters.confluent import ConfluentClient
from tests.compat.clients.model import Message
from tests.compat.clients.segments import read_batches
from tests.peers.java import run_java
from tests.peers.paths import KAFKA_LIBS, require_libs
from tests.peers.process import ServerProcess

pytestmark = pytest.mark.timeout(120)


def tool(name: str, *arguments: str, expect_code: int = 0) -> str:
    """Run a tool of Apache Kafka and answer what it printed."""
    done = run_java(f"org.apache.kafka.tools.{name}", list(arguments), require_libs(KAFKA_LIBS, "kafka"))
    assert done.returncode == expect_code, f"{name} ended with {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


def test_topic_command(broker: ServerProcess, topic: str) -> None:
    """A topic's life: create, refuse a second one, describe, list, alter, delete."""
    server = ("--bootstrap-server", broker.bootstrap)
    name = ("--topic", topic)
    shape = ("--partitions", "2", "--replication-factor", "1", "--config", "retention.ms=3600000")
    assert f"Created topic {topic}." in tool("TopicCommand", *server, "--create", *name, *shape)
    assert "already exists" in tool("TopicCommand", *server, "--create", *name, expect_code=1)

    described = tool("TopicCommand", *server, "--describe", *name)
    assert re.search(r"PartitionCount:\s*2\s+ReplicationFactor:\s*1\s+Configs:.*retention.ms=3600000", described)
    partitions = re.findall(r"Partition:\s*(\d+)\s+Leader:\s*(\d+)\s+Replicas:\s*(\d+)\s+Isr:\s*(\d+)", described)
    assert [partition for partition, *_ in partitions] == ["0", "1"]
    assert all(leader == replicas == isr for _, leader, replicas, isr in partitions)

    assert topic in tool("TopicCommand", *server, "--list").split()
    tool("TopicCommand", *server, "--alter", *name, "--partitions", "5")
    assert "PartitionCount: 5" in tool("TopicCommand", *server, "--describe", *name)
    tool("TopicCommand", *server, "--delete", *name)
    assert topic not in tool("TopicCommand", *server, "--list").split()


def test_producer_performance(broker: ServerProcess, topic: str) -> None:
    count = 50_000
    size = ("--num-records", str(count), "--record-size", "100", "--throughput", "-1")
    properties = ("--command-property", "compression.type=lz4", "acks=all")
    server = ("--bootstrap-server", broker.bootstrap)
    output = tool("ProducerPerformance", "--topic", topic, *size, *server, *properties)
    assert f"{count} records sent" in output
    assert f"{topic}:0:{count}" in tool("GetOffsetShell", *server, "--topic", topic)
    assert sum(batch.record_count for batch in read_batches(broker.partition_directory(topic, 0))) == count


def test_verifiable_producer(broker: ServerProcess, topic: str) -> None:
    count = 1000
    limits = ("--max-messages", str(count), "--acks", "-1", "--repeating-keys", "10")
    output = tool("VerifiableProducer", "--topic", topic, "--bootstrap-server", broker.bootstrap, *limits)
    events = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    acknowledged = {
        event["offset"]: (event["key"], event["value"]) for event in events if event["name"].endswith("success")
    }
    assert sorted(acknowledged) == list(range(count))
    records = ConfluentClient(broker.bootstrap).consume(topic, 0, 0, count)
    came = {record.offset: ((record.key or b"").decode(), (record.value or b"").decode()) for record in records}
    assert came == acknowledged


def test_console_consumer(broker: ServerProcess, topic: str) -> None:
    output = "".join(f"line {number}\n" for number in range(20))
    server = ("--bootstrap-server", broker.bootstrap)
    client = ConfluentClient(broker.bootstrap)
    client.create_topic(topic)
    client.produce(topic, 0, [Message(line.encode()) for line in output.splitlines()], codec="zstd")
    place = ("--topic", topic, "--partition", "0", "--offset", "5", "--max-messages", "15")
    assert tool("consumer.ConsoleConsumer", *server, *place).splitlines() == output.splitlines()[5:]


def test_delete_records_command(broker: ServerProcess, topic: str, tmp_path: Path) -> None:
    client = ConfluentClient(broker.bootstrap)
    client.create_topic(topic)
    client.produce(topic, 0, [Message(b"%d" % number) for number in range(10)])
    wanted = {"partitions": [{"topic": topic, "partition": 0, "offset": 4}], "version": 1}
    (tmp_path / "wanted.json").write_text(json.dumps(wanted))
    server = ("--bootstrap-server", broker.bootstrap)
    output = tool("DeleteRecordsCommand", *server, "--offset-json-file", str(tmp_path / "wanted.json"))
    assert re.search(rf"partition: {topic}-0\s+low_watermark: 4", output), output
    assert f"{topic}:0:4" in tool("GetOffsetShell", *server, "--topic", topic, "--time", "earliest")
    assert [record.value for record in client.consume(topic, 0, 4, 6)] == [b"%d" % number for number in range(4, 10)]


def test_dump_log_segments(broker: ServerProcess, topic: str) -> None:
    """The files on disk are Kafka's own: every record of the log, and the indexes of a segment that is closed."""
    client = ConfluentClient(broker.bootstrap)
    client.create_topic(topic, configs={"segment.bytes": "1048576"})
    for number in range(10):
        client.produce(topic, 0, [Message(b"%d " % number * 200, key=b"%d" % number)], codec="gzip")
        client.produce(topic, 0, [Message(b"%d " % number * 100_000)])
    logs = sorted(broker.partition_directory(topic, 0).glob("*.log"))
    assert len(logs) > 1
    dumped = tool("DumpLogSegments", "--deep-iteration", "--print-data-log", "--files", ",".join(map(str, logs)))
    assert re.findall(r"^\| offset: (\d+)", dumped, re.MULTILINE) == [str(offset) for offset in range(20)]
    assert dumped.count("isvalid: true") == 20
    assert "compresscodec: gzip" in dumped
    indexes = [logs[0].with_suffix(suffix) for suffix in (".index", ".timeindex")]
    checked = tool("DumpLogSegments", "--files", ",".join(map(str, indexes)))
    assert len(re.findall(r"^offset: \d+ position: \d+", checked, re.MULTILINE)) > 1
    assert len(re.findall(r"^timestamp: \d+ offset: \d+", checked, re.MULTILINE)) > 1
    assert not re.search(r"(?i)mismatch|found|corrupt|out of order|empty", checked), checked
