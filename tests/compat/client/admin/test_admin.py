"""The admin client beside those of others, on the same either."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import Producer
from tests.compat.client.admin.others import Confluent, library, names_by_kafka_python, until
from tests.compat.client.conftest import Either

from ottla.client.admin import (
    DEFAULT,
    Append,
    AsyncAdmin,
    ConfigResource,
    ConfigSource,
    DeleteBefore,
    Election,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    QuotaEntity,
    ResourceType,
    ScramDelete,
    ScramMechanism,
    ScramUpsert,
    Subtract,
)
from ottla.client.errors import BrokerError, OttlaError, UnknownTopic, UnsupportedByBroker
from ottla.client.types import OffsetAndMetadata, TopicPartition
from ottla.protocol.errors import ErrorCode

pytestmark = pytest.mark.timeout(120)

Scenario = Callable[[AsyncAdmin], Awaitable[None]]


@asynccontextmanager
async def connected(either: Either) -> AsyncIterator[AsyncAdmin]:
    async with AsyncAdmin(either.bootstrap) as admin:
        yield admin


def run(either: Either, scenario: Scenario) -> None:
    async def whole() -> None:
        async with connected(either) as admin:
            await scenario(admin)

    asyncio.run(whole())


def code_of(error: OttlaError) -> ErrorCode:
    assert isinstance(error, BrokerError), error
    return error.code


async def is_set(admin: AsyncAdmin, resource: ConfigResource, name: str, value: str) -> bool:
    """Whether brokers go by a new setting yet."""
    found = (await admin.describe_configs(resource, names=[name])).raise_for_errors()
    return found[resource][name].value == value


def write(either: Either, topic: str, count: int, first_time_ms: int = 1_700_000_000_000) -> None:
    producer = Producer({"bootstrap.servers": either.bootstrap, "linger.ms": 0})
    for number in range(count):
        producer.produce(topic, str(number), partition=0, timestamp=first_time_ms + number * 1000)
    assert producer.flush(30) == 0


def test_topics_are_seen_alike_by_all_clients(either: Either, topic: str) -> None:
    async def scenario(admin: AsyncAdmin) -> None:
        created = await admin.create_topics(
            [NewTopic(topic, 3, configs={"retention.ms": "1000"}), NewTopic(f"{topic}-b", assignments=[[1], [1]])]
        )
        created.raise_for_errors()
        assert (created[topic].partitions, created[topic].replication_factor) == (3, 1)
        assert created[topic].configs["retention.ms"] == "1000"
        described = (await admin.describe_topics([topic, f"{topic}-b"])).raise_for_errors()
        assert described[topic].topic_id == created[topic].topic_id
        for name in described:
            ours = [
                (one.partition, one.leader, list(one.replicas), list(one.in_sync)) for one in described[name].partitions
            ]
            assert ours == Confluent(either.bootstrap).partitions(name)
        listed = await admin.list_topics()
        assert [one.name for one in listed] == names_by_kafka_python(either.bootstrap)
        (one,) = (one for one in listed if one.name == topic)
        assert (one.partitions, one.replication_factor, one.is_internal) == (3, 1, False)
        gone: list[tuple[int, int]] = []
        results = await admin.delete_topics([topic, f"{topic}-b"], wait=True, progress=lambda *now: gone.append(now))
        results.raise_for_errors()
        assert gone[-1] == (2, 2)
        assert topic not in names_by_kafka_python(either.bootstrap)

    run(either, scenario)


def test_each_wrong_topic_has_its_own_error(either: Either, topic: str) -> None:
    async def scenario(admin: AsyncAdmin) -> None:
        (await admin.create_topics(topic)).raise_for_errors()
        wanted = [
            NewTopic(topic),
            NewTopic("not a name"),
            NewTopic(f"{topic}-replicas", 1, 3),
            NewTopic(f"{topic}-config", configs={"retention.ms": "soon"}),
            NewTopic(f"{topic}-key", configs={"retention.mss": "1"}),
            NewTopic(f"{topic}-assigned", assignments=[[1], [77]]),
            NewTopic(f"{topic}-fine"),
        ]
        results = await admin.create_topics(wanted, validate_only=True)
        assert list(results.succeeded) == [f"{topic}-fine"]
        assert {name: code_of(error) for name, error in results.errors.items()} == {
            topic: ErrorCode.TOPIC_ALREADY_EXISTS,
            "not a name": ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"{topic}-replicas": ErrorCode.INVALID_REPLICATION_FACTOR,
            f"{topic}-config": ErrorCode.INVALID_CONFIG,
            f"{topic}-key": ErrorCode.INVALID_CONFIG,
            f"{topic}-assigned": ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        }
        unknown = await admin.describe_topics(f"{topic}-fine")
        assert isinstance(unknown.errors[f"{topic}-fine"], UnknownTopic)
        refused = await admin.delete_topics(f"{topic}-fine")
        assert isinstance(refused.errors[f"{topic}-fine"], UnknownTopic)

    run(either, scenario)


def test_partitions_leaders_and_moves(either: Either, topic: str) -> None:
    async def scenario(admin: AsyncAdmin) -> None:
        (await admin.create_topics(topic)).raise_for_errors()
        grown = await admin.create_partitions({topic: 3, f"{topic}-none": 2})
        assert grown[topic] is None
        assert code_of(grown.errors[f"{topic}-none"]) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        (await admin.create_partitions({topic: NewPartitions(4, [[1]])})).raise_for_errors()
        fewer = await admin.create_partitions({topic: 2})
        assert code_of(fewer.errors[topic]) == ErrorCode.INVALID_PARTITIONS
        assert len((await admin.describe_topics(topic))[topic].partitions) == 4
        key = TopicPartition(topic, 0)
        elected = await admin.elect_leaders([key], election=Election.PREFERRED)
        assert code_of(elected.errors[key]) == ErrorCode.ELECTION_NOT_NEEDED
        assert await admin.list_reassignments([key]) == {}
        moved = await admin.alter_reassignments({key: [1], (topic, 1): None, (topic, 9): [1]}, wait=True)
        assert list(moved.succeeded) == [key]
        assert {one.partition: code_of(error) for one, error in moved.errors.items()} == {
            1: ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
            9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }

    run(either, scenario)


def test_settings_are_seen_alike_and_changed_one_by_one(either: Either, topic: str) -> None:
    async def scenario(admin: AsyncAdmin) -> None:
        (await admin.create_topics(topic)).raise_for_errors()
        orders, broker = ConfigResource.topic(topic), ConfigResource.broker(1)
        changed = await admin.alter_configs(
            {orders: {"retention.ms": 5, "cleanup.policy": Append("compact"), "preallocate": True}}
        )
        changed.raise_for_errors()
        await until(lambda: is_set(admin, orders, "retention.ms", "5"))
        found = await admin.describe_configs([orders, broker], include_synonyms=True)
        others = Confluent(either.bootstrap)
        for resource, kind in ((orders, "topic"), (broker, "broker")):
            ours = {key: (one.value, int(one.source), one.is_read_only) for key, one in found[resource].items()}
            assert ours == others.configs(kind, resource.name)
        retention = found[orders]["retention.ms"]
        assert (retention.value, retention.source) == ("5", ConfigSource.DYNAMIC_TOPIC_CONFIG)
        assert retention.synonyms[0].name == "retention.ms"
        assert found[orders]["cleanup.policy"].value == "delete,compact"
        back = {"retention.ms": None, "cleanup.policy": Subtract("delete")}
        (await admin.alter_configs({orders: back})).raise_for_errors()
        await until(lambda: is_set(admin, orders, "cleanup.policy", "compact"))
        (entries,) = (await admin.describe_configs(orders, names=["retention.ms", "cleanup.policy"])).values()
        of_topic = {name: one.value for name, one in entries.items() if one.source == ConfigSource.DYNAMIC_TOPIC_CONFIG}
        assert of_topic == {"cleanup.policy": "compact"}
        wrong = await admin.alter_configs({orders: {"retention.ms": "soon"}}, validate_only=True)
        assert code_of(wrong.errors[orders]) == ErrorCode.INVALID_CONFIG
        everybody = ConfigResource.all_brokers()
        (await admin.alter_configs({everybody: {"log.cleaner.backoff.ms": 14000}})).raise_for_errors()
        (await admin.alter_configs({everybody: {"log.cleaner.backoff.ms": None}})).raise_for_errors()
        assert orders in await admin.list_config_resources([ResourceType.TOPIC])

    run(either, scenario)


def test_offsets_by_every_question(either: Either, topic: str) -> None:
    async def scenario(admin: AsyncAdmin) -> None:
        (await admin.create_topics(NewTopic(topic, 2))).raise_for_errors()
        await asyncio.to_thread(write, either, topic, 10)
        key = TopicPartition(topic, 0)
        others = Confluent(either.bootstrap)
        questions = {
            OffsetSpec.EARLIEST: library.OffsetSpec.earliest(),
            OffsetSpec.LATEST: library.OffsetSpec.latest(),
            OffsetSpec.MAX_TIMESTAMP: library.OffsetSpec.max_timestamp(),
            1_700_000_004_500: library.OffsetSpec.for_timestamp(1_700_000_004_500),
        }
        for ours, theirs in questions.items():
            found = (await admin.list_offsets({key: ours}))[key]
            assert found is not None
            assert (found.offset, found.timestamp) == others.offset(topic, 0, theirs)
        fifth = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC) + timedelta(seconds=4.5)
        by_time = (await admin.list_offsets({key: fifth}))[key]
        assert by_time is not None
        assert by_time.offset == 5
        assert (await admin.list_offsets({key: 1_800_000_000_000}))[key] is None
        deleted = await admin.delete_records({key: 4, (topic, 1): DeleteBefore.END})
        assert dict(deleted.succeeded) == {key: 4, TopicPartition(topic, 1): 0}
        first = (await admin.list_offsets({key: OffsetSpec.EARLIEST}))[key]
        assert first is not None
        assert first.offset == 4
        beyond = await admin.delete_records({key: 99})
        assert code_of(beyond.errors[key]) == ErrorCode.OFFSET_OUT_OF_RANGE

    run(either, scenario)


def test_the_cluster_its_features_and_its_disks(either: Either, topic: str) -> None:
    async def scenario(admin: AsyncAdmin) -> None:
        (await admin.create_topics(topic)).raise_for_errors()
        await asyncio.to_thread(write, either, topic, 10)
        found = await admin.describe_cluster(include_fenced=True)
        brokers = [(one.node_id, one.host, one.port) for one in found.brokers]
        assert (found.cluster_id, brokers) == Confluent(either.bootstrap).cluster()
        assert not found.brokers[0].is_fenced
        features = await admin.describe_features()
        assert features.finalized["transaction.version"].highest == 2
        refused = await admin.update_features({"no.such.feature": 1}, validate_only=True)
        assert isinstance(refused.errors["no.such.feature"], BrokerError)
        key = TopicPartition(topic, 0)
        directories = (await admin.describe_log_dirs())[1]
        (now,) = (path for path, one in directories.items() if key in one.replicas)
        (other,) = (path for path in directories if path != now)
        assert directories[now].replicas[key].size_bytes > 0
        assert directories[now].total_bytes >= directories[now].usable_bytes > 0
        results = await admin.alter_replica_log_dirs({(topic, 0, 1): other})
        results.raise_for_errors()

        async def has_arrived() -> bool:
            return key in (await admin.describe_log_dirs([1], partitions=[key]))[1][other].replicas

        await until(has_arrived)
        wrong = await admin.alter_replica_log_dirs({(topic, 0, 1): "/no/such/directory"})
        ((_, error),) = wrong.errors.items()
        assert code_of(error) == ErrorCode.LOG_DIR_NOT_FOUND

    run(either, scenario)


def test_quotas(either: Either) -> None:
    async def scenario(admin: AsyncAdmin) -> None:
        alice, everybody = QuotaEntity(user="alice"), QuotaEntity(client_id=DEFAULT)
        both = QuotaEntity(user="alice", client_id="shop")
        set_ = await admin.alter_client_quotas(
            {
                alice: {"producer_byte_rate": 1_000_000.0},
                everybody: {"request_percentage": 50.0},
                both: {"consumer_byte_rate": 5.0},
            }
        )
        set_.raise_for_errors()

        async def are_known() -> bool:
            return len(await admin.describe_client_quotas()) == 3

        await until(are_known)
        assert await admin.describe_client_quotas() == {
            alice: {"producer_byte_rate": 1_000_000.0},
            everybody: {"request_percentage": 50.0},
            both: {"consumer_byte_rate": 5.0},
        }
        assert set(await admin.describe_client_quotas(alice)) == {alice, both}
        assert set(await admin.describe_client_quotas(alice, strict=True)) == {alice}
        wrong = await admin.alter_client_quotas({alice: {"tea_rate": 1.0}})
        assert code_of(wrong.errors[alice]) == ErrorCode.INVALID_REQUEST
        changes = {alice: {"producer_byte_rate": None}, everybody: {"request_percentage": None}}
        (await admin.alter_client_quotas({**changes, both: {"consumer_byte_rate": None}})).raise_for_errors()

        async def are_gone() -> bool:
            return not await admin.describe_client_quotas()

        await until(are_gone)

    run(either, scenario)


def test_users_with_passwords(either: Either) -> None:
    async def scenario(admin: AsyncAdmin) -> None:
        changes = [ScramUpsert("alice", "secret"), ScramUpsert("bob", "x", ScramMechanism.SCRAM_SHA_256, 4096)]
        results = await admin.alter_user_scram_credentials(changes)
        if not either.is_kafka:
            assert all(isinstance(error, UnsupportedByBroker) for error in results.errors.values())
            assert len(results.errors) == 2
            assert len(await admin.describe_user_scram_credentials()) == 0
            return
        results.raise_for_errors()

        async def are_known() -> bool:
            return len(await admin.describe_user_scram_credentials()) == 2

        await until(are_known)
        users = await admin.describe_user_scram_credentials(["alice", "bob", "carol"])
        assert [(one.mechanism, one.iterations) for one in users["bob"]] == [(ScramMechanism.SCRAM_SHA_256, 4096)]
        assert users["alice"][0].mechanism == ScramMechanism.SCRAM_SHA_512
        assert code_of(users.errors["carol"]) == ErrorCode.RESOURCE_NOT_FOUND
        few = await admin.alter_user_scram_credentials([ScramUpsert("carol", "x", iterations=1)])
        assert code_of(few.errors["carol"]) == ErrorCode.UNACCEPTABLE_CREDENTIAL
        gone = [ScramDelete("alice", ScramMechanism.SCRAM_SHA_512), ScramDelete("bob", ScramMechanism.SCRAM_SHA_256)]
        (await admin.alter_user_scram_credentials(gone)).raise_for_errors()

    run(either, scenario)


def test_offsets_of_a_group_without_members(either: Either, topic: str) -> None:
    async def scenario(admin: AsyncAdmin) -> None:
        (await admin.create_topics(NewTopic(topic, 2))).raise_for_errors()
        group = f"group-{topic}"
        first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
        wanted: dict[tuple[str, int], int | OffsetAndMetadata] = {
            first: 3,
            second: OffsetAndMetadata(5, "note"),
            (f"{topic}-none", 0): 1,
        }
        set_ = await admin.alter_group_offsets(group, wanted)
        assert list(set_.succeeded) == [first, second]
        assert [code_of(error) for error in set_.errors.values()] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        offsets = (await admin.list_group_offsets([group, "nobody"])).raise_for_errors()
        assert offsets["nobody"] == {}
        ours = {(key.topic, key.partition): (one.offset, one.metadata) for key, one in offsets[group].items()}
        assert {key: offset for key, (offset, _) in ours.items()} == Confluent(either.bootstrap).group_offsets(group)
        assert ours == {(topic, 0): (3, ""), (topic, 1): (5, "note")}
        (listed,) = (one for one in await admin.list_groups(states=["Empty"]) if one.group_id == group)
        assert (listed.type, listed.is_simple, listed.coordinator) == ("classic", True, 1)
        only = await admin.list_group_offsets(group, partitions=[second, (topic, 7)])
        assert list(only[group]) == [second]
        (await admin.delete_group_offsets(group, [first])).raise_for_errors()
        assert list((await admin.list_group_offsets(group))[group]) == [second]
        deleted = await admin.delete_groups([group, "nobody"])
        assert deleted[group] is None
        assert code_of(deleted.errors["nobody"]) == ErrorCode.GROUP_ID_NOT_FOUND
        missing = await admin.describe_groups(group)
        assert code_of(missing.errors[group]) == ErrorCode.GROUP_ID_NOT_FOUND

    run(either, scenario)
