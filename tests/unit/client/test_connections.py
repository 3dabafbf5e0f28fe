"""Connections to brokers that behave: versions, order, size, idleness, quotas, moving brokers."""

import asyncio
from typing import Any

import pytest
from tests.unit.client.rogue import (
    LOOPBACK,
    NODE_ID,
    Asked,
    all_versions,
    connected,
    connections,
    rogue,
    unsupported_versions,
)

from ottla.client.cluster import Cluster
from ottla.client.errors import BrokerUnavailable, ClientClosed, ConfigError, InvalidRequest, UnsupportedByBroker
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.api_versions import ApiVersionsResponse, FinalizedFeatureKey
from ottla.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from ottla.runtime.awaiting import kept
from ottla.runtime.promise import Promise


async def answers(asked: Asked) -> None:
    asked.answer(asked.kind.RESPONSE())


class TestVersions:
    def test_a_broker_that_is_older_is_asked_for_its_versions_in_its_own(self) -> None:
        def old(asked: Asked) -> None:
            if asked.header.api_version > 2:
                answer = unsupported_versions((18, 0, 2), code=ErrorCode.UNSUPPORTED_VERSION)
                asked.writer.write(asked.bytes_of(answer, version=0))
            else:
                asked.answer(ApiVersionsResponse(api_keys=all_versions()))

        async def work() -> None:
            async with rogue(answers) as broker:
                broker.api_versions = old
                async with connected(broker.address) as network:
                    await network.ask(NODE_ID, ListGroupsRequest(), ListGroupsResponse)
                assert [asked.header.api_version for asked in broker.asked[:2]] == [4, 2]

        asyncio.run(work())

    def test_the_newest_version_that_both_have_and_that_can_carry_the_request_is_used(self) -> None:
        async def work() -> None:
            async with rogue(answers) as broker, connected(broker.address) as network:
                await network.ask(NODE_ID, FindCoordinatorRequest(coordinator_keys=["g"]), FindCoordinatorResponse)
                await network.ask(NODE_ID, FindCoordinatorRequest(key="g"), FindCoordinatorResponse)
                await network.ask(NODE_ID, ListGroupsRequest(), ListGroupsResponse, max_version=2)
                assert [asked.header.api_version for asked in broker.asked[-3:]] == [6, 3, 2]
                assert network.version_of(NODE_ID, ListGroupsRequest) == ListGroupsRequest.MAX_VERSION
                assert network.version_of(99, ListGroupsRequest) is None

        asyncio.run(work())

    def test_what_the_broker_does_not_have_is_told(self) -> None:
        async def work() -> None:
            async with rogue(answers) as broker:
                few = unsupported_versions((int(ApiKey.METADATA), 0, 13), (10, 4, 5), (16, 90, 99))
                broker.api_versions = lambda asked: asked.answer(few)
                async with connected(broker.address) as network:
                    with pytest.raises(UnsupportedByBroker, match=r"Produce is spoken here.*does not have it"):
                        await network.ask(NODE_ID, ProduceRequest(), ProduceResponse)
                    with pytest.raises(UnsupportedByBroker, match=r"ListGroups.*90 to 99"):
                        await network.ask(NODE_ID, ListGroupsRequest(), ListGroupsResponse)
                    with pytest.raises(UnsupportedByBroker, match="no version of FindCoordinator"):
                        await network.ask(NODE_ID, FindCoordinatorRequest(key="g"), FindCoordinatorResponse)
                    await network.ask(NODE_ID, FindCoordinatorRequest(coordinator_keys=["g"]), FindCoordinatorResponse)

        asyncio.run(work())

    def test_what_the_protocol_cannot_carry_is_an_error_of_the_caller(self) -> None:
        async def work() -> None:
            async with rogue(answers) as broker, connected(broker.address) as network:
                with pytest.raises(InvalidRequest, match="32767"):
                    await network.ask(
                        NODE_ID, FindCoordinatorRequest(coordinator_keys=["g" * 40_000]), FindCoordinatorResponse
                    )
                await network.ask(NODE_ID, ListGroupsRequest(), ListGroupsResponse)

        asyncio.run(work())

    def test_features_are_those_of_the_newest_epoch(self) -> None:
        async def work() -> None:
            async with rogue(answers) as broker:
                level = FinalizedFeatureKey(name="transaction.version", max_version_level=2)
                told = ApiVersionsResponse(
                    api_keys=all_versions(), finalized_features=[level], finalized_features_epoch=5
                )
                broker.api_versions = lambda asked: asked.answer(told)
                async with connected(broker.address) as network:
                    assert network.feature_level("transaction.version") == 2
                    assert network.feature_level("group.version") == 0

        asyncio.run(work())


class TestBytes:
    def test_record_data_of_any_size_arrive_whole_at_either_side(self) -> None:
        sizes = (0, 5, 4095, 4096, 70_000, 3_000_000, 20_000_000)
        data = [memoryview(bytes([number + 1]) * size) for number, size in enumerate(sizes)]
        stored: list[memoryview] = []

        async def behave(asked: Asked) -> None:
            if isinstance(asked.request, ProduceRequest):
                partitions = asked.request.topic_data[0].partition_data
                stored.extend(memoryview(bytes(partition.records or b"")) for partition in partitions)
                asked.answer(ProduceResponse())
            else:
                fetched = [PartitionData(partition_index=index, records=one) for index, one in enumerate(stored)]
                asked.answer(FetchResponse(responses=[FetchableTopicResponse(partitions=fetched)]))
                await asked.writer.drain()

        async def work() -> None:
            produced = [PartitionProduceData(index=number, records=records) for number, records in enumerate(data)]
            request = ProduceRequest(
                acks=-1, topic_data=[TopicProduceData(topic_id=b"t" * 16, partition_data=produced)]
            )
            async with rogue(behave) as broker, connected(broker.address) as network:
                _, fetched = await asyncio.gather(
                    network.ask(NODE_ID, request, ProduceResponse), network.ask(NODE_ID, FetchRequest(), FetchResponse)
                )
            assert stored == data
            assert [one.records for one in fetched.responses[0].partitions] == data

        asyncio.run(work())

    def test_a_request_without_an_answer_does_not_disturb_the_order(self) -> None:
        async def behave(asked: Asked) -> None:
            if asked.kind is not ProduceRequest:
                asked.answer(asked.kind.RESPONSE())

        async def work() -> None:
            async with rogue(behave) as broker, connected(broker.address) as network:
                for _ in range(3):
                    told = network.tell(NODE_ID, ProduceRequest(acks=0))
                    assert told is not None
                    await told
                    await network.ask(NODE_ID, ListGroupsRequest(), ListGroupsResponse)
                kinds = [asked.kind for asked in broker.asked[-6:]]
                assert kinds == [ProduceRequest, ListGroupsRequest] * 3

        asyncio.run(work())


class TestOrder:
    @pytest.mark.parametrize("how", ["broken", "throttled"])
    def test_requests_leave_in_the_order_in_which_they_were_asked(self, how: str) -> None:
        order: list[int] = []

        async def behave(asked: Asked) -> None:
            assert isinstance(asked.request, ListGroupsRequest)
            order.append(int(asked.request.states_filter[0]))
            asked.answer(ListGroupsResponse(throttle_time_ms=5 if how == "throttled" and order[-1] % 7 == 0 else 0))

        async def work() -> None:
            async with rogue(behave) as broker, connected(broker.address) as network:
                for turn in range(10):
                    order.clear()
                    if how == "broken":
                        broker.hang_up()
                    tasks = []
                    for number in range(60):
                        request = ListGroupsRequest(states_filter=[str(number)])
                        promise = network.ask_now(NODE_ID, request)
                        asking = network.ask(NODE_ID, request, ListGroupsResponse) if promise is None else kept(promise)
                        tasks.append(asyncio.ensure_future(asking))
                        # Some of them come just when the connection gets ready.
                        await asyncio.sleep(0 if turn % 2 else 0.0005)
                    await asyncio.gather(*tasks, return_exceptions=True)
                    assert len(order) > 30
                    assert order == sorted(order)

        asyncio.run(work())


class TestPatience:
    def test_a_broker_that_asks_for_patience_gets_it(self) -> None:
        times: list[float] = []

        async def behave(asked: Asked) -> None:
            times.append(asyncio.get_running_loop().time())
            asked.answer(ListGroupsResponse(throttle_time_ms=60 if len(times) == 1 else 0))

        async def work() -> None:
            async with rogue(behave) as broker, connected(broker.address) as network:
                await network.ask(NODE_ID, ListGroupsRequest(), ListGroupsResponse)
                assert network.is_throttled(NODE_ID)
                await network.ask(NODE_ID, ListGroupsRequest(), ListGroupsResponse)
                assert not network.is_throttled(NODE_ID)
                assert times[1] - times[0] >= 0.05

        asyncio.run(work())

    def test_more_patience_than_there_is_time_is_an_error(self) -> None:
        async def behave(asked: Asked) -> None:
            asked.answer(ListGroupsResponse(throttle_time_ms=60_000))

        async def work() -> None:
            async with rogue(behave) as broker, connected(broker.address) as network:
                await network.ask(NODE_ID, ListGroupsRequest(), ListGroupsResponse)
                with pytest.raises(BrokerUnavailable, match="a quota is used up"):
                    await network.ask(NODE_ID, ListGroupsRequest(), ListGroupsResponse, timeout_seconds=0.05)

        asyncio.run(work())

    def test_an_idle_connection_is_closed_and_made_again_when_it_is_needed(self) -> None:
        async def work() -> None:
            async with rogue(answers) as broker, connected(broker.address, connections_max_idle_ms=40) as network:
                async with asyncio.timeout(60.0):
                    await broker.was_left.wait()
                await network.ask(NODE_ID, ListGroupsRequest(), ListGroupsResponse)
                assert broker.connections == 2

        asyncio.run(work())


class TestBrokersThatMove:
    def test_a_name_with_several_addresses_is_tried_at_each(self) -> None:
        async def work() -> None:
            async with rogue(answers) as broker, connected(f"localhost:{broker.port}") as network:
                await network.ask(NODE_ID, ListGroupsRequest(), ListGroupsResponse)

        asyncio.run(work())

    def test_the_connection_of_a_bootstrap_server_is_that_of_its_broker(self) -> None:
        async def work() -> None:
            async with rogue(answers) as broker, connected(broker.address) as network:
                await network.ask(NODE_ID, ListGroupsRequest(), ListGroupsResponse)
                assert broker.connections == 1

        asyncio.run(work())

    def test_a_broker_with_a_new_address_is_asked_there(self) -> None:
        async def work() -> None:
            async with rogue(answers) as old, rogue(answers) as new, connected(old.address) as network:
                old.metadata = lambda asked: new.alone()
                known = network.cluster
                network.request_update()
                await network.updated(known, 10.0)
                await network.ask(NODE_ID, ListGroupsRequest(), ListGroupsResponse)
                assert new.asked[-1].kind is ListGroupsRequest

        asyncio.run(work())

    def test_a_broker_that_is_not_in_the_cluster_cannot_be_asked(self) -> None:
        async def work() -> None:
            async with rogue(answers) as broker, connected(broker.address) as network:
                with pytest.raises(BrokerUnavailable, match="no broker 99"):
                    await network.ask(99, ListGroupsRequest(), ListGroupsResponse)

        asyncio.run(work())

    @pytest.mark.parametrize("how", ["gone", "told"])
    def test_when_no_known_broker_is_left_it_begins_again_with_the_bootstrap_servers(self, how: str) -> None:
        async def work() -> None:
            async with rogue(answers) as first, rogue(answers) as second:
                lone = MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host=LOOPBACK, port=second.port)])
                first.metadata = lambda asked: lone
                second.metadata = lambda asked: lone
                async with connected(first.address) as network:
                    await network.ask(1, ListGroupsRequest(), ListGroupsResponse)
                    first.metadata = lambda asked: first.alone()
                    if how == "gone":
                        await second.stop()
                        await second.start()
                        second.api_versions = lambda asked: asked.writer.transport.abort()
                    else:
                        refusal = MetadataResponse(error_code=int(ErrorCode.REBOOTSTRAP_REQUIRED))
                        second.metadata = lambda asked: refusal
                    known = network.cluster
                    network.request_update()
                    assert list((await network.updated(known, 10.0)).nodes) == [NODE_ID]

        asyncio.run(work())

    def test_it_does_not_where_that_is_not_wanted(self) -> None:
        async def work() -> None:
            async with rogue(answers) as first, rogue(answers) as second:
                lone = MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host=LOOPBACK, port=second.port)])
                first.metadata = second.metadata = lambda asked: lone
                async with connected(first.address, metadata_recovery_strategy="none") as network:
                    await network.ask(1, ListGroupsRequest(), ListGroupsResponse)
                    asked_before = sum(asked.kind is MetadataRequest for asked in first.asked)
                    second.api_versions = lambda asked: asked.writer.transport.abort()
                    second.hang_up()
                    known = network.cluster
                    network.request_update()
                    with pytest.raises(BrokerUnavailable):
                        await network.updated(known, 0.2)
                    assert sum(asked.kind is MetadataRequest for asked in first.asked) == asked_before

        asyncio.run(work())


def test_a_client_that_is_closed_before_it_connected_leaves_nothing_behind() -> None:
    async def work() -> None:
        async with rogue() as broker:
            broker.api_versions = lambda asked: None
            async with connections(broker.address) as network:
                waiting = asyncio.create_task(network.updated(Cluster(), 10.0))
                async with asyncio.timeout(60.0):
                    await broker.was_asked.wait()
            with pytest.raises(ClientClosed):
                await waiting
            async with asyncio.timeout(60.0):
                await broker.was_left.wait()

    asyncio.run(work())


def test_an_event_loop_that_cannot_watch_sockets_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise NotImplementedError

    async def work() -> None:
        async with rogue(answers) as broker, connections(broker.address) as network:
            monkeypatch.setattr(asyncio.get_running_loop(), "add_reader", refuse)
            with pytest.raises(ConfigError, match="SelectorEventLoop"):
                await network.updated(Cluster(), 10.0)

    asyncio.run(work())


def test_who_is_told_at_once_may_ask_on_and_may_fail_without_harm() -> None:
    async def work() -> None:
        async with rogue(answers) as broker, connected(broker.address) as network:
            done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            answered = 0

            def ask_on(promise: Promise[Any]) -> None:
                nonlocal answered
                answered += 1
                if answered == 50:
                    done.set_result(answered)
                elif answered < 50:
                    following = network.ask_now(NODE_ID, ListGroupsRequest())
                    assert following is not None
                    following.add_done_callback(ask_on)
                if answered % 5 == 0:
                    raise LookupError("a mistake of whoever was told")

            for _ in range(3):
                promise = network.ask_now(NODE_ID, ListGroupsRequest())
                assert promise is not None
                promise.add_done_callback(ask_on)
            assert await asyncio.wait_for(done, 60.0) == 50
            assert broker.connections == 1

    asyncio.run(work())


def test_who_is_told_at_once_that_a_connection_broke_does_not_ask_on_it() -> None:
    async def silent(asked: Asked) -> None:
        return None

    async def work() -> None:
        async with rogue(silent) as broker, connected(broker.address) as network:
            told: asyncio.Future[object] = asyncio.get_running_loop().create_future()
            promise = network.ask_now(NODE_ID, ListGroupsRequest())
            assert promise is not None
            promise.add_done_callback(lambda done: told.set_result(network.ask_now(NODE_ID, ListGroupsRequest())))
            broker.hang_up()
            assert await asyncio.wait_for(told, 60.0) is None
            with pytest.raises(BrokerUnavailable):
                promise.result()

    asyncio.run(work())
