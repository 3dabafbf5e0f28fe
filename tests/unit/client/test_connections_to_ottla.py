"""Connections to an Ottla in this process: topics, coordinators, and a broker that dies and comes back."""

import asyncio
import itertools

import pytest
from tests.unit.client.rogue import connected
from tests.waiting import tries

from ottla.client.cluster import Cluster
from ottla.client.config import AdminConfig, ConsumerConfig, resolve
from ottla.client.connections import Connections
from ottla.client.errors import BrokerUnavailable
from ottla.client.network import CoordinatorKind, broker_of
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from ottla.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.testing import TestBroker


def test_topics_are_learned_also_when_they_are_deleted_and_created_again() -> None:
    create = CreateTopicsRequest(topics=[CreatableTopic(name="orders", num_partitions=3, replication_factor=1)])
    delete = DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")], timeout_ms=10_000)

    async def work(servers: str) -> None:
        async with asyncio.timeout(60.0), connected(servers, AdminConfig) as network:
            await network.ask_controller(create, CreateTopicsResponse)
            network.watch_topics(["orders"])
            known = network.cluster
            ids = []
            for _ in range(2):
                while "orders" not in known.topics or known.topics["orders"].topic_id in ids:
                    network.request_update()
                    known = await network.updated(known, 10.0)
                ids.append(known.topics["orders"].topic_id)
                assert [known.leader_of("orders", partition) for partition in range(3)] == list(known.nodes) * 3
                await network.ask_controller(delete, DeleteTopicsResponse)
                await network.ask_controller(create, CreateTopicsResponse)

    with TestBroker() as broker:
        asyncio.run(work(broker.bootstrap_servers))


def test_coordinators_are_found() -> None:
    async def work(servers: str) -> None:
        async with connected(servers) as network:
            for kind in CoordinatorKind:
                assert broker_of(await network.coordinator(kind, "some")) in network.cluster.nodes

    with TestBroker({"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}) as broker:
        asyncio.run(work(broker.bootstrap_servers))


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_broker_that_dies_and_comes_back_is_found_again(is_clean: bool) -> None:
    async def work(broker: TestBroker) -> None:
        async with connected(broker.bootstrap_servers) as network:
            (node_id,) = network.cluster.nodes
            for _ in range(3):
                await asyncio.to_thread(broker.stop if is_clean else broker.kill)
                with pytest.raises(BrokerUnavailable):
                    await network.ask(node_id, ListGroupsRequest(), ListGroupsResponse)
                await asyncio.to_thread(broker.start)
                async with asyncio.timeout(60.0):
                    for attempt in itertools.count():
                        try:
                            await network.ask(node_id, ListGroupsRequest(), ListGroupsResponse)
                            break
                        except BrokerUnavailable:
                            await network.backoff(attempt)
                known = network.cluster
                network.request_update()
                await network.updated(known, 20.0)

    with TestBroker() as broker:
        asyncio.run(work(broker))


def test_a_question_that_comes_before_the_first_metadata_is_asked_at_the_bootstrap_server() -> None:
    """Its connection waits for an answer then, and no broker is known to which there could be another one."""

    async def work(broker: TestBroker) -> None:
        network = Connections(resolve(ConsumerConfig, broker.bootstrap_servers), has_long_polls=True)
        network.start()
        try:
            async with asyncio.timeout(60.0):
                assert await asyncio.to_thread(lambda: any(broker.faults.requests("METADATA") for _ in tries()))
                assert not network.cluster.nodes
                assert broker_of(await network.coordinator(CoordinatorKind.GROUP, "early")) in network.cluster.nodes
        finally:
            await network.close()

    with TestBroker({"offsets.topic.num.partitions": "1"}) as broker:
        broker.faults.delay("METADATA", 1.0)
        asyncio.run(work(broker))


def test_what_is_known_is_empty_before_anything_was_learned() -> None:
    cluster = Cluster()
    assert cluster.leader_of("orders", 0) == -1
    assert cluster.partition("orders", 0) is None
