"""kafka-python at the edges: limits, time, positions, topics that come and go. What its user sees."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from tests.compat.clients.adapters.kafka_python import KafkaPythonClient
from tests.compat.clients.contract import eventually
from tests.compat.clients.model import CREATE_TIME_MS, TIMEOUT_SECONDS, Message
from tests.peers.process import ServerProcess

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition
    from kafka import errors as kafka_errors

pytestmark = pytest.mark.timeout(120)

BATCH_OVERHEAD_BYTES = 61 + 9
HOUR_MS = 3_600_000


@pytest.fixture
def client(broker: ServerProcess) -> Iterator[KafkaPythonClient]:
    client = KafkaPythonClient(broker.bootstrap)
    yield client
    client.close()


def send(broker: ServerProcess, topic: str, *records: dict[str, Any], **settings: Any) -> list[Any]:
    """What became of each record: its metadata or the exception.

    Without idempotence: with it, this library's producer sends nothing more after the first refusal.
    """
    found: list[Any] = []
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, enable_idempotence=False, **settings)
    with contextlib.closing(producer):
        for record in records:
            try:
                found.append(producer.send(topic, **record).get(timeout=TIMEOUT_SECONDS))
            except kafka_errors.KafkaError as problem:
                found.append(problem)
    return found


@contextlib.contextmanager
def consuming(broker: ServerProcess, *places: Any, **settings: Any) -> Iterator[Any]:
    given = {"group_id": None, "enable_auto_commit": False, "auto_offset_reset": "earliest"}
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, **(given | settings))
    with contextlib.closing(consumer):
        consumer.assign(list(places))
        yield consumer


def read(consumer: Any, count: int) -> list[Any]:
    came: list[Any] = []
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while len(came) < count:
        assert time.monotonic() < deadline, f"{len(came)} of {count} records came"
        for records in consumer.poll(timeout_ms=500, max_records=count - len(came)).values():
            came += records
    return came


def test_a_batch_of_exactly_the_limit(broker: ServerProcess, client: KafkaPythonClient, topic: str) -> None:
    client.create_topic(topic, configs={"max.message.bytes": "2000"})
    largest = 2000 - BATCH_OVERHEAD_BYTES
    refused, stored = send(broker, topic, *({"value": b"x" * size} for size in (largest + 1, largest)))
    assert type(refused) is kafka_errors.MessageSizeTooLargeError
    assert stored.offset == 0


def test_a_message_above_every_limit(broker: ServerProcess, client: KafkaPythonClient, topic: str) -> None:
    client.create_topic(topic)
    (refused,) = send(broker, topic, {"value": b"x" * 2_000_000})
    assert type(refused) is kafka_errors.MessageSizeTooLargeError
    found = send(broker, topic, {"value": b"x" * 2_000_000}, {"value": b"x"}, max_request_size=5_000_000)
    assert type(found[0]) is kafka_errors.MessageSizeTooLargeError
    assert found[1].offset == 0


def test_large_messages_are_read_with_small_fetches(
    broker: ServerProcess, client: KafkaPythonClient, topic: str
) -> None:
    client.create_topic(topic, configs={"max.message.bytes": "4000000"})
    sizes = [3_900_000, 1, 3_000_000]
    send(broker, topic, *({"value": b"x" * size} for size in sizes), max_request_size=5_000_000)
    limits = {"max_partition_fetch_bytes": 1000, "fetch_max_bytes": 1000}
    with consuming(broker, TopicPartition(topic, 0), **limits) as consumer:
        assert [len(record.value) for record in read(consumer, 3)] == sizes


@pytest.mark.parametrize("ahead_ms", [-2 * HOUR_MS, 2 * HOUR_MS])
def test_times_that_are_refused(broker: ServerProcess, client: KafkaPythonClient, topic: str, ahead_ms: int) -> None:
    limits = {"message.timestamp.before.max.ms": str(HOUR_MS), "message.timestamp.after.max.ms": str(HOUR_MS)}
    client.create_topic(topic, configs=limits)
    now_ms = int(time.time() * 1000)
    stamps = (now_ms + ahead_ms, now_ms)
    refused, stored = send(broker, topic, *({"value": b"x", "timestamp_ms": stamp} for stamp in stamps))
    assert type(refused) is kafka_errors.InvalidTimestampError
    assert (stored.offset, stored.timestamp) == (0, now_ms)


def test_the_time_of_the_broker(broker: ServerProcess, client: KafkaPythonClient, topic: str) -> None:
    client.create_topic(topic, configs={"message.timestamp.type": "LogAppendTime"})
    before_ms = int(time.time() * 1000)
    (stored,) = send(broker, topic, {"value": b"x", "timestamp_ms": CREATE_TIME_MS})
    assert before_ms <= stored.timestamp <= int(time.time() * 1000)
    with consuming(broker, TopicPartition(topic, 0)) as consumer:
        (record,) = read(consumer, 1)
    assert (record.timestamp, record.timestamp_type) == (stored.timestamp, 1)


def test_compacted_topics_want_keys(broker: ServerProcess, client: KafkaPythonClient, topic: str) -> None:
    client.create_topic(topic, configs={"cleanup.policy": "compact"})
    refused, tombstone = send(broker, topic, {"value": b"x"}, {"key": b"k", "value": None})
    assert type(refused) is kafka_errors.InvalidRecordError
    assert tombstone.offset == 0


def test_a_position_out_of_range(broker: ServerProcess, client: KafkaPythonClient, topic: str) -> None:
    client.create_topic(topic)
    client.produce(topic, 0, [Message(b"0")])
    place = TopicPartition(topic, 0)
    with consuming(broker, place, auto_offset_reset="none") as consumer:
        consumer.seek(place, 50)
        with pytest.raises(kafka_errors.OffsetOutOfRangeError):
            read(consumer, 1)


def test_positions_pausing_and_resuming(broker: ServerProcess, client: KafkaPythonClient, topic: str) -> None:
    client.create_topic(topic, partitions=3)
    for partition in range(2):
        client.produce(
            topic, partition, [Message(b"%d" % n, timestamp_ms=CREATE_TIME_MS + n * 1000) for n in range(10)]
        )
    places = [TopicPartition(topic, partition) for partition in range(3)]
    with consuming(broker, *places) as consumer:
        assert consumer.beginning_offsets(places) == dict.fromkeys(places, 0)
        assert [consumer.end_offsets(places)[place] for place in places] == [10, 10, 0]
        wanted = {places[0]: CREATE_TIME_MS + 4500, places[1]: CREATE_TIME_MS + HOUR_MS, places[2]: 0}
        found = consumer.offsets_for_times(wanted)
        assert found[places[0]][:2] == (5, CREATE_TIME_MS + 5000)
        assert (found[places[1]], found[places[2]]) == (None, None)
        consumer.seek(places[0], found[places[0]].offset)
        consumer.pause(places[0])
        assert [(record.partition, record.offset) for record in read(consumer, 10)] == [(1, n) for n in range(10)]
        assert consumer.poll(timeout_ms=200) == {}
        consumer.resume(places[0])
        assert [(record.partition, record.offset) for record in read(consumer, 5)] == [(0, n) for n in range(5, 10)]
        assert consumer.position(places[0]) == 10
        consumer.seek_to_beginning(places[0])
        assert consumer.position(places[0]) == 0
        consumer.seek_to_end(places[0])
        assert consumer.position(places[0]) == 10


def test_a_topic_deleted_and_made_again_under_a_producer(
    broker: ServerProcess, client: KafkaPythonClient, topic: str
) -> None:
    client.create_topic(topic)
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, metadata_max_age_ms=600_000)
    with contextlib.closing(producer):

        def send_two() -> list[int]:
            return [producer.send(topic, b"x", partition=0).get(timeout=TIMEOUT_SECONDS).offset for _ in range(2)]

        assert send_two() == [0, 1]
        client.delete_topic(topic)
        eventually(lambda: client.partition_count(topic), None)
        client.create_topic(topic)
        eventually(lambda: client.partition_count(topic), 1)
        assert send_two() == [0, 1]


def test_many_partitions(broker: ServerProcess, client: KafkaPythonClient, topic: str) -> None:
    count = 120
    client.create_topic(topic, partitions=count)
    eventually(lambda: client.partition_count(topic), count)
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    with contextlib.closing(producer):
        sent = [producer.send(topic, b"%d" % partition, partition=partition) for partition in range(count)]
        assert {future.get(timeout=TIMEOUT_SECONDS).offset for future in sent} == {0}
    with consuming(broker, *(TopicPartition(topic, partition) for partition in range(count))) as consumer:
        came = sorted((record.partition, record.offset, record.value) for record in read(consumer, count))
    assert came == [(partition, 0, b"%d" % partition) for partition in range(count)]
