"""Every admin call of confluent-kafka that needs no group, no transaction and no security; what its user sees."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_END,
    ElectionType,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka import admin as confluent_admin
from confluent_kafka.admin import AdminClient
from tests.compat.clients.adapters.confluent import ConfluentClient
from tests.compat.clients.contract import eventually
from tests.compat.clients.model import CREATE_TIME_MS, TIMEOUT_SECONDS, Message
from tests.peers.process import ServerProcess

from ottla.protocol.api_keys import ApiKey

pytestmark = pytest.mark.timeout(120)

Needs = Callable[[ApiKey], None]

# Most of what the module offers is neither exported nor typed.
library: Any = confluent_admin


@pytest.fixture
def admin(broker: ServerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


@pytest.fixture
def client(broker: ServerProcess) -> ConfluentClient:
    return ConfluentClient(broker.bootstrap)


def code_of(future: Any) -> int | None:
    """The error code of an answer; None when it is a good one."""
    try:
        future.result(TIMEOUT_SECONDS)
    except KafkaException as problem:
        error = problem.args[0]
        assert isinstance(error, KafkaError)
        assert not error.fatal()
        return error.code()
    return None


def result(futures: dict[Any, Any]) -> Any:
    (future,) = futures.values()
    return future.result(TIMEOUT_SECONDS)


def codes(futures: dict[Any, Any]) -> list[int | None]:
    return [code_of(future) for future in futures.values()]


def leaders(partitions: Iterable[Any]) -> list[tuple[int, int, list[int], list[int]]]:
    return [
        (found.id, found.leader.id, [node.id for node in found.replicas], [node.id for node in found.isr])
        for found in partitions
    ]


def test_each_topic_of_a_request_is_answered_for_itself(admin: AdminClient, topic: str) -> None:
    good, assigned, existing = f"{topic}-good", f"{topic}-assigned", f"{topic}-existing"
    result(admin.create_topics([library.NewTopic(existing, 1, 1)]))
    wanted = [
        library.NewTopic(good, num_partitions=2, replication_factor=1),
        library.NewTopic(existing, 1, 1),
        library.NewTopic(f"{topic}-no-partitions", num_partitions=0, replication_factor=1),
        library.NewTopic(f"{topic}-replicas", num_partitions=1, replication_factor=3),
        library.NewTopic(f"{topic}-config", 1, 1, config={"retention.ms": "soon"}),
        library.NewTopic(f"{topic}-unknown-config", 1, 1, config={"no.such.key": "1"}),
        library.NewTopic(f"{topic}/", 1, 1),
        library.NewTopic("x" * 250, 1, 1),
        library.NewTopic(assigned, num_partitions=2, replica_assignment=[[1], [1]]),
        library.NewTopic(f"{topic}-nobody", num_partitions=1, replica_assignment=[[9]]),
    ]
    assert codes(admin.create_topics(wanted)) == [
        None,
        KafkaError.TOPIC_ALREADY_EXISTS,
        KafkaError.INVALID_PARTITIONS,
        KafkaError.INVALID_REPLICATION_FACTOR,
        KafkaError.INVALID_CONFIG,
        KafkaError.INVALID_CONFIG,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.TOPIC_EXCEPTION,
        None,
        KafkaError.INVALID_REPLICA_ASSIGNMENT,
    ]
    eventually(lambda: set(admin.list_topics(timeout=TIMEOUT_SECONDS).topics) >= {good, assigned}, True)
    found = admin.list_topics(timeout=TIMEOUT_SECONDS).topics
    assert {name for name in found if name.startswith(topic)} == {good, assigned, existing}
    assert {partition: place.leader for partition, place in found[assigned].partitions.items()} == {0: 1, 1: 1}


def test_validation_only_changes_nothing(admin: AdminClient, client: ConfluentClient, topic: str) -> None:
    wanted = library.NewTopic(topic, 3, 1, config={"cleanup.policy": "compact"})
    assert code_of(admin.create_topics([wanted], validate_only=True)[topic]) is None
    assert client.partition_count(topic) is None
    client.create_topic(topic)
    assert codes(admin.create_topics([wanted], validate_only=True)) == [KafkaError.TOPIC_ALREADY_EXISTS]
    assert code_of(admin.create_partitions([library.NewPartitions(topic, 4)], validate_only=True)[topic]) is None
    assert client.partition_count(topic) == 1


def test_defaults_of_the_broker(admin: AdminClient, topic: str) -> None:
    result(admin.create_topics([library.NewTopic(topic)]))
    eventually(lambda: len(admin.list_topics(topic, timeout=TIMEOUT_SECONDS).topics[topic].partitions), 1)


def test_partitions(admin: AdminClient, client: ConfluentClient, topic: str) -> None:
    client.create_topic(topic, partitions=2)
    assert codes(admin.create_partitions([library.NewPartitions(topic, 4, replica_assignment=[[1], [1]])])) == [None]
    eventually(lambda: client.partition_count(topic), 4)
    for wanted, expected in (
        (library.NewPartitions(topic, 4), KafkaError.INVALID_PARTITIONS),
        (library.NewPartitions(topic, 3), KafkaError.INVALID_PARTITIONS),
        (library.NewPartitions(topic, 5, replica_assignment=[[7]]), KafkaError.INVALID_REPLICA_ASSIGNMENT),
        (library.NewPartitions(f"{topic}-not-there", 2), KafkaError.UNKNOWN_TOPIC_OR_PART),
    ):
        assert codes(admin.create_partitions([wanted])) == [expected]
    assert client.partition_count(topic) == 4


def test_deleting(admin: AdminClient, client: ConfluentClient, topic: str) -> None:
    names = [f"{topic}-{number}" for number in range(3)]
    for name in names:
        client.create_topic(name)
    answers = admin.delete_topics([*names, f"{topic}-not-there"], operation_timeout=10)
    assert {name: code_of(answer) for name, answer in answers.items()} == {
        **dict.fromkeys(names),
        f"{topic}-not-there": KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
    eventually(lambda: set(names) & set(admin.list_topics(timeout=TIMEOUT_SECONDS).topics), set())


def test_describe_topics(admin: AdminClient, client: ConfluentClient, topic: str) -> None:
    client.create_topic(topic, partitions=3)
    eventually(lambda: client.partition_count(topic), 3)
    missing = f"{topic}-not-there"
    answers = admin.describe_topics(TopicCollection([topic, missing]), include_authorized_operations=True)
    found = answers[topic].result(TIMEOUT_SECONDS)
    assert (found.name, found.is_internal) == (topic, False)
    assert leaders(found.partitions) == [(partition, 1, [1], [1]) for partition in range(3)]
    assert {operation.name for operation in found.authorized_operations} == {
        "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS",
    }  # fmt: skip
    assert (found.topic_id.get_most_significant_bits(), found.topic_id.get_least_significant_bits()) != (0, 0)
    assert code_of(answers[missing]) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_describe_cluster(admin: AdminClient, broker: ServerProcess) -> None:
    found: Any = admin.describe_cluster(include_authorized_operations=True).result(TIMEOUT_SECONDS)
    (node,) = found.nodes
    assert (node.id, node.port, node.rack) == (1, broker.port, None)
    assert found.controller.id == 1
    assert found.cluster_id == admin.list_topics(timeout=TIMEOUT_SECONDS).cluster_id
    assert {operation.name for operation in found.authorized_operations} == {
        "CREATE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE",
    }  # fmt: skip


def test_configs_of_a_topic(admin: AdminClient, client: ConfluentClient, topic: str) -> None:
    client.create_topic(topic, configs={"retention.bytes": "5000000"})
    eventually(lambda: client.partition_count(topic), 1)
    entries = result(admin.describe_configs([library.ConfigResource(library.ConfigResource.Type.TOPIC, topic)]))
    changed, unchanged = entries["retention.bytes"], entries["max.message.bytes"]
    facts = [
        (entry.value, entry.source, entry.is_default, entry.is_read_only, entry.is_sensitive, entry.is_synonym)
        for entry in (changed, unchanged)
    ]
    assert facts == [("5000000", 1, False, False, False, False), ("1048588", 5, True, False, False, False)]
    assert [(name, entry.value, entry.is_synonym) for name, entry in changed.synonyms.items()] == [
        ("retention.bytes", "5000000", True),
        ("log.retention.bytes", "-1", True),
    ]


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("TOPIC", "not-there", KafkaError.UNKNOWN_TOPIC_OR_PART),
        ("TOPIC", "not/legal", KafkaError.TOPIC_EXCEPTION),
        # The library looks for that broker itself until its time is over.
        ("BROKER", "7", KafkaError._TIMED_OUT),
    ],
)
def test_configs_of_what_is_not_there(admin: AdminClient, kind: str, name: str, expected: int) -> None:
    resource = library.ConfigResource(library.ConfigResource.Type[kind], name)
    seconds = 1 if kind == "BROKER" else TIMEOUT_SECONDS
    assert codes(admin.describe_configs([resource], request_timeout=seconds)) == [expected]


def test_configs_of_a_broker(admin: AdminClient) -> None:
    entries = result(admin.describe_configs([library.ConfigResource(library.ConfigResource.Type.BROKER, "1")]))
    node_id, retention = entries["node.id"], entries["log.retention.ms"]
    assert (node_id.value, node_id.is_read_only) == ("1", True)
    assert (retention.value, retention.source, retention.is_read_only) == ("-1", 4, False)


def test_delete_records(admin: AdminClient, client: ConfluentClient, topic: str) -> None:
    client.create_topic(topic, partitions=3)
    for partition in range(3):
        client.produce(topic, partition, [Message(b"%d" % number) for number in range(10)])
    wanted = [TopicPartition(topic, 0, 4), TopicPartition(topic, 1, OFFSET_END), TopicPartition(topic, 2, 0)]
    answers = admin.delete_records(wanted)
    assert [answers[partition].result(TIMEOUT_SECONDS).low_watermark for partition in wanted] == [4, 10, 0]
    assert [record.offset for record in client.consume(topic, 0, 0, 6)] == [4, 5, 6, 7, 8, 9]
    assert client.offset_at(topic, 1, "earliest") == 10
    beyond = TopicPartition(topic, 2, 11)
    assert codes(admin.delete_records([beyond])) == [KafkaError.OFFSET_OUT_OF_RANGE]
    unknown = TopicPartition(f"{topic}-not-there", 0, 1)
    assert codes(admin.delete_records([unknown])) == [KafkaError._NOENT]


@pytest.mark.parametrize("isolation", [IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED])
def test_list_offsets(admin: AdminClient, client: ConfluentClient, topic: str, isolation: IsolationLevel) -> None:
    client.create_topic(topic)
    for stamp in (5000, 9000, 7000):
        client.produce(topic, 0, [Message(b"x", timestamp_ms=CREATE_TIME_MS + stamp)])
    admin.delete_records([TopicPartition(topic, 0, 1)])[TopicPartition(topic, 0, 1)].result(TIMEOUT_SECONDS)

    def ask(spec: Any) -> tuple[int, int, int | None]:
        found = result(admin.list_offsets({TopicPartition(topic, 0): spec}, isolation_level=isolation))
        return found.offset, found.timestamp, found.leader_epoch

    assert ask(library.OffsetSpec.earliest()) == (1, -1, 0)
    assert ask(library.OffsetSpec.latest()) == (3, -1, 0)
    assert ask(library.OffsetSpec.max_timestamp()) == (1, CREATE_TIME_MS + 9000, 0)
    assert ask(library.OffsetSpec.for_timestamp(CREATE_TIME_MS)) == (1, CREATE_TIME_MS + 9000, 0)
    assert ask(library.OffsetSpec.for_timestamp(CREATE_TIME_MS + 9001)) == (-1, -1, None)
    unknown = TopicPartition(topic, 5)
    assert codes(admin.list_offsets({unknown: library.OffsetSpec.latest()})) == [KafkaError._NOENT]


def test_access_rules_without_an_authorizer(admin: AdminClient, topic: str) -> None:
    place = (
        library.ResourceType.TOPIC,
        topic,
        library.ResourcePatternType.LITERAL,
        "User:kafka",
        "*",
        library.AclOperation.READ,
    )
    rule = library.AclBinding(*place, library.AclPermissionType.ALLOW)
    rules = library.AclBindingFilter(*place, library.AclPermissionType.ALLOW)
    # The library hides this one from its user.
    assert admin.describe_acls(rules).result(TIMEOUT_SECONDS) == []
    assert codes(admin.create_acls([rule])) == [KafkaError.SECURITY_DISABLED]
    assert codes(admin.delete_acls([rules])) == [KafkaError.SECURITY_DISABLED]


def test_elect_leaders(admin: AdminClient, client: ConfluentClient, topic: str, needs: Needs) -> None:
    needs(ApiKey.ELECT_LEADERS)
    client.create_topic(topic)
    partitions = [TopicPartition(topic, 0), TopicPartition(f"{topic}-not-there", 0)]
    answers: Any = admin.elect_leaders(ElectionType.PREFERRED, partitions).result(TIMEOUT_SECONDS)
    assert {place.topic: error.code() for place, error in answers.items()} == {
        topic: KafkaError.ELECTION_NOT_NEEDED,
        f"{topic}-not-there": KafkaError.UNKNOWN_TOPIC_OR_PART,
    }


def test_list_groups(admin: AdminClient, needs: Needs) -> None:
    needs(ApiKey.LIST_GROUPS)
    found: Any = admin.list_consumer_groups().result(TIMEOUT_SECONDS)
    assert found.errors == []
    assert all(group.group_id for group in found.valid)
