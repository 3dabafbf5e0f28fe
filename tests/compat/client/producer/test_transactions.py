"""Transactions of AsyncProducer on both brokers: all of it or nothing, and fencing."""

import asyncio
from typing import Any

import pytest
from tests.compat.client.producer.reading import Place

from ottla.client.errors import Fenced, MustAbort, TransactionAborted, TransactionError
from ottla.client.network import Network
from ottla.client.producer.batches import Delivery
from ottla.client.producer.producer import AsyncProducer


def run(work: Any) -> Any:
    return asyncio.run(work)


def producer_of(place: Place, name: str, version: int, **settings: Any) -> AsyncProducer[bytes, bytes]:
    """One that has its transactions in that version, whatever the broker offers."""
    producer: AsyncProducer[bytes, bytes] = AsyncProducer(place.bootstrap, transactional_id=name, **settings)
    assert producer.engine.transactions is not None
    network = producer.engine.transactions._network
    producer.engine.transactions._network = Limited(network, version)
    return producer


class Limited:
    """A network whose cluster has agreed on an older version of transactions."""

    def __init__(self, network: Network, version: int) -> None:
        self._network = network
        self._version = version

    def feature_level(self, name: str) -> int:
        return min(self._network.feature_level(name), self._version)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._network, name)


@pytest.fixture(params=[1, 2])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def test_committed_records_are_seen_and_aborted_ones_are_not(place: Place, topic: str, version: int) -> None:
    place.make_topic(topic, 2)

    async def send() -> None:
        async with producer_of(place, f"{topic}-id", version) as producer:
            await producer.init_transactions()
            for round_number in range(4):
                producer.begin_transaction()
                for number in range(20):
                    producer.send(topic, b"%d-%d" % (round_number, number), partition=number % 2)
                if round_number % 2:
                    await producer.flush()
                    await producer.abort_transaction()
                else:
                    await producer.commit_transaction()

    run(send())
    values = [seen.value for seen in place.read(topic, 2, "read_committed")]
    assert values == [
        b"%d-%d" % (round_number, number)
        for first in (0, 1)
        for round_number in (0, 2)
        for number in range(first, 20, 2)
    ]
    assert len(place.read(topic, 2)) == 80


def test_the_context_manager_commits_or_aborts(place: Place, topic: str, version: int) -> None:
    place.make_topic(topic)

    deliveries: list[Delivery] = []

    async def interrupted(producer: AsyncProducer[bytes, bytes]) -> None:
        async with producer.transaction():
            deliveries.append(producer.send(topic, b"bad"))
            raise KeyError

    async def send() -> None:
        async with producer_of(place, f"{topic}-id", version) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                producer.send(topic, b"good")
            with pytest.raises(KeyError):
                await interrupted(producer)
            async with producer.transaction():
                producer.send(topic, b"again")

    run(send())
    assert isinstance(deliveries[0].exception(), TransactionAborted)
    assert [seen.value for seen in place.read(topic, 1, "read_committed")] == [b"good", b"again"]


def test_offsets_are_committed_with_the_transaction(place: Place, topic: str, version: int) -> None:
    place.make_topic(topic)

    async def send() -> None:
        async with producer_of(place, f"{topic}-id", version) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                producer.send(topic, b"x")
                await producer.send_offsets_to_transaction({(topic, 0): 5}, f"{topic}-group")
            producer.begin_transaction()
            await producer.send_offsets_to_transaction({(topic, 0): 9}, f"{topic}-group")
            await producer.abort_transaction()

    run(send())
    assert place.committed(f"{topic}-group", topic) == 5


def test_a_newer_producer_fences_the_older(place: Place, topic: str, version: int) -> None:
    place.make_topic(topic)

    async def send() -> None:
        async with (
            producer_of(place, f"{topic}-id", version) as older,
            producer_of(place, f"{topic}-id", version) as newer,
        ):
            await older.init_transactions()
            older.begin_transaction()
            older.send(topic, b"old")
            await older.flush()
            await newer.init_transactions()
            with pytest.raises(Fenced, match="taken over"):
                await older.commit_transaction()
            with pytest.raises(Fenced):
                older.begin_transaction()
            async with newer.transaction():
                newer.send(topic, b"new")

    run(send())
    assert [seen.value for seen in place.read(topic, 1, "read_committed")] == [b"new"]


def test_a_record_that_fails_calls_for_an_abort_and_the_producer_goes_on(
    place: Place, topic: str, version: int
) -> None:
    place.make_topic(topic, max_message_bytes="1000")

    async def send() -> None:
        async with producer_of(place, f"{topic}-id", version) as producer:
            await producer.init_transactions()
            producer.begin_transaction()
            producer.send(topic, b"dropped")
            delivery = producer.send(topic, bytes(5000))
            with pytest.raises(MustAbort, match="abort_transaction"):
                await producer.commit_transaction()
            assert delivery.exception() is not None
            with pytest.raises(MustAbort):
                producer.send(topic, b"more")
            await producer.abort_transaction()
            async with producer.transaction():
                producer.send(topic, b"good")

    run(send())
    assert [seen.value for seen in place.read(topic, 1, "read_committed")] == [b"good"]


def test_records_behind_one_that_fails_are_given_up_at_once(place: Place, topic: str, version: int) -> None:
    place.make_topic(topic, max_message_bytes="1000")

    async def send() -> list[Delivery]:
        producer = producer_of(place, f"{topic}-id", version, max_in_flight=1, batch_size=200)
        async with producer:
            await producer.init_transactions()
            producer.begin_transaction()
            deliveries = [producer.send(topic, bytes(size)) for size in (5000, *[100] * 20)]
            with pytest.raises(MustAbort):
                await producer.commit_transaction(20)
            await producer.abort_transaction()
            return deliveries

    assert all(delivery.exception() is not None for delivery in run(send()))
    assert place.read(topic, 1, "read_committed") == []


def test_calls_out_of_order_are_refused_with_what_to_do(place: Place, topic: str) -> None:
    place.make_topic(topic)

    async def send() -> None:
        async with AsyncProducer(place.bootstrap) as plain:
            with pytest.raises(TransactionError, match="transactional_id"):
                plain.begin_transaction()
        async with AsyncProducer(place.bootstrap, transactional_id=f"{topic}-id") as producer:
            with pytest.raises(TransactionError, match="init_transactions"):
                producer.send(topic, b"x")
            await producer.init_transactions()
            with pytest.raises(TransactionError, match="begin_transaction"):
                producer.send(topic, b"x")
            with pytest.raises(TransactionError, match="not in a transaction"):
                await producer.commit_transaction()
            producer.begin_transaction()
            with pytest.raises(TransactionError, match="cannot begin_transaction"):
                producer.begin_transaction()
            await producer.commit_transaction()

    run(send())
    assert place.read(topic) == []
