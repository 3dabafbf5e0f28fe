"""What clients are told when they create, delete and grow topics: a controller on a real store."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.unit.cluster.harness import RunningBroker, SeededIds, Tree, check_partitions, running_cluster

from ottla.cluster.requests import (
    ControllerSettings,
    CreatePartitionsResult,
    CreateTopicResult,
    DeleteTopicResult,
    NewPartitions,
    NewTopic,
)
from ottla.cluster.topics import TopicDecisions
from ottla.protocol.errors import ErrorCode
from ottla.protocol.uuids import ZERO_UUID

OK = ErrorCode.NONE


def with_brokers(
    directory: Path,
    scenario: Callable[[RunningBroker], Awaitable[None]],
    count: int = 3,
    settings: ControllerSettings | None = None,
) -> None:
    async def run() -> None:
        async with running_cluster(directory, settings) as cluster:
            first = await cluster.start(0)
            for node_id in range(1, count):
                await cluster.start(node_id)
            await first.metadata.wait_for(lambda image: len(image.active_brokers()) == count)
            await scenario(first)
            check_partitions(first.image)

    asyncio.run(run())


async def create(broker: RunningBroker, *requests: NewTopic, validate_only: bool = False) -> list[CreateTopicResult]:
    return await broker.controller.create_topics(requests, validate_only)


async def grow(broker: RunningBroker, *requests: NewPartitions) -> list[CreatePartitionsResult]:
    return await broker.controller.create_partitions(requests)


def codes(results: list[CreateTopicResult] | list[DeleteTopicResult] | list[CreatePartitionsResult]) -> list[ErrorCode]:
    for result in results:
        assert (result.message is None) == (result.error == OK), f"{result} must say why"
    return [result.error for result in results]


def test_a_created_topic_is_in_the_image_when_the_answer_is_there(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        [result] = await create(broker, NewTopic("orders", 6, 3, configs={"retention.ms": "1000"}))
        assert (result.error, result.num_partitions, result.replication_factor) == (OK, 6, 3)
        assert result.configs == {"retention.ms": "1000"}
        topic = broker.image.topics["orders"]
        assert topic.topic_id == result.topic_id != ZERO_UUID
        assert broker.image.topics_by_id[result.topic_id] is topic
        assert topic.configs == {"retention.ms": "1000"}
        for partition in topic.partitions:
            assert partition.leader == partition.replicas[0]
            assert (partition.leader_epoch, partition.partition_epoch, partition.isr) == (0, 0, partition.replicas)
        assert {partition.leader for partition in topic.partitions} == {0, 1, 2}

    with_brokers(tmp_path, scenario)


def test_counts_that_are_not_given_are_the_settings(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        [result] = await create(broker, NewTopic("t"))
        assert (result.error, result.num_partitions, result.replication_factor) == (OK, 4, 2)

    settings = ControllerSettings(num_partitions=4, default_replication_factor=2)
    with_brokers(tmp_path, scenario, settings=settings)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (NewTopic("there"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (NewTopic(""), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("."), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic(".."), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("a" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("a/b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("snö"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("new\n"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("a_b.c"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("__cluster_metadata"), ErrorCode.INVALID_REQUEST),
        (NewTopic("t", num_partitions=0), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("t", num_partitions=-2), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("t", replication_factor=0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", replication_factor=-2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", replication_factor=4), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", num_partitions=10_001), ErrorCode.POLICY_VIOLATION),
        (NewTopic("t", num_partitions=1, assignments=((0, (0,)),)), ErrorCode.INVALID_REQUEST),
        (NewTopic("t", replication_factor=1, assignments=((0, (0,)),)), ErrorCode.INVALID_REQUEST),
        (NewTopic("t", assignments=((0, (0, 0)),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignments=((0, (0, 9)),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignments=((0, ()),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignments=((0, (0,)), (0, (1,)))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignments=((0, (0,)), (2, (1,)))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignments=((1, (0,)), (2, (1,)))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignments=((0, (0, 1)), (1, (1,)))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", configs={"retention.ms": None}), ErrorCode.INVALID_CONFIG),
        (NewTopic("t", configs={"retention.ms": "soon"}), ErrorCode.INVALID_CONFIG),
        (NewTopic("t", configs={"no.such.setting": "1"}), ErrorCode.INVALID_CONFIG),
    ],
)
def test_topics_that_cannot_be_created(tmp_path: Path, request_: NewTopic, expected: ErrorCode) -> None:
    async def scenario(broker: RunningBroker) -> None:
        assert codes(await create(broker, NewTopic("there", 1, 1), NewTopic("a.b_c", 1, 1))) == [OK, OK]
        before = broker.image
        for validate_only in (True, False):
            [result] = await create(broker, request_, validate_only=validate_only)
            assert result.error == expected, result.message
            assert result.message
        assert broker.image is before

    with_brokers(tmp_path, scenario)


def test_good_and_bad_topics_of_one_request_are_answered_one_by_one(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        results = await create(
            broker,
            NewTopic("good", 1, 1),
            NewTopic("twice", 1, 1),
            NewTopic("bad", 0, 1),
            NewTopic("twice", 2, 1),
            NewTopic("good2", 1, 1),
        )
        assert {result.name: result.error for result in results} == {
            "good": OK,
            "twice": ErrorCode.INVALID_REQUEST,
            "bad": ErrorCode.INVALID_PARTITIONS,
            "good2": OK,
        }
        assert len(results) == 4
        assert set(broker.image.topics) == {"good", "good2"}

    with_brokers(tmp_path, scenario)


def test_validate_only_says_what_would_happen_and_does_nothing(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        [result] = await create(broker, NewTopic("t", 3, 2), validate_only=True)
        assert (result.error, result.num_partitions, result.replication_factor) == (OK, 3, 2)
        assert broker.image.topics == {}
        assert codes(await create(broker, NewTopic("t", 3, 2))) == [OK]
        [grown] = await broker.controller.create_partitions([NewPartitions("t", 5)], validate_only=True)
        assert grown.error == OK
        assert len(broker.image.topics["t"].partitions) == 3

    with_brokers(tmp_path, scenario)


def test_an_assignment_is_taken_as_it_is(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        [result] = await create(broker, NewTopic("t", assignments=((1, (2, 0)), (0, (1, 2)))))
        assert (result.error, result.num_partitions, result.replication_factor) == (OK, 2, 2)
        found = [(partition.replicas, partition.leader) for partition in broker.image.topics["t"].partitions]
        assert found == [((1, 2), 1), ((2, 0), 2)]

    with_brokers(tmp_path, scenario)


def test_topics_are_deleted_by_name_and_by_id(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        topics = [NewTopic(name, 150, 1, configs={"retention.ms": "1"}) for name in ("a", "b", "c")]
        await create(broker, *topics)
        [name_id, other_id] = [broker.image.topics[name].topic_id for name in ("a", "b")]
        results = await broker.controller.delete_topics(["a", other_id, "missing", b"\x07" * 16])
        assert codes(results) == [OK, OK, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID]
        assert [(result.name, result.topic_id) for result in results] == [
            ("a", name_id),
            ("b", other_id),
            ("missing", ZERO_UUID),
            (None, b"\x07" * 16),
        ]
        assert set(broker.image.topics) == {"c"}
        assert await broker.session.children("/topics") == ["c"]
        assert await broker.session.children("/configs/topics") == ["c"]
        assert codes(await create(broker, NewTopic("a", 1, 1))) == [OK]
        assert broker.image.topics["a"].topic_id != name_id
        assert broker.image.topics["a"].configs == {}

    with_brokers(tmp_path, scenario)


def test_deletions_that_contradict_themselves_are_refused(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await create(broker, NewTopic("a", 1, 1), NewTopic("b", 1, 1))
        topic_id = broker.image.topics["b"].topic_id
        results = await broker.controller.delete_topics(["a", "a", ZERO_UUID])
        assert codes(results) == [ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST]
        assert set(broker.image.topics) == {"a", "b"}
        (refused,) = await broker.controller.delete_topics([topic_id, "b"])
        assert (refused.error, refused.name, refused.topic_id) == (ErrorCode.INVALID_REQUEST, "b", topic_id)
        (refused,) = await broker.controller.delete_topics([topic_id, topic_id])
        assert (refused.error, refused.name, refused.topic_id) == (ErrorCode.INVALID_REQUEST, None, topic_id)
        assert set(broker.image.topics) == {"a", "b"}

    with_brokers(tmp_path, scenario, count=1)


def test_deletion_can_be_disabled(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await create(broker, NewTopic("a", 1, 1))
        assert codes(await broker.controller.delete_topics(["a"])) == [ErrorCode.TOPIC_DELETION_DISABLED]
        assert set(broker.image.topics) == {"a"}

    with_brokers(tmp_path, scenario, count=1, settings=ControllerSettings(delete_topic_enable=False))


def test_topics_grow_and_what_they_had_stays(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await create(broker, NewTopic("t", 90, 2))
        before = broker.image.topics["t"]
        assert codes(await grow(broker, NewPartitions("t", 250))) == [OK]
        after = broker.image.topics["t"]
        assert len(after.partitions) == 250
        assert after.partitions[:90] == before.partitions
        assert after.topic_id == before.topic_id
        assert all(len(partition.replicas) == 2 for partition in after.partitions)
        assert codes(await grow(broker, NewPartitions("t", 252, ((2, 0), (0, 1))))) == [OK]
        assert [partition.replicas for partition in broker.image.topics["t"].partitions[250:]] == [(2, 0), (0, 1)]

    with_brokers(tmp_path, scenario)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (NewPartitions("missing", 2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (NewPartitions("t", 3), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions("t", 2), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions("t", 0), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions("t", -1), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions("t", 20_000), ErrorCode.POLICY_VIOLATION),
        (NewPartitions("t", 5, ((0, 1),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("t", 4, ((0, 0),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("t", 4, ((0, 9),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("t", 4, ((0,),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("t", 4, ((),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("t", 4, ()), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_topics_that_cannot_grow(tmp_path: Path, request_: NewPartitions, expected: ErrorCode) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await create(broker, NewTopic("t", 3, 2))
        before = broker.image
        assert codes(await grow(broker, request_)) == [expected]
        assert broker.image is before

    with_brokers(tmp_path, scenario)


def test_a_topic_named_twice_does_not_grow(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await create(broker, NewTopic("t", 1, 1), NewTopic("u", 1, 1))
        results = await grow(broker, NewPartitions("t", 2), NewPartitions("u", 2), NewPartitions("t", 3))
        assert {result.name: result.error for result in results} == {"t": ErrorCode.INVALID_REQUEST, "u": OK}
        assert len(broker.image.topics["t"].partitions) == 1

    with_brokers(tmp_path, scenario, count=1)


def test_requests_at_the_same_time_are_decided_one_after_the_other(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        answers = await asyncio.gather(*(create(broker, NewTopic("same", 1, 1), NewTopic(f"t{n}")) for n in range(10)))
        outcomes = [codes(answer) for answer in answers]
        assert sorted(outcome[0] for outcome in outcomes) == [OK] + [ErrorCode.TOPIC_ALREADY_EXISTS] * 9
        assert {outcome[1] for outcome in outcomes} == {OK}
        assert len(broker.image.topics) == 11

    with_brokers(tmp_path, scenario)


def test_a_large_request_is_written_in_several_transactions(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        value = "1:" + "0," * 20_000 + "0"
        configs: dict[str, str | None] = {"leader.replication.throttled.replicas": value}
        names = [f"t{number}" for number in range(60)]
        [invalid, *_] = await create(broker, NewTopic("t", 1, 1, configs=configs))
        assert invalid.error == ErrorCode.INVALID_CONFIG
        value = ",".join(["0:1"] * 10_000)
        configs = {"leader.replication.throttled.replicas": value}
        results = await create(broker, *(NewTopic(name, 1, 1, configs=configs) for name in names))
        assert {result.error for result in results} == {OK}
        assert set(broker.image.topics) == set(names)

    with_brokers(tmp_path, scenario, count=1)


def test_dice_that_repeat_themselves_give_no_topic_id_twice() -> None:
    class RepeatingIds(SeededIds):
        drawn = iter([b"a" * 16, b"a" * 16, b"b" * 16])

        def uuid(self) -> bytes:
            return next(self.drawn)

    tree = Tree(brokers=[1])
    decisions = TopicDecisions(ControllerSettings(), lambda configs: None, RepeatingIds(), controller_epoch=1)
    for name in ("a", "b"):
        [decision] = decisions.create_topics(tree.image, [NewTopic(name)], {})
        tree.apply(decision.operations)
    assert {name: topic.topic_id for name, topic in tree.image.topics.items()} == {"a": b"a" * 16, "b": b"b" * 16}


def test_only_so_many_requests_wait_for_the_controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those whose clients have left: the rest is refused, and can be asked for again."""
    monkeypatch.setattr("ottla.cluster.controller.MOST_WAITING", 3)

    async def scenario(broker: RunningBroker) -> None:
        asked = [asyncio.create_task(create(broker, NewTopic(f"topic-{number}", 1))) for number in range(5)]
        errors = [(await task)[0].error for task in asked]
        assert errors == [OK, OK, OK, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REQUEST_TIMED_OUT]
        assert [result.error for result in await create(broker, NewTopic("topic-4", 1))] == [OK]

    with_brokers(tmp_path, scenario, count=1)
