"""Brokers that join, die, return and leave: clusters of several brokers on one real store."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.cluster.harness import RunningBroker, RunningCluster, SeededIds, check_partitions, running_cluster

from ottla.cluster import paths, registry
from ottla.cluster.broker_lifecycle import BrokerIdInUse, BrokerLifecycle
from ottla.cluster.controller import Controller
from ottla.cluster.image import NO_LEADER, Endpoint, PartitionImage
from ottla.cluster.metadata import MetadataCache
from ottla.cluster.requests import (
    AlterConfigsRequest,
    AlterConfigsResult,
    ConfigChange,
    CreatePartitionsResult,
    CreateTopicResult,
    DeleteTopicResult,
    NewPartitions,
    NewTopic,
)
from ottla.coordination.store import Delete
from ottla.protocol.errors import ErrorCode

OK = ErrorCode.NONE
Result = CreateTopicResult | DeleteTopicResult | CreatePartitionsResult | AlterConfigsResult


def with_cluster(
    directory: Path, node_ids: list[int], scenario: Callable[[RunningCluster, list[RunningBroker]], Awaitable[None]]
) -> None:
    async def run() -> None:
        async with asyncio.timeout(30), running_cluster(directory) as cluster:
            brokers = [await cluster.start(node_id) for node_id in node_ids]
            for broker in brokers:
                await broker.metadata.wait_for(lambda image: len(image.active_brokers()) == len(node_ids))
            await scenario(cluster, brokers)
            for broker in brokers:
                check_partitions(broker.image)

    asyncio.run(run())


async def create(broker: RunningBroker, *requests: NewTopic) -> None:
    results = await broker.controller.create_topics(requests)
    assert [result.error for result in results] == [OK] * len(requests)


def test_the_first_broker_is_the_controller_and_the_others_refuse(tmp_path: Path) -> None:
    async def scenario(cluster: RunningCluster, brokers: list[RunningBroker]) -> None:
        assert [broker.controller.is_active for broker in brokers] == [True, False, False]
        assert {broker.image.controller_id for broker in brokers} == {0}
        assert {broker.image.cluster_id for broker in brokers} == {brokers[0].image.cluster_id}
        other = brokers[1].controller
        change = AlterConfigsRequest("t", (ConfigChange("flush.ms", "1"),))
        refused: list[Result] = [
            *await other.create_topics([NewTopic("a"), NewTopic("b")]),
            *await other.delete_topics(["a", b"\x01" * 16]),
            *await other.create_partitions([NewPartitions("a", 2)]),
            *await other.alter_topic_configs([change]),
            *await other.alter_broker_configs([change]),
        ]
        assert [result.error for result in refused] == [ErrorCode.NOT_CONTROLLER] * 7

    with_cluster(tmp_path, [0, 1, 2], scenario)


def test_a_restart_keeps_topics_and_starts_new_leader_epochs(tmp_path: Path) -> None:
    async def scenario(is_killed: bool) -> None:
        async with running_cluster(tmp_path) as cluster:
            broker = await cluster.start(0)
            if not broker.image.topics:
                await create(broker, NewTopic("t", 120, 1, configs={"retention.ms": "1"}))
            seen.append(broker)
            if is_killed:
                await broker.kill()

    seen: list[RunningBroker] = []
    for is_killed in (False, True, False):
        asyncio.run(scenario(is_killed))
    images = [broker.image for broker in seen]
    for restarts, image in enumerate(images):
        assert {(found.leader, found.leader_epoch) for found in image.topics["t"].partitions} == {(0, restarts)}
        assert image.topics["t"].configs == {"retention.ms": "1"}
        assert image.controller_epoch == restarts + 1
    assert len({image.cluster_id for image in images}) == 1
    assert len({image.topics["t"].topic_id for image in images}) == 1
    epochs = [broker.lifecycle.registration.epoch for broker in seen]
    assert epochs == sorted(set(epochs))
    assert len({broker.lifecycle.registration.incarnation_id for broker in seen}) <= len(seen)


def test_when_a_broker_dies_those_in_sync_lead_what_it_led(tmp_path: Path) -> None:
    async def scenario(cluster: RunningCluster, brokers: list[RunningBroker]) -> None:
        controller, survivor, victim = brokers
        await create(controller, NewTopic("t", 30, 2), NewTopic("lonely", assignments=((0, (2,)),)))
        before = controller.image.topics["t"].partitions
        assert any(partition.leader == 2 for partition in before)
        await victim.kill()
        for broker in (controller, survivor):
            image = await broker.metadata.wait_for(lambda image: 2 not in image.admitted)
            for old, new in zip(before, image.topics["t"].partitions, strict=True):
                assert new.leader not in (2, NO_LEADER)
                assert new.leader_epoch == old.leader_epoch + (old.leader == 2)
                assert new.isr == tuple(replica for replica in old.isr if replica != 2)
                assert new.offline_replicas == tuple(replica for replica in old.replicas if replica == 2)
            lonely = image.topics["lonely"].partitions[0]
            assert (lonely.leader, lonely.isr, lonely.leader_epoch) == (NO_LEADER, (2,), 1)
        returned = await cluster.start(2)
        lonely = returned.image.topics["lonely"].partitions[0]
        assert (lonely.leader, lonely.isr, lonely.leader_epoch) == (2, (2,), 2)
        assert all(2 not in found.isr for found in returned.image.topics["t"].partitions), "it must catch up first"

    with_cluster(tmp_path, [0, 1, 2], scenario)


def test_when_the_controller_dies_another_takes_over_its_duties(tmp_path: Path) -> None:
    async def scenario(cluster: RunningCluster, brokers: list[RunningBroker]) -> None:
        first, *others = brokers
        await create(first, NewTopic("t", 9, 3))
        await first.kill()
        for broker in others:
            await broker.metadata.wait_for(lambda image: 0 not in image.admitted and image.controller_id in (1, 2))
            assert all(found.leader in (1, 2) for found in broker.image.topics["t"].partitions)
        [active] = [broker for broker in others if broker.controller.is_active]
        assert active.controller.epoch == active.image.controller_epoch == 2
        await create(active, NewTopic("after", 2, 2))
        [refused] = await first.controller.create_topics([NewTopic("late")])
        assert refused.error == ErrorCode.NOT_CONTROLLER

    with_cluster(tmp_path, [0, 1, 2], scenario)


def test_a_broker_that_died_and_returned_unseen_is_not_taken_for_one_that_stayed(tmp_path: Path) -> None:
    """All brokers are gone for a while, the controller too: nobody saw the session of broker 1 end."""

    async def first_life() -> None:
        async with running_cluster(tmp_path) as cluster:
            brokers = [await cluster.start(node_id) for node_id in (0, 1)]
            await brokers[0].metadata.wait_for(lambda image: len(image.active_brokers()) == 2)
            await create(brokers[0], NewTopic("t", assignments=((0, (1, 0)), (1, (1,)))[:1]))
            for broker in brokers:
                await broker.kill()

    async def second_life() -> None:
        async with running_cluster(tmp_path) as cluster:
            broker = await cluster.start(1)
            partition = broker.image.topics["t"].partitions[0]
            assert (partition.leader, partition.leader_epoch, partition.isr) == (1, 1, (1,))

    asyncio.run(first_life())
    asyncio.run(second_life())


def test_a_controller_of_the_past_can_write_nothing(tmp_path: Path) -> None:
    """It still believes to be in office while another has been elected."""

    async def scenario(cluster: RunningCluster, brokers: list[RunningBroker]) -> None:
        old, new = brokers
        unsubscribe = old.controller._unsubscribe
        assert unsubscribe is not None
        unsubscribe()
        await cluster.store.transact([Delete(paths.CONTROLLER)])
        await new.metadata.wait_for(lambda image: image.controller_id == 1)
        assert old.controller.epoch == 1, "it has not heard of it"
        [refused] = await old.controller.create_topics([NewTopic("t", 1, 1)])
        assert refused.error == ErrorCode.NOT_CONTROLLER
        assert not old.controller.is_active
        assert await cluster.store.children("/topics") == []
        await create(new, NewTopic("t", 1, 1))

    with_cluster(tmp_path, [0, 1], scenario)


def test_a_decision_on_an_old_image_is_made_again(tmp_path: Path) -> None:
    """A leader changed its ISR in the store, and the controller has not seen it when it decides."""

    async def scenario(cluster: RunningCluster, brokers: list[RunningBroker]) -> None:
        [controller, _] = brokers
        await create(controller, NewTopic("t", assignments=((0, (1, 0)), (1, (0, 1)))))
        topic = controller.image.topics["t"]
        shrunk = [replace(topic.partitions[0], isr=(1,), partition_epoch=1), topic.partitions[1]]
        data = registry.encode_state(topic.topic_id, 1, shrunk)
        # Both set out from the same state of the store; the leader's write comes first.
        _, [grown] = await asyncio.gather(
            cluster.store.set(paths.topic_state("t", 0), data, topic.state_versions[0]),
            controller.controller.create_partitions([NewPartitions("t", 3)]),
        )
        assert grown.error == OK
        after = controller.image.topics["t"].partitions
        assert len(after) == 3
        assert (after[0].isr, after[0].partition_epoch) == ((1,), 1), "what the leader wrote is kept"

    with_cluster(tmp_path, [0, 1], scenario)


def test_a_broker_that_shuts_down_hands_over_first(tmp_path: Path) -> None:
    async def scenario(cluster: RunningCluster, brokers: list[RunningBroker]) -> None:
        controller, leaving = brokers
        await create(controller, NewTopic("t", 6, 2), NewTopic("lonely", assignments=((0, (1,)),)))
        await leaving.metadata.wait_for(lambda image: len(image.topics) == 2)
        led_without_being_registered: list[PartitionImage] = []
        controller.metadata.subscribe(
            lambda old, new: led_without_being_registered.extend(
                found for found in new.topics["t"].partitions if found.leader not in new.brokers
            )
        )
        await leaving.shutdown()
        image = await controller.metadata.wait_for(lambda image: 1 not in image.admitted)
        assert [(found.leader, found.isr) for found in image.topics["t"].partitions] == [(0, (0,))] * 6
        assert led_without_being_registered == []
        assert image.topics["lonely"].partitions[0].leader == NO_LEADER

    with_cluster(tmp_path, [0, 1], scenario)


def test_a_controller_that_shuts_down_hands_over_office_and_leaderships(tmp_path: Path) -> None:
    async def scenario(cluster: RunningCluster, brokers: list[RunningBroker]) -> None:
        controller, other = brokers
        await create(controller, NewTopic("t", 6, 2))
        await controller.shutdown()
        image = await other.metadata.wait_for(lambda image: image.controller_id == 1 and 0 not in image.admitted)
        assert {found.leader for found in image.topics["t"].partitions} == {1}
        await create(other, NewTopic("after", 1, 1))

    with_cluster(tmp_path, [0, 1], scenario)


def test_a_broker_whose_session_expires_joins_again_under_a_new_epoch(tmp_path: Path) -> None:
    async def scenario(cluster: RunningCluster, brokers: list[RunningBroker]) -> None:
        controller, other = brokers
        await create(controller, NewTopic("t", 4, 2))
        first_epoch = other.lifecycle.registration.epoch
        await other.session.expire()
        image = await controller.metadata.wait_for(
            lambda image: 1 in image.brokers and not image.brokers[1].is_fenced and image.brokers[1].epoch > first_epoch
        )
        assert {found.leader for found in image.topics["t"].partitions} == {0}
        assert {found.isr for found in image.topics["t"].partitions} == {(0,)}
        rejoining = other.lifecycle._rejoining
        assert rejoining is not None
        await rejoining
        assert other.lifecycle.registration.epoch == image.brokers[1].epoch

    with_cluster(tmp_path, [0, 1], scenario)


def test_a_controller_whose_session_expires_loses_office(tmp_path: Path) -> None:
    async def scenario(cluster: RunningCluster, brokers: list[RunningBroker]) -> None:
        controller, other = brokers
        await controller.session.expire()
        await other.metadata.wait_for(lambda image: image.controller_id == 1 and len(image.active_brokers()) == 2)
        assert not controller.controller.is_active
        await create(other, NewTopic("t", 2, 2))

    with_cluster(tmp_path, [0, 1], scenario)


def test_the_only_broker_survives_the_end_of_its_session(tmp_path: Path) -> None:
    async def scenario(cluster: RunningCluster, brokers: list[RunningBroker]) -> None:
        [broker] = brokers
        await create(broker, NewTopic("t", 2, 1))
        await broker.session.expire()
        image = await broker.metadata.wait_for(lambda image: image.controller_epoch == 2 and image.admitted != {})
        image = await broker.metadata.wait_for(
            lambda image: {found.leader_epoch for found in image.topics["t"].partitions} == {1}
        )
        assert {found.leader for found in image.topics["t"].partitions} == {0}
        await create(broker, NewTopic("after", 1, 1))

    with_cluster(tmp_path, [0], scenario)


def test_an_id_that_is_in_use_is_refused(tmp_path: Path) -> None:
    async def scenario(cluster: RunningCluster, brokers: list[RunningBroker]) -> None:
        session = await cluster.store.new_session()
        metadata = MetadataCache(session)
        lifecycle = BrokerLifecycle(
            session,
            metadata,
            Controller(session, metadata, node_id=0, ids=SeededIds(5)),
            node_id=0,
            endpoints=(Endpoint("PLAINTEXT", "elsewhere", 9092),),
            ids=SeededIds(5),
            registration_timeout_seconds=0.05,
        )
        with pytest.raises(BrokerIdInUse, match=r"node\.id"):
            await lifecycle.start()
        await session.close()
        assert brokers[0].image.brokers[0].endpoints[0].host == "localhost"

    with_cluster(tmp_path, [0], scenario)


def test_unclean_election_happens_once_it_is_allowed(tmp_path: Path) -> None:
    async def scenario(cluster: RunningCluster, brokers: list[RunningBroker]) -> None:
        controller, victim = brokers
        await create(controller, NewTopic("t", assignments=((0, (1, 0)),)))
        topic = controller.image.topics["t"]
        shrunk = [replace(topic.partitions[0], isr=(1,), partition_epoch=1)]
        await cluster.store.set(paths.topic_state("t", 0), registry.encode_state(topic.topic_id, 1, shrunk))
        await controller.metadata.wait_for(lambda image: image.topics["t"].partitions[0].isr == (1,))
        await victim.kill()
        image = await controller.metadata.wait_for(lambda image: 1 not in image.admitted)
        assert image.topics["t"].partitions[0].leader == NO_LEADER
        change = ConfigChange("unclean.leader.election.enable", "true")
        await controller.controller.alter_topic_configs([AlterConfigsRequest("t", (change,))])
        image = await controller.metadata.wait_for(lambda image: image.topics["t"].partitions[0].leader == 0)
        assert image.topics["t"].partitions[0].isr == (0,)
        assert image.topics["t"].partitions[0].leader_epoch == 2

    with_cluster(tmp_path, [0, 1], scenario)
