"""DescribeConfigs."""

from pathlib import Path

import pytest
from tests.broker_thread import BrokerThread
from tests.unit.broker.api.config_questions import (
    BROKER,
    FROM_DEFAULT,
    FROM_STATIC_BROKER,
    FROM_TOPIC,
    TOPIC,
    by_name,
    describe,
)
from tests.unit.broker.api.questions import create_topic
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

BOOLEAN, STRING, INT, LONG, DOUBLE, LIST = 1, 2, 3, 5, 6, 7


@pytest.mark.parametrize("version", range(1, 5))
def test_every_version(client: WireClient, topic: str, version: int) -> None:
    create_topic(client, topic, configs={"retention.ms": "12345"})
    configs = by_name(describe(client, TOPIC, topic, version=version))
    own, inherited = configs["retention.ms"], configs["segment.bytes"]
    assert (own.value, own.config_source, own.read_only, own.is_sensitive) == ("12345", FROM_TOPIC, False, False)
    assert (inherited.value, inherited.config_source) == ("1073741824", FROM_DEFAULT)
    assert own.config_type == (LONG if version >= 3 else 0)
    assert own.synonyms == []


@pytest.mark.parametrize(
    ("name", "kind", "value"),
    [
        ("preallocate", BOOLEAN, "false"),
        ("compression.type", STRING, "producer"),
        ("max.message.bytes", INT, "1048588"),
        ("flush.ms", LONG, "9223372036854775807"),
        ("min.cleanable.dirty.ratio", DOUBLE, "0.5"),
        ("cleanup.policy", LIST, "delete"),
    ],
)
def test_types_and_defaults(client: WireClient, topic: str, name: str, kind: int, value: str) -> None:
    create_topic(client, topic)
    config = by_name(describe(client, TOPIC, topic))[name]
    assert (config.config_type, config.value) == (kind, value)


def test_synonyms_from_the_nearest_to_the_default(client: WireClient, topic: str) -> None:
    create_topic(client, topic, configs={"segment.bytes": "2097152"})
    config = by_name(describe(client, TOPIC, topic, synonyms=True))["segment.bytes"]
    assert [(synonym.name, synonym.value, synonym.source) for synonym in config.synonyms] == [
        ("segment.bytes", "2097152", FROM_TOPIC),
        ("log.segment.bytes", "1073741824", FROM_DEFAULT),
    ]


def test_documentation_when_asked_for(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    assert all(config.documentation is None for config in describe(client, TOPIC, topic).configs)
    assert all(config.documentation for config in describe(client, TOPIC, topic, documentation=True).configs)


def test_some_keys_only(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    keys = ["retention.ms", "no.such.key", "cleanup.policy"]
    assert set(by_name(describe(client, TOPIC, topic, keys=keys))) == {"retention.ms", "cleanup.policy"}
    assert by_name(describe(client, TOPIC, topic, keys=["no.such.key"])) == {}


def test_a_topic_that_is_not_there(client: WireClient, topic: str) -> None:
    result = describe(client, TOPIC, topic)
    assert (result.error_code, result.configs) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])


def test_a_name_that_no_topic_can_have(client: WireClient) -> None:
    assert describe(client, TOPIC, "a/b").error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_the_broker(client: WireClient) -> None:
    configs = by_name(describe(client, BROKER, "1", synonyms=True))
    assert (configs["num.partitions"].value, configs["num.partitions"].config_source) == ("1", FROM_DEFAULT)
    assert configs["log.dirs"].config_source == FROM_STATIC_BROKER
    assert configs["log.dirs"].synonyms[0].source == FROM_STATIC_BROKER
    assert configs["node.id"].read_only
    assert "log.segment.bytes" in configs


@pytest.mark.parametrize("name", ["2", "one"])
def test_another_broker(client: WireClient, name: str) -> None:
    assert describe(client, BROKER, name).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("kind", [0, 1, 3, 77])
def test_resources_without_settings(client: WireClient, kind: int) -> None:
    assert describe(client, kind, "x").error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.usefixtures("ottla_only")
def test_ottlas_own_key(client: WireClient, topic: str) -> None:
    create_topic(client, topic, configs={"ottla.flush.before.ack": "true"})
    config = by_name(describe(client, TOPIC, topic))["ottla.flush.before.ack"]
    assert (config.value, config.config_source, config.config_type) == ("true", FROM_TOPIC, BOOLEAN)


@pytest.mark.usefixtures("ottla_only")
def test_ottlas_own_key_is_among_the_others_where_it_is_set_only(
    client: WireClient, topic: str, tmp_path: Path
) -> None:
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name=topic, num_partitions=1, replication_factor=1)], timeout_ms=10_000
    )
    (created,) = client.ask(request, CreateTopicsResponse).topics
    described = by_name(describe(client, TOPIC, topic))
    assert [name for name in described if name.startswith("ottla.")] == []
    assert {config.name for config in created.configs or ()} == described.keys()
    named = by_name(describe(client, TOPIC, topic, keys=["ottla.flush.before.ack"]))
    assert named["ottla.flush.before.ack"].value == "false"
    properties = {"ottla.log.flush.before.ack": "true"}
    with BrokerThread(tmp_path, properties) as running, WireClient(running.port) as other:
        create_topic(other, "topic")
        config = by_name(describe(other, TOPIC, "topic"))["ottla.flush.before.ack"]
        assert (config.value, config.config_source) == ("true", FROM_STATIC_BROKER)


def test_settings_of_the_broker_reach_its_topics(tmp_path: Path) -> None:
    properties = {"log.retention.hours": "2", "log.segment.bytes": "2097152", "num.partitions": "3"}
    with BrokerThread(tmp_path, properties) as running, WireClient(running.port) as client:
        create_topic(client, "topic")
        configs = by_name(describe(client, TOPIC, "topic", synonyms=True))
        # As in Kafka: it is named after log.retention.ms, which nobody set.
        assert (configs["retention.ms"].value, configs["retention.ms"].config_source) == ("7200000", FROM_DEFAULT)
        assert configs["segment.bytes"].config_source == FROM_STATIC_BROKER
        assert [(synonym.name, synonym.value) for synonym in configs["segment.bytes"].synonyms] == [
            ("log.segment.bytes", "2097152"),
            ("log.segment.bytes", "1073741824"),
        ]
        broker = by_name(describe(client, BROKER, "1"))
        assert (broker["num.partitions"].value, broker["log.retention.hours"].value) == ("3", "2")
