"""aiokafka at the edges: limits, time, positions, topics that come and go. What its user sees."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import Any, TypeVar

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka import errors as kafka_errors
from tests.compat.clients.adapters.aio import AiokafkaClient
from tests.compat.clients.contract import eventually
from tests.compat.clients.model import CREATE_TIME_MS, TIMEOUT_SECONDS, Message
from tests.peers.process import ServerProcess

pytestmark = pytest.mark.timeout(120)

BATCH_OVERHEAD_BYTES = 61 + 9
HOUR_MS = 3_600_000
CREATE_TIME, LOG_APPEND_TIME = 0, 1

_Result = TypeVar("_Result")


@pytest.fixture
def client(broker: ServerProcess) -> AiokafkaClient:
    return AiokafkaClient(broker.bootstrap)


def run(work: Awaitable[_Result]) -> _Result:
    async def limited() -> _Result:
        return await asyncio.wait_for(work, 2 * TIMEOUT_SECONDS)

    return asyncio.run(limited())


def send(broker: ServerProcess, topic: str, *records: dict[str, Any], **settings: Any) -> list[Any]:
    """What became of each record: its metadata or the exception."""

    async def send_all() -> list[Any]:
        found: list[Any] = []
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, **settings) as producer:
            for record in records:
                try:
                    found.append(await producer.send_and_wait(topic, **record))
                except kafka_errors.KafkaError as problem:
                    found.append(problem)
        return found

    return run(send_all())


def consumer(broker: ServerProcess, **settings: Any) -> Any:
    given = {"group_id": None, "enable_auto_commit": False, "auto_offset_reset": "earliest"}
    return AIOKafkaConsumer(bootstrap_servers=broker.bootstrap, **(given | settings))


def test_a_batch_of_exactly_the_limit(broker: ServerProcess, client: AiokafkaClient, topic: str) -> None:
    client.create_topic(topic, configs={"max.message.bytes": "2000"})
    largest = 2000 - BATCH_OVERHEAD_BYTES
    refused, stored = send(broker, topic, *({"value": b"x" * size} for size in (largest + 1, largest)))
    assert type(refused) is kafka_errors.MessageSizeTooLargeError
    assert stored.offset == 0


def test_a_message_above_every_limit(broker: ServerProcess, client: AiokafkaClient, topic: str) -> None:
    client.create_topic(topic)
    (refused,) = send(broker, topic, {"value": b"x" * 2_000_000})
    assert type(refused) is kafka_errors.MessageSizeTooLargeError
    found = send(broker, topic, {"value": b"x" * 2_000_000}, {"value": b"x"}, max_request_size=5_000_000)
    assert type(found[0]) is kafka_errors.MessageSizeTooLargeError
    assert found[1].offset == 0


def test_large_messages_are_read_with_small_fetches(broker: ServerProcess, client: AiokafkaClient, topic: str) -> None:
    client.create_topic(topic, configs={"max.message.bytes": "4000000"})
    sizes = [3_900_000, 1, 3_000_000]
    send(broker, topic, *({"value": b"x" * size} for size in sizes), max_request_size=5_000_000)

    async def read() -> list[int]:
        async with consumer(broker, max_partition_fetch_bytes=1000, fetch_max_bytes=1000) as reader:
            reader.assign([TopicPartition(topic, 0)])
            return [len((await reader.getone()).value) for _ in sizes]

    assert run(read()) == sizes


@pytest.mark.parametrize("ahead_ms", [-2 * HOUR_MS, 2 * HOUR_MS])
def test_times_that_are_refused(broker: ServerProcess, client: AiokafkaClient, topic: str, ahead_ms: int) -> None:
    limits = {"message.timestamp.before.max.ms": str(HOUR_MS), "message.timestamp.after.max.ms": str(HOUR_MS)}
    client.create_topic(topic, configs=limits)
    now_ms = int(time.time() * 1000)
    stamps = (now_ms + ahead_ms, now_ms)
    refused, stored = send(broker, topic, *({"value": b"x", "timestamp_ms": stamp} for stamp in stamps))
    assert type(refused) is kafka_errors.InvalidTimestampError
    assert (stored.offset, stored.timestamp, stored.timestamp_type) == (0, now_ms, CREATE_TIME)


def test_the_time_of_the_broker(broker: ServerProcess, client: AiokafkaClient, topic: str) -> None:
    client.create_topic(topic, configs={"message.timestamp.type": "LogAppendTime"})
    before_ms = int(time.time() * 1000)
    (stored,) = send(broker, topic, {"value": b"x", "timestamp_ms": CREATE_TIME_MS})
    assert stored.timestamp_type == LOG_APPEND_TIME
    assert before_ms <= stored.timestamp <= int(time.time() * 1000)
    assert client.consume(topic, 0, 0, 1)[0].timestamp_ms == stored.timestamp


def test_compacted_topics_want_keys(broker: ServerProcess, client: AiokafkaClient, topic: str) -> None:
    client.create_topic(topic, configs={"cleanup.policy": "compact"})
    refused, tombstone = send(broker, topic, {"value": b"x"}, {"key": b"k", "value": None})
    # Kafka's code 87, which this library does not know by name.
    assert isinstance(refused, kafka_errors.UnknownError)
    assert tombstone.offset == 0


def test_a_position_out_of_range(broker: ServerProcess, client: AiokafkaClient, topic: str) -> None:
    client.create_topic(topic)
    client.produce(topic, 0, [Message(b"0")])
    place = TopicPartition(topic, 0)

    async def read() -> None:
        async with consumer(broker, auto_offset_reset="none") as reader:
            reader.assign([place])
            reader.seek(place, 50)
            await reader.getone()

    with pytest.raises(kafka_errors.OffsetOutOfRangeError) as caught:
        run(read())
    assert caught.value.args[0] == {place: 50}


def test_places_that_are_not_there(broker: ServerProcess, client: AiokafkaClient, topic: str) -> None:
    client.create_topic(topic)
    eventually(lambda: client.partition_count(topic), 1)

    async def send_to_unknown_partition() -> None:
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            await producer.send_and_wait(topic, b"x", partition=7)

    with pytest.raises(AssertionError, match="Unrecognized partition"):
        run(send_to_unknown_partition())


def test_offsets_and_times(broker: ServerProcess, client: AiokafkaClient, topic: str) -> None:
    client.create_topic(topic, partitions=3)
    for partition in range(2):
        client.produce(
            topic, partition, [Message(b"%d" % n, timestamp_ms=CREATE_TIME_MS + n * 1000) for n in range(10)]
        )
    places = [TopicPartition(topic, partition) for partition in range(3)]

    async def ask() -> None:
        async with consumer(broker) as reader:
            reader.assign(places)
            assert await reader.beginning_offsets(places) == dict.fromkeys(places, 0)
            assert await reader.end_offsets(places) == dict(zip(places, (10, 10, 0), strict=True))
            wanted = {places[0]: CREATE_TIME_MS + 4500, places[1]: CREATE_TIME_MS + HOUR_MS, places[2]: 0}
            found = await reader.offsets_for_times(wanted)
            assert found[places[0]] == (5, CREATE_TIME_MS + 5000)
            assert (found[places[1]], found[places[2]]) == (None, None)
            await reader.seek_to_end(places[0])
            assert await reader.position(places[0]) == 10
            await reader.seek_to_beginning(places[0])
            assert await reader.position(places[0]) == 0

    run(ask())


def test_pausing_and_resuming(broker: ServerProcess, client: AiokafkaClient, topic: str) -> None:
    client.create_topic(topic, partitions=2)
    for partition in range(2):
        client.produce(topic, partition, [Message(b"%d" % n) for n in range(5)])
    places = [TopicPartition(topic, partition) for partition in range(2)]

    async def read() -> None:
        async with consumer(broker) as reader:
            reader.assign(places)
            reader.pause(places[0])
            assert reader.paused() == {places[0]}
            came = [await reader.getone() for _ in range(5)]
            assert [(record.partition, record.offset) for record in came] == [(1, offset) for offset in range(5)]
            assert await reader.getmany(timeout_ms=200) == {}
            assert reader.highwater(places[1]) == 5
            reader.resume(places[0])
            came = [await reader.getone() for _ in range(5)]
            assert [(record.partition, record.offset) for record in came] == [(0, offset) for offset in range(5)]

    run(read())


def test_a_topic_deleted_and_made_again_under_its_users(
    broker: ServerProcess, client: AiokafkaClient, topic: str
) -> None:
    client.create_topic(topic)

    async def use() -> list[int]:
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, metadata_max_age_ms=600_000) as producer:
            before = [(await producer.send_and_wait(topic, b"x", partition=0)).offset for _ in range(2)]
            await asyncio.to_thread(client.delete_topic, topic)
            await asyncio.to_thread(eventually, lambda: client.partition_count(topic), None)
            await asyncio.to_thread(client.create_topic, topic, 1)
            await asyncio.to_thread(eventually, lambda: client.partition_count(topic), 1)
            after = [(await producer.send_and_wait(topic, b"y", partition=0)).offset for _ in range(2)]
            return before + after

    assert run(use()) == [0, 1, 0, 1]
    assert [record.value for record in client.consume(topic, 0, 0, 2)] == [b"y", b"y"]


def test_many_partitions(broker: ServerProcess, client: AiokafkaClient, topic: str) -> None:
    count = 120
    client.create_topic(topic, partitions=count)
    eventually(lambda: client.partition_count(topic), count)
    send(broker, topic, *({"value": b"%d" % n, "partition": n} for n in range(count)))

    async def read() -> list[tuple[int, int, bytes]]:
        async with consumer(broker) as reader:
            reader.assign([TopicPartition(topic, partition) for partition in range(count)])
            came = [await reader.getone() for _ in range(count)]
            return sorted((record.partition, record.offset, record.value) for record in came)

    assert run(read()) == [(n, 0, b"%d" % n) for n in range(count)]
