"""What clients learn of topics and coordinators, and how often brokers are asked for it."""

import asyncio
from typing import Any

import pytest
from tests.unit.client.rogue import NODE_ID, Asked, Rogue, connected, rogue, unsupported_versions

from ottla.client.cluster import Cluster, Node
from ottla.client.config import AdminConfig, ConsumerConfig
from ottla.client.errors import BrokerError, BrokerUnavailable, NotAuthorized
from ottla.client.network import CoordinatorKind, broker_of
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

GROUP, TRANSACTION = CoordinatorKind.GROUP, CoordinatorKind.TRANSACTION


class Topics:
    """Metadata of topics that a test decides; those that are asked for and not there are unknown."""

    def __init__(self, broker: Rogue, *names: str) -> None:
        self.names = dict.fromkeys(names, 0)
        self.asked_for: list[list[str] | None] = []
        self.creates: list[bool] = []
        self._broker = broker
        broker.metadata = self.answer

    def answer(self, asked: Asked) -> MetadataResponse:
        assert isinstance(asked.request, MetadataRequest)
        wanted = asked.request.topics
        names = None if wanted is None else [topic.name or "" for topic in wanted]
        self.asked_for.append(names)
        self.creates.append(asked.request.allow_auto_topic_creation)
        answer = self._broker.alone()
        answer.topics = [self._topic(name) for name in (self.names if names is None else names)]
        return answer

    def _topic(self, name: str) -> MetadataResponseTopic:
        if name not in self.names:
            return MetadataResponseTopic(name=name, error_code=int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        leader = MetadataResponsePartition(partition_index=0, leader_id=NODE_ID, leader_epoch=self.names[name])
        return MetadataResponseTopic(name=name, topic_id=name.encode().ljust(16, b"."), partitions=[leader])


class TestTopics:
    def test_new_ones_are_asked_for_alone_and_all_together_later(self) -> None:
        async def work() -> None:
            async with rogue() as broker:
                topics = Topics(broker, "a", "b", "c")
                async with connected(broker.address) as network:
                    network.watch_topics(["a"])
                    known = await network.updated(network.cluster, 10.0)
                    network.watch_topics(["b", "a"])
                    known = await network.updated(known, 10.0)
                    assert sorted(known.topics) == ["a", "b"]
                    network.request_update()
                    known = await network.updated(known, 10.0)
                    assert topics.asked_for == [[], ["a"], ["b"], ["a", "b"]]
                    network.unwatch_topics(["a", "z"])
                    assert sorted(network.cluster.topics) == ["a", "b"]
                    network.unwatch_topics(["a"])
                    assert list(network.cluster.topics) == ["b"]
                    network.watch_topics(["missing"])
                    known = await network.updated(network.cluster, 10.0)
                    assert network.topic_error("missing") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    network.unwatch_topics(["missing"])
                    assert network.topic_error("missing") == 0

        asyncio.run(work())

    def test_all_topics_are_known_while_somebody_wants_that(self) -> None:
        async def work() -> None:
            async with rogue() as broker:
                topics = Topics(broker, "a", "b", "c")
                async with connected(broker.address) as network:
                    network.watch_topics(["a"])
                    known = await network.updated(network.cluster, 10.0)
                    network.watch_all_topics(True)
                    known = await network.updated(known, 10.0)
                    assert sorted(known.topics) == ["a", "b", "c"]
                    assert topics.asked_for[-1] is None
                    network.watch_all_topics(False)
                    assert list(network.cluster.topics) == ["a"]

        asyncio.run(work())

    def test_a_topic_that_is_not_there_yet_is_asked_for_until_it_is(self) -> None:
        async def work() -> None:
            async with rogue() as broker:
                topics = Topics(broker)
                async with connected(broker.address) as network:
                    network.watch_topics(["late"])
                    known = await network.updated(network.cluster, 10.0)
                    assert network.topic_error("late") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    topics.names["late"] = 0
                    while "late" not in known.topics:
                        known = await network.updated(known, 10.0)
                    assert network.topic_error("late") == 0
                    assert known.leader_of("late", 0) == NODE_ID

        asyncio.run(work())

    def test_requests_for_an_update_are_answered_together(self) -> None:
        async def work() -> None:
            async with rogue() as broker:
                topics = Topics(broker, "a")
                async with connected(broker.address, retry_backoff_ms=20, retry_backoff_max_ms=20) as network:
                    for _ in range(50):
                        network.request_update()
                    await asyncio.gather(*(network.updated(network.cluster, 10.0) for _ in range(50)))
                    assert len(topics.asked_for) == 2

        asyncio.run(work())

    def test_what_is_known_is_renewed_when_it_is_old(self) -> None:
        async def work() -> None:
            async with rogue() as broker:
                Topics(broker)
                async with connected(broker.address, metadata_max_age_ms=20) as network:
                    known = network.cluster
                    for _ in range(3):
                        known = await network.updated(known, 10.0)

        asyncio.run(work())

    @pytest.mark.parametrize(
        ("kind", "settings", "creates"),
        [
            (ConsumerConfig, {}, True),
            (ConsumerConfig, {"allow_auto_create_topics": False}, False),
            (AdminConfig, {}, False),
        ],
    )
    def test_topics_are_created_only_where_that_is_wanted(self, kind: Any, settings: Any, creates: bool) -> None:
        async def work() -> None:
            async with rogue() as broker:
                topics = Topics(broker, "a")
                async with connected(broker.address, kind, **settings) as network:
                    network.watch_topics(["a"])
                    await network.updated(network.cluster, 10.0)
                assert topics.creates[-1] is creates

        asyncio.run(work())

    def test_listeners_see_both_clusters_and_one_that_fails_harms_nobody(self) -> None:
        async def work() -> None:
            seen: list[tuple[int, int]] = []

            def fails(old: Cluster, new: Cluster) -> None:
                raise LookupError

            async with rogue() as broker:
                Topics(broker, "a")
                async with connected(broker.address) as network:
                    network.on_cluster(fails)
                    network.on_cluster(lambda old, new: seen.append((old.version, new.version)))
                    network.watch_topics(["a"])
                    await network.updated(network.cluster, 10.0)
                    network.learn_leader("a", 0, 9, 5, [Node(9, "elsewhere", 1)])
                    assert network.cluster.leader_of("a", 0) == 9
                    assert seen == [(1, 2), (2, 3)]

        asyncio.run(work())


class TestCoordinators:
    def test_keys_that_are_wanted_together_are_asked_for_together_and_remembered(self) -> None:
        asked_keys: list[list[str]] = []

        async def behave(asked: Asked) -> None:
            if isinstance(asked.request, FindCoordinatorRequest):
                asked_keys.append(asked.request.coordinator_keys)
                asked.answer(found(*asked.request.coordinator_keys))
            else:
                asked.answer(asked.kind.RESPONSE())

        async def work() -> None:
            async with rogue(behave) as broker:
                broker.metadata = lambda asked: broker.alone()
                async with connected(broker.address) as network:
                    keys = ["a", "b", "c", "a"]
                    links = await asyncio.gather(*(network.coordinator(GROUP, key) for key in keys))
                    assert {broker_of(link) for link in links} == {NODE_ID}
                    assert asked_keys == [["a", "b", "c"]]
                    assert await network.coordinator(GROUP, "a") == links[0]
                    assert len(asked_keys) == 1
                    network.forget_coordinator(GROUP, "a")
                    assert await network.coordinator(GROUP, "a") == links[0]
                    assert asked_keys[1:] == [["a"]]
                    assert await network.coordinator(TRANSACTION, "t") == NODE_ID
                    await network.ask(links[0], ListGroupsRequest(), ListGroupsResponse)
                    assert broker.connections == 2

        asyncio.run(work())

    def test_it_is_asked_again_while_there_is_none(self) -> None:
        codes = [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE]

        async def behave(asked: Asked) -> None:
            asked.answer(found("g", code=codes.pop(0)))

        async def work() -> None:
            async with rogue(behave) as broker, connected(broker.address) as network:
                assert broker_of(await network.coordinator(GROUP, "g")) == NODE_ID
                assert codes == []

        asyncio.run(work())

    def test_what_is_final_is_told_for_its_key_alone(self) -> None:
        async def behave(asked: Asked) -> None:
            refused = found("secret", code=ErrorCode.GROUP_AUTHORIZATION_FAILED).coordinators
            asked.answer(FindCoordinatorResponse(coordinators=refused + found("open").coordinators))

        async def work() -> None:
            async with rogue(behave) as broker, connected(broker.address) as network:
                results = await asyncio.gather(
                    network.coordinator(GROUP, "secret"), network.coordinator(GROUP, "open"), return_exceptions=True
                )
                assert isinstance(results[0], NotAuthorized)
                assert not isinstance(results[1], BaseException)

        asyncio.run(work())

    def test_one_that_is_never_found_is_told_with_the_reason(self) -> None:
        async def behave(asked: Asked) -> None:
            asked.answer(found("g", code=ErrorCode.COORDINATOR_NOT_AVAILABLE))

        async def work() -> None:
            async with rogue(behave) as broker, connected(broker.address, default_api_timeout_ms=700) as network:
                with pytest.raises(BrokerUnavailable, match="COORDINATOR_NOT_AVAILABLE"):
                    await network.coordinator(GROUP, "g")

        asyncio.run(work())

    def test_old_brokers_are_asked_for_one_at_a_time(self) -> None:
        async def behave(asked: Asked) -> None:
            assert isinstance(asked.request, FindCoordinatorRequest)
            asked.answer(FindCoordinatorResponse(node_id=NODE_ID, host="h", port=1))

        async def work() -> None:
            async with rogue(behave) as broker:
                broker.api_versions = lambda asked: asked.answer(unsupported_versions((3, 0, 13), (10, 0, 3)))
                async with connected(broker.address) as network:
                    links = await asyncio.gather(*(network.coordinator(GROUP, key) for key in "ab"))
                    assert [broker_of(link) for link in links] == [NODE_ID] * 2
                    keys = [
                        asked.request.key for asked in broker.asked if isinstance(asked.request, FindCoordinatorRequest)
                    ]
                    assert keys == ["a", "b"]

        asyncio.run(work())

    def test_an_error_that_no_code_is_known_for_is_final(self) -> None:
        async def behave(asked: Asked) -> None:
            asked.answer(found("g", code=ErrorCode.INVALID_GROUP_ID))

        async def work() -> None:
            async with rogue(behave) as broker, connected(broker.address) as network:
                with pytest.raises(BrokerError) as caught:
                    await network.coordinator(GROUP, "g")
                assert caught.value.code is ErrorCode.INVALID_GROUP_ID

        asyncio.run(work())


def found(*keys: str, code: ErrorCode = ErrorCode.NONE) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        coordinators=[Coordinator(key=key, node_id=NODE_ID, host="h", port=1, error_code=int(code)) for key in keys]
    )
