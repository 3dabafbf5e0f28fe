"""Requests that brokers do not answer: they are done when they left, and not before."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.unit.client.rogue import NODE_ID, Asked, Rogue, connected, rogue

from ottla.client.connections import Connections
from ottla.client.errors import BrokerUnavailable, ClientClosed
from ottla.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

# More than sockets hold.
LARGE = bytes(16_000_000)


def told(network: Connections, records: bytes) -> "asyncio.Future[None]":
    data = [PartitionProduceData(index=0, records=records)]
    request = ProduceRequest(acks=0, topic_data=[TopicProduceData(topic_id=b"t" * 16, partition_data=data)])
    future = network.tell(NODE_ID, request)
    assert future is not None
    return future


@asynccontextmanager
async def deaf(**settings: Any) -> AsyncIterator[tuple[Rogue, Connections, asyncio.Event]]:
    """A broker that reads nothing behind the first such request until the event is set."""
    listens = asyncio.Event()

    async def behave(asked: Asked) -> None:
        if asked.kind is ProduceRequest:
            await listens.wait()
        else:
            asked.answer(asked.kind.RESPONSE())

    async with rogue(behave) as broker, connected(broker.address, **settings) as network:
        try:
            yield broker, network, listens
        finally:
            listens.set()


async def is_done_soon(future: "asyncio.Future[None]") -> bool:
    done, _ = await asyncio.wait({future}, timeout=0.05)
    return bool(done)


def test_it_is_done_when_its_last_byte_left_and_the_order_stays() -> None:
    async def work() -> None:
        async with deaf() as (broker, network, listens):
            small = told(network, b"small")
            assert await is_done_soon(small)
            large = told(network, LARGE)
            behind = told(network, b"behind")
            asked = asyncio.ensure_future(network.ask(NODE_ID, ListGroupsRequest(), ListGroupsResponse))
            assert not await is_done_soon(large)
            assert not behind.done()
            listens.set()
            await large
            await behind
            await asked
            kinds = [one.kind for one in broker.asked[-4:]]
            assert kinds == [ProduceRequest, ProduceRequest, ProduceRequest, ListGroupsRequest]

    asyncio.run(work())


def test_a_connection_that_breaks_is_told() -> None:
    async def work() -> None:
        async with deaf() as (broker, network, _):
            waiting = [told(network, LARGE), told(network, b"behind")]
            broker.hang_up()
            for one in waiting:
                with pytest.raises(BrokerUnavailable):
                    await one

    asyncio.run(work())


def test_a_broker_that_does_not_take_it_is_given_up_after_the_request_timeout() -> None:
    async def work() -> None:
        async with deaf(request_timeout_ms=100) as (_, network, _listens):
            await told(network, b"small")
            with pytest.raises(BrokerUnavailable, match="did not take"):
                await told(network, LARGE)

    asyncio.run(work())


def test_closing_tells_what_was_not_sent() -> None:
    async def work() -> None:
        async with deaf() as (_, network, _listens):
            waiting = told(network, LARGE)
            await network.close()
            with pytest.raises(ClientClosed):
                await waiting

    asyncio.run(work())


def test_what_was_sent_arrives_although_an_answer_comes_after_closing() -> None:
    """A system that receives something on a closed socket throws away what it has not sent."""
    answers = asyncio.Event()

    async def behave(asked: Asked) -> None:
        if asked.kind is ListGroupsRequest:
            await answers.wait()
            asked.answer(ListGroupsResponse())

    async def work() -> None:
        async with rogue(behave) as broker, connected(broker.address) as network:
            promise = network.ask_now(NODE_ID, ListGroupsRequest())
            assert promise is not None
            for _ in range(10):
                await told(network, bytes(100_000))
            promise.add_done_callback(lambda _: answers.set())
            await network.close()
            assert isinstance(promise.exception(), ClientClosed)
            await asyncio.wait_for(broker.was_left.wait(), 60.0)
            assert [one.kind for one in broker.asked[-11:]] == [ListGroupsRequest] + [ProduceRequest] * 10

    asyncio.run(work())
