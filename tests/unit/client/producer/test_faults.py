"""Whatever a broker does, nothing acknowledged is lost, nothing is written twice, and the order stays."""

import asyncio
from typing import Any

import pytest

from ottla.client.errors import DeliveryTimeout, NotAuthorized, OttlaError, Undelivered
from ottla.client.producer.producer import AsyncProducer
from ottla.testing import TestBroker

QUICK: dict[str, Any] = {"retry_backoff_ms": 5, "reconnect_backoff_ms": 5, "linger_ms": 1, "batch_size": 400}


def values_of(broker: TestBroker, topic: str) -> list[bytes | None]:
    return [record.value for record in broker.records(topic)]


async def send_numbers(producer: AsyncProducer, topic: str, count: int) -> list[int]:
    deliveries = []
    for number in range(count):
        deliveries.append(producer.send(topic, b"%06d" % number))
        await producer.drain()
    return [(await delivery).offset for delivery in deliveries]


@pytest.mark.parametrize("codec", ["none", "lz4"])
@pytest.mark.parametrize(
    "code",
    [
        "NOT_LEADER_OR_FOLLOWER",
        "NOT_ENOUGH_REPLICAS",
        "REQUEST_TIMED_OUT",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
        "UNKNOWN_PRODUCER_ID",
        "UNKNOWN_TOPIC_ID",
    ],
)
def test_errors_that_pass_are_not_noticed(ottla: TestBroker, code: str, codec: str) -> None:
    ottla.create_topic("t")
    ottla.faults.error("PRODUCE", code, times=7)

    async def run() -> list[int]:
        async with AsyncProducer(ottla.bootstrap_servers, compression_type=codec, **QUICK) as producer:
            return await send_numbers(producer, "t", 100)

    assert asyncio.run(run()) == list(range(100))
    assert values_of(ottla, "t") == [b"%06d" % number for number in range(100)]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("in_flight", [1, 5])
def test_connections_that_break_lose_and_double_nothing(ottla: TestBroker, when: Any, in_flight: int) -> None:
    ottla.create_topic("t")

    async def run() -> list[int]:
        async with AsyncProducer(ottla.bootstrap_servers, max_in_flight=in_flight, **QUICK) as producer:
            for _ in range(4):
                ottla.faults.disconnect("PRODUCE", when=when)
            return await send_numbers(producer, "t", 150)

    offsets = asyncio.run(run())
    assert offsets == list(range(150))
    assert values_of(ottla, "t") == [b"%06d" % number for number in range(150)]


def test_nothing_overtakes_the_first_batches_that_were_lost_with_their_connection(ottla: TestBroker) -> None:
    """A broker that knows nothing of a producer takes any sequence for its first: the order is the client's care."""
    topics = [f"t{number}" for number in range(25)]
    for topic in topics:
        ottla.create_topic(topic)

    async def run(topic: str) -> list[int]:
        ottla.faults.disconnect("PRODUCE", when="before")
        async with AsyncProducer(ottla.bootstrap_servers, **QUICK | {"batch_size": 50, "linger_ms": 0}) as producer:
            await producer.partitions_for(topic)
            return await send_numbers(producer, topic, 60)

    for topic in topics:
        assert asyncio.run(run(topic)) == list(range(60))
        assert values_of(ottla, topic) == [b"%06d" % number for number in range(60)]


def test_a_broker_that_is_killed_and_comes_back(ottla: TestBroker) -> None:
    ottla.create_topic("t", partitions=2)

    async def run() -> list[Any]:
        async with AsyncProducer(ottla.bootstrap_servers, **QUICK) as producer:
            deliveries = []
            for number in range(300):
                deliveries.append(producer.send("t", b"%06d" % number, partition=number % 2))
                if number % 100 == 50:
                    await asyncio.to_thread(ottla.kill)
                    deliveries.append(producer.send("t", b"%06d-while-down" % number, partition=number % 2))
                    await asyncio.to_thread(ottla.start)
                await producer.drain()
            return [await delivery for delivery in deliveries]

    acknowledged = asyncio.run(run())
    assert len(acknowledged) == 303
    for partition in (0, 1):
        values = [record.value for record in ottla.records("t", partition)]
        assert values == sorted(value or b"" for value in values)
        assert len(values) == len(set(values))
    assert len(ottla.records("t")) == 303


def test_a_refused_batch_leaves_no_gap_for_those_after_it(ottla: TestBroker) -> None:
    ottla.create_topic("t")

    async def run() -> list[Any]:
        async with AsyncProducer(ottla.bootstrap_servers, **QUICK) as producer:
            await producer.send("t", b"first")
            ottla.faults.error("PRODUCE", "INVALID_RECORD")
            deliveries = [producer.send("t", b"%06d" % number) for number in range(200)]
            with pytest.raises(Undelivered):
                await producer.flush()
            return [delivery.exception() for delivery in deliveries]

    errors = asyncio.run(run())
    failed = [number for number, error in enumerate(errors) if error is not None]
    assert failed
    assert failed == list(range(len(failed)))
    assert values_of(ottla, "t") == [b"first", *(b"%06d" % number for number in range(len(failed), 200))]


def test_what_is_not_acknowledged_in_time_fails_and_the_producer_goes_on(ottla: TestBroker) -> None:
    ottla.create_topic("t")

    async def run() -> None:
        settings = {**QUICK, "request_timeout_ms": 500, "delivery_timeout_ms": 1500}
        async with AsyncProducer(ottla.bootstrap_servers, **settings) as producer:
            await producer.send("t", b"first")
            ottla.faults.error("PRODUCE", "NOT_ENOUGH_REPLICAS", times=None)
            with pytest.raises(DeliveryTimeout, match=r"delivery\.timeout\.ms.*NOT_ENOUGH_REPLICAS"):
                await producer.send("t", b"lost")
            ottla.faults.clear()
            await producer.send("t", b"last")

    asyncio.run(run())
    assert values_of(ottla, "t") == [b"first", b"last"]


def test_no_permission_for_idempotence_is_told_to_everybody(ottla: TestBroker) -> None:
    ottla.create_topic("t")
    ottla.faults.error("INIT_PRODUCER_ID", "CLUSTER_AUTHORIZATION_FAILED", times=None)

    async def run() -> None:
        async with AsyncProducer(ottla.bootstrap_servers, **QUICK) as producer:
            with pytest.raises(NotAuthorized, match="IDEMPOTENT_WRITE"):
                await producer.send("t", b"x")
            with pytest.raises(NotAuthorized):
                producer.send("t", b"y")

    asyncio.run(run())


def test_a_topic_that_is_created_late_gets_its_records_in_order(ottla: TestBroker) -> None:
    async def run() -> list[Any]:
        async with AsyncProducer(ottla.bootstrap_servers, **QUICK) as producer:
            deliveries = [producer.send("late", b"%06d" % number) for number in range(20)]
            await asyncio.sleep(0)
            await asyncio.to_thread(ottla.create_topic, "late")
            deliveries += [producer.send("late", b"%06d" % number) for number in range(20, 40)]
            return [(await delivery).offset for delivery in deliveries]

    assert asyncio.run(run()) == list(range(40))
    assert values_of(ottla, "late") == [b"%06d" % number for number in range(40)]


def test_a_topic_that_is_deleted_and_created_again(ottla: TestBroker) -> None:
    ottla.create_topic("t")

    async def run() -> OttlaError | None:
        async with AsyncProducer(ottla.bootstrap_servers, **QUICK) as producer:
            await send_numbers(producer, "t", 5)
            await asyncio.to_thread(_recreate, ottla, "t")
            await send_numbers(producer, "t", 5)
        return None

    asyncio.run(run())
    assert values_of(ottla, "t") == [b"%06d" % number for number in range(5)]


def _recreate(broker: TestBroker, topic: str) -> None:
    from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState

    with broker._observer() as observer:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=5000)
        observer.ask(request, DeleteTopicsResponse, 6)
    broker.create_topic(topic)
