"""Every admin call of aiokafka that needs no group, no transaction and no security; what its user sees."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka import errors as kafka_errors
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from tests.compat.clients.adapters.aio import AiokafkaClient
from tests.compat.clients.contract import eventually
from tests.compat.clients.model import TIMEOUT_SECONDS, Message
from tests.peers.process import ServerProcess

from ottla.protocol.api_keys import ApiKey

pytestmark = pytest.mark.timeout(120)

TOPIC, BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER
Work = Callable[[Any], Awaitable[Any]]
Ask = Callable[[Work], Any]


@pytest.fixture
def ask(broker: ServerProcess) -> Ask:
    """Runs a question with an admin client of its own and gives back the answer."""

    async def use(work: Work) -> Any:
        admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
        await admin.start()
        try:
            return await asyncio.wait_for(work(admin), TIMEOUT_SECONDS)
        finally:
            await admin.close()

    return lambda work: asyncio.run(use(work))


@pytest.fixture
def client(broker: ServerProcess) -> AiokafkaClient:
    return AiokafkaClient(broker.bootstrap)


def test_topics(ask: Ask, client: AiokafkaClient, topic: str) -> None:
    names = [f"{topic}-{number}" for number in range(3)]
    wanted = [
        NewTopic(names[0], 2, 1, topic_configs={"retention.ms": "5000"}),
        NewTopic(names[1], -1, -1, replica_assignments={0: [1], 1: [1], 2: [1]}),
        NewTopic(names[2], 1, 5),
    ]
    answer = ask(lambda admin: admin.create_topics(wanted))
    assert [(name, code) for name, code, _ in answer.topic_errors] == [
        (names[0], 0),
        (names[1], 0),
        (names[2], kafka_errors.InvalidReplicationFactorError.errno),
    ]
    eventually(lambda: client.partition_count(names[1]), 3)
    listed = ask(lambda admin: admin.list_topics())
    assert [name in listed for name in names] == [True, True, False]
    (described,) = ask(lambda admin: admin.describe_topics([names[0]]))
    assert (described["error_code"], described["topic"], described["is_internal"]) == (0, names[0], False)
    assert [(found["partition"], found["leader"], found["replicas"], found["isr"])
            for found in described["partitions"]] == [(0, 1, [1], [1]), (1, 1, [1], [1])]  # fmt: skip
    answer = ask(lambda admin: admin.delete_topics(names))
    assert dict(answer.topic_error_codes) == {
        names[0]: 0,
        names[1]: 0,
        names[2]: kafka_errors.UnknownTopicOrPartitionError.errno,
    }
    eventually(lambda: set(ask(lambda admin: admin.list_topics())) & set(names), set())


def test_validation_only(ask: Ask, client: AiokafkaClient, topic: str) -> None:
    answer = ask(lambda admin: admin.create_topics([NewTopic(topic, 1, 1)], validate_only=True))
    assert [(name, code) for name, code, _ in answer.topic_errors] == [(topic, 0)]
    assert client.partition_count(topic) is None
    bad = NewTopic(f"{topic} ", 1, 1)
    answer = ask(lambda admin: admin.create_topics([bad], validate_only=True))
    assert [code for _, code, _ in answer.topic_errors] == [kafka_errors.InvalidTopicError.errno]


def test_partitions(ask: Ask, client: AiokafkaClient, topic: str) -> None:
    client.create_topic(topic)
    ask(lambda admin: admin.create_partitions({topic: NewPartitions(3, [[1], [1]])}))
    eventually(lambda: client.partition_count(topic), 3)
    with pytest.raises(kafka_errors.InvalidPartitionsError):
        ask(lambda admin: admin.create_partitions({topic: NewPartitions(2)}))
    with pytest.raises(kafka_errors.UnknownTopicOrPartitionError):
        ask(lambda admin: admin.create_partitions({f"{topic}-not-there": NewPartitions(2)}))
    with pytest.raises(kafka_errors.InvalidReplicationAssignmentError):
        ask(lambda admin: admin.create_partitions({topic: NewPartitions(4, [[9]])}))


def test_configs(ask: Ask, client: AiokafkaClient, topic: str) -> None:
    client.create_topic(topic, configs={"flush.ms": "77"})
    changed = ConfigResource(TOPIC, topic, configs={"retention.ms": "5000"})
    (answer,) = ask(lambda admin: admin.alter_configs([changed]))
    assert [(code, name) for code, _, _, name in answer.resources] == [(0, topic)]
    # This call replaces all settings of the topic.
    eventually(lambda: client.topic_configs(topic)["retention.ms"], "5000")
    assert client.topic_configs(topic)["flush.ms"] == "9223372036854775807"
    asked = ConfigResource(TOPIC, topic, configs={"retention.ms": None})
    (answer,) = ask(lambda admin: admin.describe_configs([asked], include_synonyms=True))
    ((_, _, _, _, entries),) = answer.resources
    ((name, value, read_only, source, sensitive, synonyms),) = entries
    assert (name, value, read_only, source, sensitive) == ("retention.ms", "5000", False, 1, False)
    assert [tuple(synonym) for synonym in synonyms] == [
        ("retention.ms", "5000", 1),
        ("log.retention.ms", "-1", 4),
        ("log.retention.hours", "168", 5),
    ]


@pytest.mark.parametrize(
    ("kind", "name", "key", "value", "expected"),
    [
        (TOPIC, None, "retention.ms", "soon", kafka_errors.InvalidConfigurationError),
        (TOPIC, None, "no.such.key", "1", kafka_errors.InvalidConfigurationError),
        (TOPIC, "not-there", "retention.ms", "1", kafka_errors.UnknownTopicOrPartitionError),
        (BROKER, 1, "num.partitions", "4", kafka_errors.InvalidRequestError),
    ],
)
def test_configs_that_are_refused(
    ask: Ask, client: AiokafkaClient, topic: str, kind: Any, name: Any, key: str, value: str, expected: Any
) -> None:
    client.create_topic(topic)
    changed = ConfigResource(kind, name or topic, configs={key: value})
    answers = ask(lambda admin: admin.alter_configs([changed]))
    codes = [resource[0] for answer in answers for resource in answer.resources]
    assert codes == [expected.errno]


def test_configs_of_a_broker(ask: Ask) -> None:
    answers = ask(lambda admin: admin.describe_configs([ConfigResource(BROKER, 1)]))
    (resource,) = [resource for answer in answers for resource in answer.resources]
    entries = {entry[0]: entry[1:4] for entry in resource[4]}
    assert entries["node.id"][:2] == ("1", True)
    assert entries["log.retention.ms"] == ("-1", False, 4)


def test_delete_records(ask: Ask, client: AiokafkaClient, topic: str) -> None:
    client.create_topic(topic, partitions=2)
    for partition in range(2):
        client.produce(topic, partition, [Message(b"%d" % number) for number in range(10)])
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    wanted = {first: RecordsToDelete(before_offset=6), second: RecordsToDelete(before_offset=-1)}
    assert ask(lambda admin: admin.delete_records(wanted)) == {first: 6, second: 10}
    assert [record.offset for record in client.consume(topic, 0, 0, 4)] == [6, 7, 8, 9]
    assert client.offset_at(topic, 1, "earliest") == 10
    with pytest.raises(kafka_errors.OffsetOutOfRangeError):
        ask(lambda admin: admin.delete_records({first: RecordsToDelete(before_offset=11)}))
    with pytest.raises(kafka_errors.NotLeaderForPartitionError):
        ask(lambda admin: admin.delete_records({TopicPartition("not-there", 0): RecordsToDelete(before_offset=1)}))


def test_the_cluster(ask: Ask, broker: ServerProcess) -> None:
    found = ask(lambda admin: admin.describe_cluster())
    (node,) = found["brokers"]
    assert (node["node_id"], node["port"], node["rack"]) == (1, broker.port, None)
    assert found["controller_id"] == 1


def test_groups(ask: Ask, needs: Callable[[ApiKey], None]) -> None:
    needs(ApiKey.LIST_GROUPS)
    assert isinstance(ask(lambda admin: admin.list_consumer_groups()), list)
