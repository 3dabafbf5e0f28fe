"""The broker holds what the image gives it."""

import asyncio
import errno
from collections.abc import Mapping

import pytest
from tests.unit.replication.rig import NODE_ID, TOPIC_ID, Rig, appended, turns, visible

from ottla.cluster.image import BrokerConfigs, ClusterImage, PartitionImage, TopicImage
from ottla.log.config import LogConfig
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.replication.manager import ReplicaManager
from ottla.replication.waiting import FetchWait

OTHER_NODE_ID = 2
NO_CONFIGS = BrokerConfigs()


def topic(
    name: str, topic_id: bytes, leaders: tuple[int, ...] = (NODE_ID,), configs: Mapping[str, str] | None = None
) -> TopicImage:
    """A topic with one replica for each partition, on the broker that leads it."""
    partitions = tuple(
        PartitionImage(index, leader, 0, (leader,), (leader,), 0) for index, leader in enumerate(leaders)
    )
    return TopicImage(name, topic_id, partitions, configs or {})


def cluster(version: int, *topics: TopicImage, configs: BrokerConfigs = NO_CONFIGS) -> ClusterImage:
    return ClusterImage(
        configs=configs,
        topics={each.name: each for each in topics},
        topics_by_id={each.topic_id: each for each in topics},
        version=version,
    )


def manager(rig: Rig) -> ReplicaManager:
    return ReplicaManager(NODE_ID, rig.logs, rig.clock, rig.executor, LogConfig.from_properties)


def code(replicas: ReplicaManager, name: str, index: int) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        replicas.partition(name, index)
    return caught.value.code


A, B = b"a" * 16, b"b" * 16


def test_topics_come_and_go_with_the_image() -> None:
    async def scenario() -> None:
        rig = Rig()
        replicas = manager(rig)
        assert replicas.applied_version == -1
        await replicas.apply(cluster(1, topic("one", A, leaders=(NODE_ID, NODE_ID))))
        assert replicas.applied_version == 1
        assert [str(partition) for partition in replicas] == ["one-0", "one-1"]
        assert replicas.partition("one", 1).is_leader
        assert replicas.topic_name(A) == "one"
        await replicas.apply(cluster(2, topic("two", B)))
        assert [str(partition) for partition in replicas] == ["two-0"]
        assert replicas.topic_name(A) is None
        assert code(replicas, "one", 0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert rig.logs.get("one", 0) is None

    asyncio.run(scenario())


def test_partitions_of_other_brokers() -> None:
    async def scenario() -> None:
        replicas = manager(Rig())
        await replicas.apply(cluster(1, topic("one", A, leaders=(NODE_ID, OTHER_NODE_ID))))
        assert code(replicas, "one", 1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert code(replicas, "one", 2) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert code(replicas, "one", -1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    asyncio.run(scenario())


def test_a_topic_that_comes_again_is_empty() -> None:
    async def scenario() -> None:
        replicas = manager(Rig())
        await replicas.apply(cluster(1, topic("one", A)))
        old = replicas.partition("one", 0)
        appended(old, b"old")
        await replicas.apply(cluster(2, topic("one", B)))
        assert replicas.topic_name(A) is None
        assert replicas.topic_name(B) == "one"
        assert replicas.partition("one", 0).log.log_end_offset == 0
        assert not old.is_leader

    asyncio.run(scenario())


def test_topics_that_stay_the_same_keep_their_partitions() -> None:
    async def scenario() -> None:
        replicas = manager(Rig())
        kept = topic("one", A)
        await replicas.apply(cluster(1, kept))
        before = replicas.partition("one", 0)
        appended(before, b"value")
        await replicas.apply(cluster(2, kept, topic("two", B)))
        assert replicas.partition("one", 0) is before
        assert before.high_watermark == 1

    asyncio.run(scenario())


def test_partitions_are_added_and_settings_change_in_place() -> None:
    async def scenario() -> None:
        replicas = manager(Rig())
        await replicas.apply(cluster(1, topic("one", A)))
        before = replicas.partition("one", 0)
        changed = topic("one", A, leaders=(NODE_ID, NODE_ID), configs={"max.message.bytes": "777"})
        await replicas.apply(cluster(2, changed))
        assert replicas.partition("one", 0) is before
        assert before.log.config.max_message_bytes == 777
        assert replicas.partition("one", 1).log.config.max_message_bytes == 777

    asyncio.run(scenario())


def test_a_log_of_another_topic_of_that_name_is_set_aside_and_not_deleted() -> None:
    """A changed byte in its topic id must not cost its records."""

    async def scenario() -> None:
        rig = Rig()
        log = await rig.logs.create_log("one", 0, A, LogConfig())
        replicas = manager(rig)
        await replicas.apply(cluster(1, topic("one", B)))
        assert replicas.partition("one", 0).log is not log
        assert replicas.partition("one", 0).log.topic_id == B
        (aside,) = (name for name in rig.disk.list_directory("/data") if name.endswith("-stray"))
        assert aside.startswith("one-0.")
        assert f"{0:020d}.log" in rig.disk.list_directory(f"/data/{aside}")

    asyncio.run(scenario())


def test_a_log_that_is_there_is_used() -> None:
    async def scenario() -> None:
        rig = Rig()
        log = await rig.logs.create_log("one", 0, A, LogConfig())
        replicas = manager(rig)
        await replicas.apply(cluster(1, topic("one", A, configs={"max.message.bytes": "777"})))
        assert replicas.partition("one", 0).log is log
        assert log.config.max_message_bytes == 777

    asyncio.run(scenario())


@pytest.mark.parametrize("configs", [{}, {"flush.messages": "1"}, {"ottla.flush.before.ack": "true"}])
def test_what_a_killed_broker_left_behind_is_visible_at_once(configs: dict[str, str]) -> None:
    async def scenario() -> None:
        rig = Rig()
        appended(await rig.partition(), b"acknowledged")
        assert rig.logs.all_logs()[0].flushed_offset == 0
        replicas = manager(rig)
        await replicas.apply(cluster(1, topic("topic", TOPIC_ID, configs=configs)))
        assert visible(replicas.partition("topic", 0)) == [b"acknowledged"]

    asyncio.run(scenario())


def test_a_partition_that_cannot_be_opened_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        rig = Rig()
        replicas = manager(rig)
        await replicas.apply(cluster(1, topic("one", A)))
        rig.directory.fail(OSError("the device does not answer"))
        await replicas.apply(cluster(2, topic("one", A), topic("two", B)))
        assert replicas.applied_version == 2
        assert code(replicas, "two", 0) == ErrorCode.KAFKA_STORAGE_ERROR
        assert replicas.partition("one", 0).is_leader

    asyncio.run(scenario())
    assert "two-0 cannot be opened" in caplog.text


def test_replicas_in_a_failed_directory_are_offline() -> None:
    async def scenario() -> None:
        rig = Rig()
        replicas = manager(rig)
        image = cluster(1, topic("one", A, leaders=(NODE_ID, NODE_ID)), topic("two", B))
        await replicas.apply(image)
        assert replicas.offline_partitions() == {}
        wait = FetchWait([replicas.partition("one", 1)], 1, 1000.0)
        replicas.partition("one", 1).traffic.messages_in = 3
        replicas.partition("two", 0).traffic.messages_in = 4
        rig.directory.fail(OSError("the device does not answer"))
        replicas.take_offline(rig.directory)
        assert wait.over.done()
        assert replicas.offline_partitions() == {A: (0, 1), B: (0,)}
        assert code(replicas, "one", 1) == ErrorCode.KAFKA_STORAGE_ERROR
        assert list(replicas) == []
        assert replicas.departed.messages_in == 7, "the sums of the broker do not fall"
        # Another image brings nothing back; a deletion takes away what is left.
        await replicas.apply(cluster(2, topic("one", A, leaders=(NODE_ID, NODE_ID, NODE_ID))))
        assert replicas.offline_partitions() == {A: (0, 1, 2)}
        assert code(replicas, "two", 0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert replicas.departed.messages_in == 7, "and count nothing twice"
        assert not replicas.has_missing

    asyncio.run(scenario())


def test_what_a_full_disk_refused_is_opened_later() -> None:
    async def scenario() -> None:
        rig = Rig()
        replicas = manager(rig)
        await replicas.apply(cluster(1))
        rig.disk.fail("make_directory", errno.ENOSPC, times=2)
        await replicas.apply(cluster(2, topic("one", A)))
        assert replicas.has_missing
        assert replicas.offline_partitions() == {}, "the cluster need not know"
        assert code(replicas, "one", 0) == ErrorCode.KAFKA_STORAGE_ERROR
        missing = []
        for _ in range(2):
            await replicas.open_missing()
            missing.append(replicas.has_missing)
        assert missing == [True, False]
        assert replicas.offline_partitions() == {}
        assert replicas.partition("one", 0).is_leader

    asyncio.run(scenario())


def test_stopping_stops_all() -> None:
    async def scenario() -> None:
        replicas = manager(Rig())
        await replicas.apply(cluster(1, topic("one", A), topic("two", B)))
        await replicas.stop()
        assert not any(partition.is_leader for partition in replicas)

    asyncio.run(scenario())


def test_new_defaults_reach_topics_that_did_not_change() -> None:
    async def scenario() -> None:
        rig = Rig()
        defaults: dict[str, str] = {}
        replicas = ReplicaManager(
            NODE_ID,
            rig.logs,
            rig.clock,
            rig.executor,
            lambda overrides: LogConfig.from_properties(overrides, defaults),
        )
        one, two = topic("one", A), topic("two", B, configs={"retention.ms": "7"})
        await replicas.apply(cluster(1, one, two))
        defaults["log.retention.ms"] = "5"
        await replicas.apply(cluster(2, one, two))
        assert replicas.partition("one", 0).log.config.retention_ms == 604_800_000
        await replicas.apply(cluster(3, one, two, configs=BrokerConfigs({None: defaults}, {None: 0})))
        assert replicas.partition("one", 0).log.config.retention_ms == 5
        assert replicas.partition("two", 0).log.config.retention_ms == 7

    asyncio.run(scenario())


def test_a_directory_may_fail_while_new_defaults_are_applied() -> None:
    """Its partitions leave the table while the loop over them waits for a flush."""

    async def scenario() -> None:
        rig = Rig()
        defaults: dict[str, str] = {}
        replicas = ReplicaManager(
            NODE_ID,
            rig.logs,
            rig.clock,
            rig.executor,
            lambda overrides: LogConfig.from_properties(overrides, defaults),
        )
        one = topic("one", A, leaders=(NODE_ID, NODE_ID, NODE_ID))
        await replicas.apply(cluster(1, one))
        for index in range(3):
            appended(replicas.partition("one", index), b"value")
        defaults["log.flush.interval.messages"] = "1"
        rig.executor.holds = True
        applying = asyncio.ensure_future(
            replicas.apply(cluster(2, one, configs=BrokerConfigs({None: defaults}, {None: 0})))
        )
        await turns()
        assert rig.executor.holding
        rig.disk.fail("sync", errno.EIO)
        rig.directory.fail(OSError(errno.EIO, "the device does not answer"))
        replicas.take_offline(rig.directory)
        rig.executor.release()
        await applying
        assert replicas.applied_version == 2
        assert [code(replicas, "one", index) for index in range(3)] == [ErrorCode.KAFKA_STORAGE_ERROR] * 3
        assert replicas.offline_count == 3

    asyncio.run(scenario())
