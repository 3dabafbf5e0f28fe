"""confluent-kafka at the edges: limits, time, positions, topics that come and go. What its user sees."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from tests.compat.clients.adapters.confluent import ConfluentClient
from tests.compat.clients.contract import eventually
from tests.compat.clients.model import CREATE_TIME_MS, TIMEOUT_SECONDS, Message
from tests.peers.process import ServerProcess
from tests.waiting import tries

pytestmark = pytest.mark.timeout(120)

# The header of a batch, and what a record with neither key nor headers adds to a value of 128 to 8191 bytes.
BATCH_OVERHEAD_BYTES = 61 + 9
HOUR_MS = 3_600_000


@pytest.fixture
def client(broker: ServerProcess) -> ConfluentClient:
    return ConfluentClient(broker.bootstrap)


@contextlib.contextmanager
def consuming(broker: ServerProcess, *places: TopicPartition, **settings: Any) -> Iterator[Consumer]:
    given = {"auto.offset.reset": "earliest", "enable.auto.commit": False, "group.id": "never-joined"}
    dotted = {name.replace("_", "."): value for name, value in settings.items()}
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, **given, **dotted})
    try:
        consumer.assign(list(places))
        yield consumer
    finally:
        consumer.close()


def outcomes(broker: ServerProcess, topic: str, *records: dict[str, Any], **settings: Any) -> list[Any]:
    """The error code of each delivery, or the delivered message."""
    found: list[Any] = []
    dotted = {name.replace("_", "."): value for name, value in settings.items()}
    producer = Producer({"bootstrap.servers": broker.bootstrap, **dotted})
    for record in records:
        producer.produce(
            topic, **record, on_delivery=lambda error, message: found.append(error.code() if error else message)
        )
        assert producer.flush(TIMEOUT_SECONDS) == 0
    return found


def poll_one(consumer: Consumer) -> Any:
    message = consumer.poll(TIMEOUT_SECONDS)
    assert message is not None
    return message


def test_a_batch_of_exactly_the_limit(broker: ServerProcess, client: ConfluentClient, topic: str) -> None:
    client.create_topic(topic, configs={"max.message.bytes": "2000"})
    largest = 2000 - BATCH_OVERHEAD_BYTES
    records = ({"value": b"x" * size, "partition": 0} for size in (largest + 1, largest))
    refused, stored = outcomes(broker, topic, *records)
    assert refused == KafkaError.MSG_SIZE_TOO_LARGE
    assert stored.offset() == 0


def test_a_message_above_every_limit(broker: ServerProcess, client: ConfluentClient, topic: str) -> None:
    client.create_topic(topic)
    with pytest.raises(KafkaException) as caught:
        outcomes(broker, topic, {"value": b"x" * 2_000_000})
    assert caught.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    # The library's own limit raised: now the broker refuses, and the producer goes on.
    found = outcomes(broker, topic, {"value": b"x" * 2_000_000}, {"value": b"x"}, message_max_bytes=5_000_000)
    assert found[0] == KafkaError.MSG_SIZE_TOO_LARGE
    assert found[1].offset() == 0


def test_large_messages_are_read_with_small_fetches(broker: ServerProcess, client: ConfluentClient, topic: str) -> None:
    client.create_topic(topic, configs={"max.message.bytes": "4000000"})
    sizes = (3_900_000, 1, 3_000_000)
    found = outcomes(broker, topic, *({"value": b"x" * size} for size in sizes), message_max_bytes=5_000_000)
    assert [message.offset() for message in found] == [0, 1, 2]
    limits = {"fetch_message_max_bytes": 1000, "message_max_bytes": 1000, "fetch_max_bytes": 1000}
    with consuming(broker, TopicPartition(topic, 0, 0), receive_message_max_bytes=20_000_000, **limits) as consumer:
        assert [len(poll_one(consumer).value()) for _ in sizes] == list(sizes)


@pytest.mark.parametrize("ahead_ms", [-2 * HOUR_MS, 2 * HOUR_MS])
def test_times_that_are_refused(broker: ServerProcess, client: ConfluentClient, topic: str, ahead_ms: int) -> None:
    limits = {"message.timestamp.before.max.ms": str(HOUR_MS), "message.timestamp.after.max.ms": str(HOUR_MS)}
    client.create_topic(topic, configs=limits)
    now_ms = int(time.time() * 1000)
    refused, stored = outcomes(
        broker, topic, {"value": b"x", "timestamp": now_ms + ahead_ms}, {"value": b"x", "timestamp": now_ms}
    )
    assert refused == KafkaError.INVALID_TIMESTAMP
    assert stored.timestamp() == (TIMESTAMP_CREATE_TIME, now_ms)


def test_the_time_of_the_broker(broker: ServerProcess, client: ConfluentClient, topic: str) -> None:
    client.create_topic(topic, configs={"message.timestamp.type": "LogAppendTime"})
    before_ms = int(time.time() * 1000)
    (stored,) = outcomes(broker, topic, {"value": b"x", "timestamp": CREATE_TIME_MS})
    with consuming(broker, TopicPartition(topic, 0, 0)) as consumer:
        kind, stamp = poll_one(consumer).timestamp()
    assert kind == TIMESTAMP_LOG_APPEND_TIME
    assert before_ms <= stamp <= int(time.time() * 1000)
    assert stored.timestamp()[1] == stamp


def test_a_record_without_a_key_in_a_compacted_topic(
    broker: ServerProcess, client: ConfluentClient, topic: str
) -> None:
    client.create_topic(topic, configs={"cleanup.policy": "compact"})
    refused, tombstone = outcomes(broker, topic, {"value": b"x"}, {"key": b"k"})
    assert refused == KafkaError.INVALID_RECORD
    assert (tombstone.offset(), tombstone.value()) == (0, None)


def test_more_replicas_wanted_than_there_are(broker: ServerProcess, client: ConfluentClient, topic: str) -> None:
    """Kafka asks for no more replicas in sync than a partition has."""
    client.create_topic(topic, configs={"min.insync.replicas": "2"})
    (stored,) = outcomes(broker, topic, {"value": b"x"}, acks="all")
    assert stored.offset() == 0


def test_places_that_are_not_there(broker: ServerProcess, client: ConfluentClient, topic: str) -> None:
    client.create_topic(topic)
    eventually(lambda: client.partition_count(topic), 1)
    assert outcomes(broker, topic, {"value": b"x", "partition": 7}) == [KafkaError._UNKNOWN_PARTITION]
    missing = f"{topic}-not-there"
    with consuming(broker, TopicPartition(missing, 0, 0), allow_auto_create_topics=False) as consumer:
        with pytest.raises(KafkaException) as caught:
            consumer.get_watermark_offsets(TopicPartition(missing, 0), timeout=TIMEOUT_SECONDS)
        assert caught.value.args[0].code() == KafkaError._UNKNOWN_PARTITION
    assert client.partition_count(missing) is None


def test_the_end_of_a_partition(broker: ServerProcess, client: ConfluentClient, topic: str) -> None:
    client.create_topic(topic)
    client.produce(topic, 0, [Message(b"0"), Message(b"1")])
    with consuming(broker, TopicPartition(topic, 0, OFFSET_BEGINNING), enable_partition_eof=True) as consumer:
        assert [poll_one(consumer).value() for _ in range(2)] == [b"0", b"1"]
        end = poll_one(consumer)
        assert (end.error().code(), end.offset()) == (KafkaError._PARTITION_EOF, 2)
        client.produce(topic, 0, [Message(b"2")])
        assert poll_one(consumer).value() == b"2"
        assert poll_one(consumer).error().code() == KafkaError._PARTITION_EOF


def test_a_position_out_of_range(broker: ServerProcess, client: ConfluentClient, topic: str) -> None:
    client.create_topic(topic)
    client.produce(topic, 0, [Message(b"0")])
    with consuming(broker, TopicPartition(topic, 0, 50), auto_offset_reset="error") as consumer:
        assert poll_one(consumer).error().code() == KafkaError._AUTO_OFFSET_RESET
    with consuming(broker, TopicPartition(topic, 0, 50), auto_offset_reset="latest") as consumer:
        for _ in tries():
            # Where the end is, is asked while more is written.
            client.produce(topic, 0, [Message(b"1")])
            message = consumer.poll(0.1)
            if message is not None:
                break
        assert message is not None
        assert (message.error(), message.value()) == (None, b"1")


def test_seeking_pausing_and_resuming(broker: ServerProcess, client: ConfluentClient, topic: str) -> None:
    client.create_topic(topic, partitions=2)
    for partition in range(2):
        client.produce(
            topic, partition, [Message(b"%d" % n, timestamp_ms=CREATE_TIME_MS + n * 1000) for n in range(10)]
        )
    places = [TopicPartition(topic, partition, OFFSET_END) for partition in range(2)]
    with consuming(broker, *places) as consumer:
        times = [TopicPartition(topic, partition, CREATE_TIME_MS + 4500 + partition * 1000) for partition in range(2)]
        found = consumer.offsets_for_times(times, timeout=TIMEOUT_SECONDS)
        assert [place.offset for place in found] == [5, 6]
        late = consumer.offsets_for_times([TopicPartition(topic, 0, CREATE_TIME_MS + HOUR_MS)], timeout=TIMEOUT_SECONDS)
        assert [place.offset for place in late] == [OFFSET_END]
        consumer.assign(found)
        consumer.pause([places[0]])
        read = [poll_one(consumer) for _ in range(4)]
        assert [(message.partition(), message.offset()) for message in read] == [(1, offset) for offset in range(6, 10)]
        assert consumer.poll(0.2) is None
        consumer.resume([places[0]])
        read = [poll_one(consumer) for _ in range(5)]
        assert [(message.partition(), message.offset()) for message in read] == [(0, offset) for offset in range(5, 10)]
        consumer.seek(TopicPartition(topic, 1, 8))
        assert [poll_one(consumer).value() for _ in range(2)] == [b"8", b"9"]
        assert [place.offset for place in consumer.position(places)] == [10, 10]


def test_a_topic_deleted_and_made_again_under_a_producer(
    broker: ServerProcess, client: ConfluentClient, topic: str
) -> None:
    client.create_topic(topic, partitions=2)
    delivered: list[tuple[int, int]] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap})

    def send(partition: int) -> None:
        def told(error: KafkaError | None, message: Any) -> None:
            assert error is None
            delivered.append((message.partition(), message.offset()))

        producer.produce(topic, b"x", partition=partition, on_delivery=told)
        assert producer.flush(TIMEOUT_SECONDS) == 0

    send(0)
    send(0)
    client.delete_topic(topic)
    eventually(lambda: client.partition_count(topic), None)
    client.create_topic(topic, partitions=3)
    eventually(lambda: client.partition_count(topic), 3)
    eventually(lambda: len(producer.list_topics(topic, timeout=TIMEOUT_SECONDS).topics[topic].partitions), 3)
    send(0)
    send(2)
    assert delivered == [(0, 0), (0, 1), (0, 0), (2, 0)]


def test_a_topic_deleted_and_made_again_under_a_consumer(
    broker: ServerProcess, client: ConfluentClient, topic: str
) -> None:
    client.create_topic(topic)
    client.produce(topic, 0, [Message(b"old") for _ in range(3)])
    settings = {"topic_metadata_refresh_interval_ms": 200, "allow_auto_create_topics": False}
    with consuming(broker, TopicPartition(topic, 0, 0), **settings) as consumer:
        assert [poll_one(consumer).value() for _ in range(3)] == [b"old"] * 3
        client.delete_topic(topic)
        eventually(lambda: client.partition_count(topic), None)
        client.create_topic(topic)
        client.produce(topic, 0, [Message(b"new")])
        while (message := poll_one(consumer)).error() is not None:
            assert message.error().code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION)
        assert (message.offset(), message.value()) == (0, b"new")


def test_many_partitions(broker: ServerProcess, client: ConfluentClient, topic: str) -> None:
    count = 120
    client.create_topic(topic, partitions=count)
    eventually(lambda: client.partition_count(topic), count)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for partition in range(count):
        producer.produce(topic, b"%d" % partition, partition=partition)
    assert producer.flush(TIMEOUT_SECONDS) == 0
    places = [TopicPartition(topic, partition, 0) for partition in range(count)]
    with consuming(broker, *places) as consumer:
        came = [poll_one(consumer) for _ in range(count)]
    assert sorted((message.partition(), message.offset()) for message in came) == [(n, 0) for n in range(count)]
    assert all(message.value() == b"%d" % message.partition() for message in came)
