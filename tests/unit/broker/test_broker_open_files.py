"""Broker processes with few file descriptors, and with none: clients are served, or told so, and later served again."""

import contextlib
import resource
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.broker_thread import BrokerThread
from tests.peers.ottla import OttlaBroker
from tests.unit.broker.api.questions import batch, create_topic, fetch, produce, values
from tests.unit.broker.test_broker_metrics import scrape
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

PATIENCE_SECONDS = 60.0
PARTITIONS = 30
# So that every batch begins a segment.
TINY_SEGMENTS = {"segment.index.bytes": "16", "index.interval.bytes": "0"}

Start = Callable[[dict[str, str]], OttlaBroker]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    broker = OttlaBroker(tmp_path)

    def start(properties: dict[str, str]) -> OttlaBroker:
        broker.properties.update(properties)
        return broker.start()

    yield start
    broker.kill()


def connect(broker: OttlaBroker) -> WireClient:
    assert broker.port is not None
    return WireClient(broker.port)


def descriptors(broker: OttlaBroker) -> list[str]:
    """What the open descriptors of a process are."""
    found: list[str] = []
    for link in Path(f"/proc/{broker.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.append(str(link.readlink()))
    return found


def segments_open(broker: OttlaBroker) -> int:
    return sum(name.endswith(".log") and str(broker.data_directory) in name for name in descriptors(broker))


def allow(broker: OttlaBroker, count: int) -> None:
    _, most = resource.prlimit(broker.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (count, most))


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        time.sleep(0.02)


def offset_by_time(client: WireClient, partition: int) -> ErrorCode:
    wanted = ListOffsetsPartition(partition_index=partition, timestamp=1)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="topic", partitions=[wanted])])
    ((answer,),) = (topic.partitions for topic in client.ask(request, ListOffsetsResponse).topics)
    return ErrorCode(answer.error_code)


def sizes(client: WireClient) -> dict[int, int]:
    """The sizes of the topic's partitions; the log directory must be in use."""
    (directory,) = client.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse).results
    assert directory.error_code == ErrorCode.NONE
    return {
        partition.partition_index: partition.partition_size
        for topic in directory.topics
        if topic.name == "topic"
        for partition in topic.partitions
    }


def test_real_clients_use_more_files_than_may_be_open(start: Start) -> None:
    """Also over restarts, clean and not, and with many segments in a partition."""
    broker = start({"ottla.max.open.files": "5"})
    with connect(broker) as client:
        create_topic(client, "topic", PARTITIONS, TINY_SEGMENTS)
    for life, stop in enumerate((broker.stop, broker.kill, broker.stop)):
        producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
        for partition in range(PARTITIONS):
            producer.produce("topic", b"%d %d" % (partition, life), partition=partition)
            assert segments_open(broker) <= 5 + 5  # and one for each thread that is using it
        assert producer.flush(PATIENCE_SECONDS) == 0
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "none", "enable.auto.commit": False})
        consumer.assign([TopicPartition("topic", partition, 0) for partition in range(PARTITIONS)])
        seen: set[bytes] = set()
        while len(seen) < PARTITIONS * (life + 1):
            message = consumer.poll(PATIENCE_SECONDS)
            assert message is not None
            assert message.error() is None
            value = message.value()
            assert isinstance(value, bytes)
            seen.add(value)
        consumer.close()
        del producer
        until(lambda: segments_open(broker) <= 5)
        with connect(broker) as client:
            for partition, size in sizes(client).items():
                expected = sum(len(batch(b"%d %d" % (partition, each), key=None)) for each in range(life + 1))
                assert size == expected
        stop()
        broker.start()


def test_without_descriptors_for_connections_those_that_are_there_are_served(start: Start) -> None:
    broker = start({})
    with connect(broker) as client:
        create_topic(client, "topic", PARTITIONS)
        allow(broker, len(descriptors(broker)) + 5)
        idle = [socket.create_connection(("127.0.0.1", broker.port or 0)) for _ in range(20)]
        until(lambda: "cannot accept connections" in broker.log_since_start())
        # Files that are not open get the descriptors of others.
        for partition in range(PARTITIONS):
            assert produce(client, "topic", batch(b"a"), partition=partition).error_code == ErrorCode.NONE
            assert values(fetch(client, "topic", 0, partition=partition)) == [b"a"]
        for connection in idle:
            connection.close()
        with connect(broker) as other:
            assert values(fetch(other, "topic", 0)) == [b"a"]
        assert broker.log_since_start().count("cannot accept connections") == 1
    assert broker.stop() == 0


def test_without_any_descriptor_partitions_answer_with_an_error_and_later_without(start: Start) -> None:
    broker = start({"ottla.max.open.files": "2"})
    with connect(broker) as client:
        create_topic(client, "topic", PARTITIONS)
        for partition in range(PARTITIONS):
            produce(client, "topic", batch(b"a"), partition=partition)
        allow(broker, 3)
        for partition in range(PARTITIONS):
            answer = produce(client, "topic", batch(b"b"), partition=partition)
            assert answer.error_code in (ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR)
        # By now no file of a log is open any more.
        assert segments_open(broker) == 0
        assert produce(client, "topic", batch(b"b")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert fetch(client, "topic", 0).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert offset_by_time(client, 0) == ErrorCode.KAFKA_STORAGE_ERROR
        assert len(sizes(client)) == PARTITIONS
        new = CreateTopicsRequest(topics=[CreatableTopic(name="new", num_partitions=2, replication_factor=1)])
        (created,) = client.ask(new, CreateTopicsResponse).topics
        assert created.error_code == ErrorCode.NONE
        assert produce(client, "new", batch(b"n")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        allow(broker, 1000)
        for partition in range(PARTITIONS):
            assert produce(client, "topic", batch(b"c"), partition=partition).error_code == ErrorCode.NONE
            found = values(fetch(client, "topic", 0, partition=partition))
            assert found[0] == b"a"
            assert found[-1] == b"c"
            assert offset_by_time(client, partition) == ErrorCode.NONE
        until(lambda: produce(client, "new", batch(b"n")).error_code == ErrorCode.NONE)
        assert len(sizes(client)) == PARTITIONS
    assert broker.stop() == 0
    broker.start()
    with connect(broker) as client:
        assert values(fetch(client, "topic", 0))[-1] == b"c"
        assert values(fetch(client, "new", 0)) == [b"n"]


def test_open_files_are_counted(tmp_path: Path) -> None:
    properties = {"ottla.max.open.files": "3", "ottla.http.listeners": "http://127.0.0.1:0"}
    with BrokerThread(tmp_path, properties) as running, WireClient(running.port) as client:
        create_topic(client, "topic", PARTITIONS)
        before = scrape(running.broker)
        for partition in range(PARTITIONS):
            produce(client, "topic", batch(b"a"), partition=partition)
        after = scrape(running.broker)
        assert after.value("ottla_log_files_limit") == after.value("ottla_log_files_open") == 3
        for name in ("opened", "evicted"):
            counter = f"ottla_log_files_{name}_total"
            # Three of them may have been open.
            assert PARTITIONS - 3 <= after.value(counter) - before.value(counter) <= PARTITIONS
