"""Who is asked, in a cluster of three brokers: each thing is asked of the broker that can answer for it.

There are no clusters of more than one Ottla broker yet, so that the brokers here are functions that note who was asked.
"""

import asyncio
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest

from ottla.client.admin import AsyncAdmin, ConfigResource, NewTopic
from ottla.client.cluster import Cluster, Node
from ottla.client.errors import BrokerUnavailable
from ottla.client.network import CoordinatorKind
from ottla.client.types import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.message import Request, Response
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from ottla.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from ottla.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

CONTROLLER = 2


class ThreeBrokers:
    """A `Network`. Partition n of the topic is led by `leaders[n]`, group "g-n" kept by `coordinators[n]`."""

    def __init__(self) -> None:
        nodes = {number: Node(number, "host", 9000 + number) for number in (1, 2, 3)}
        self.cluster = Cluster("id", CONTROLLER, MappingProxyType(nodes))
        self.leaders = [1, 2, 3]
        self.coordinators = [1, 2, 3]
        self.asked: list[tuple[int, str]] = []
        self.known_coordinators: dict[str, int] = {}
        self.answers: dict[type[Request], Callable[[int, Any], Response]] = {
            MetadataRequest: self._metadata,
            ListOffsetsRequest: self._list_offsets,
            DeleteGroupsRequest: self._delete_groups,
            ListGroupsRequest: lambda node, request: ListGroupsResponse(groups=[ListedGroup(group_id=f"g-{node}")]),
            CreateTopicsRequest: lambda node, request: CreateTopicsResponse(
                topics=[
                    CreatableTopicResult(name=topic.name, error_code=self._controller_error(node))
                    for topic in request.topics
                ]
            ),
            CreatePartitionsRequest: lambda node, request: CreatePartitionsResponse(
                results=[CreatePartitionsTopicResult(name=topic.name) for topic in request.topics]
            ),
            DescribeConfigsRequest: lambda node, request: DescribeConfigsResponse(
                results=[
                    DescribeConfigsResult(resource_type=one.resource_type, resource_name=one.resource_name)
                    for one in request.resources
                ]
            ),
        }

    async def ask(self, node_id: int, request: Request, answer: type[Response], **options: object) -> Response:
        if node_id not in self.cluster.nodes:
            raise BrokerUnavailable(f"there is no broker {node_id}")
        self.asked.append((node_id, type(request).__name__))
        return self.answers[type(request)](node_id, request)

    async def ask_any(self, request: Request, answer: type[Response], **options: object) -> Response:
        return await self.ask(1, request, answer)

    async def ask_controller(self, request: Request, answer: type[Response], **options: object) -> Response:
        return await self.ask(CONTROLLER, request, answer)

    async def coordinator(self, kind: CoordinatorKind, key: str) -> int:
        return self.known_coordinators.setdefault(key, self.coordinators[int(key[-1])])

    def forget_coordinator(self, kind: CoordinatorKind, key: str) -> None:
        del self.known_coordinators[key]

    def request_update(self) -> None:
        self.asked.append((0, "update"))

    async def backoff(self, attempt: int) -> None:
        await asyncio.sleep(0)

    async def close(self) -> None:
        return

    def _controller_error(self, node: int) -> ErrorCode:
        return ErrorCode.NONE if node == self.cluster.controller_id else ErrorCode.NOT_CONTROLLER

    def _metadata(self, node: int, request: MetadataRequest) -> MetadataResponse:
        partitions = [
            MetadataResponsePartition(partition_index=number, leader_id=leader)
            for number, leader in enumerate(self.leaders)
        ]
        topics = [MetadataResponseTopic(name=topic.name, partitions=partitions) for topic in request.topics or ()]
        return MetadataResponse(topics=topics)

    def _list_offsets(self, node: int, request: ListOffsetsRequest) -> ListOffsetsResponse:
        topics = [
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=one.partition_index,
                        error_code=0 if self.leaders[one.partition_index] == node else ErrorCode.NOT_LEADER_OR_FOLLOWER,
                        offset=node,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return ListOffsetsResponse(topics=topics)

    def _delete_groups(self, node: int, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(
            results=[
                DeletableGroupResult(
                    group_id=one,
                    error_code=0 if self.coordinators[int(one[-1])] == node else ErrorCode.NOT_COORDINATOR,
                )
                for one in request.groups_names
            ]
        )

    def brokers_asked(self, request: type[Request]) -> list[int]:
        return [node for node, name in self.asked if name == request.__name__]


@pytest.fixture
def network() -> ThreeBrokers:
    return ThreeBrokers()


@pytest.fixture
def admin(network: ThreeBrokers) -> AsyncAdmin:
    anything: Any = network
    return AsyncAdmin("localhost:9092", network=anything)


def test_leaders_are_asked_for_their_own_partitions(network: ThreeBrokers, admin: AsyncAdmin) -> None:
    found = asyncio.run(admin.list_offsets([("t", 2), ("t", 0), ("t", 1)]))
    assert {key.partition: one.offset for key, one in found.succeeded.items() if one} == {2: 3, 0: 1, 1: 2}
    assert network.brokers_asked(ListOffsetsRequest) == [1, 2, 3]


def test_a_leader_that_moved_is_looked_up_again_and_nobody_else_is_asked_twice(
    network: ThreeBrokers, admin: AsyncAdmin
) -> None:
    stale = network.answers[MetadataRequest]

    def moves_meanwhile(node: int, request: Request) -> Response:
        answer = stale(node, request)
        network.leaders[0] = 3
        return answer

    network.answers[MetadataRequest] = moves_meanwhile
    found = asyncio.run(admin.list_offsets([("t", 0), ("t", 1)])).raise_for_errors()
    assert found[TopicPartition("t", 0)] is not None
    assert network.brokers_asked(ListOffsetsRequest) == [1, 2, 3]
    assert (0, "update") in network.asked


def test_coordinators_are_asked_for_their_own_groups_and_forgotten_when_they_move(
    network: ThreeBrokers, admin: AsyncAdmin
) -> None:
    network.known_coordinators["g-1"] = 3
    asyncio.run(admin.delete_groups(["g-0", "g-1", "g-2"])).raise_for_errors()
    assert network.brokers_asked(DeleteGroupsRequest) == [1, 3, 2]
    assert network.known_coordinators == {"g-0": 1, "g-1": 2, "g-2": 3}


def test_every_broker_lists_its_groups(network: ThreeBrokers, admin: AsyncAdmin) -> None:
    listed = asyncio.run(admin.list_groups())
    assert [(one.group_id, one.coordinator) for one in listed] == [("g-1", 1), ("g-2", 2), ("g-3", 3)]


def test_a_list_with_holes_is_no_list(network: ThreeBrokers, admin: AsyncAdmin) -> None:
    def silent(node: int, request: Request) -> Response:
        if node == 3:
            raise BrokerUnavailable("broker 3 is away")
        return ListGroupsResponse()

    network.answers[ListGroupsRequest] = silent
    with pytest.raises(BrokerUnavailable, match="broker 3"):
        asyncio.run(admin.list_groups(timeout=0.05))


def test_changes_go_to_the_controller(network: ThreeBrokers, admin: AsyncAdmin) -> None:
    asyncio.run(admin.create_topics([NewTopic("t", 1)])).raise_for_errors()
    assert network.brokers_asked(CreateTopicsRequest) == [CONTROLLER]
    assert network.brokers_asked(MetadataRequest) == [1, 2, 3]


def test_new_partitions_are_there_when_the_last_broker_has_heard_of_them(
    network: ThreeBrokers, admin: AsyncAdmin
) -> None:
    hears_at_once = network.answers[MetadataRequest]

    def hears_later(node: int, request: MetadataRequest) -> Response:
        answer = hears_at_once(node, request)
        assert isinstance(answer, MetadataResponse)
        if node == 3 and network.brokers_asked(MetadataRequest).count(3) < 4:
            del answer.topics[0].partitions[2:]
        return answer

    network.answers[MetadataRequest] = hears_later
    asyncio.run(admin.create_partitions({"t": 3})).raise_for_errors()
    assert network.brokers_asked(MetadataRequest) == [1, 2, 3, 3, 3, 3]
    network.asked.clear()
    asyncio.run(admin.create_partitions({"t": 3}, wait=False)).raise_for_errors()
    assert network.brokers_asked(MetadataRequest) == []


def test_a_broker_is_asked_about_itself_and_any_about_the_rest(network: ThreeBrokers, admin: AsyncAdmin) -> None:
    resources = [
        ConfigResource.broker(3),
        ConfigResource.topic("t"),
        ConfigResource.broker(2),
        ConfigResource.broker(9),
    ]
    results = asyncio.run(admin.describe_configs(resources))
    assert list(results) == resources
    assert list(results.errors) == [ConfigResource.broker(9)]
    assert network.brokers_asked(DescribeConfigsRequest) == [1, 2, 3]


def test_an_answer_that_leaves_something_out(network: ThreeBrokers, admin: AsyncAdmin) -> None:
    network.answers[DeleteGroupsRequest] = lambda node, request: DeleteGroupsResponse()
    results = asyncio.run(admin.delete_groups(["g-0"]))
    assert "does not mention it" in str(results.errors["g-0"])
