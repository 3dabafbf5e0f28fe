"""Settings changed by real clients: confluent-kafka's admin client and Kafka's own ConfigCommand."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from tests.compat.clients.adapters.confluent import ConfluentClient
from tests.compat.clients.contract import eventually
from tests.compat.clients.model import TIMEOUT_SECONDS, Message, Refused
from tests.peers.java import run_java
from tests.peers.paths import KAFKA_LIBS, require_libs
from tests.peers.process import ServerProcess

pytestmark = pytest.mark.timeout(120)

INVALID_CONFIG, INVALID_REQUEST, MESSAGE_TOO_LARGE = 40, 42, 10
SET, DELETE, APPEND, SUBTRACT = (
    AlterConfigOpType.SET,
    AlterConfigOpType.DELETE,
    AlterConfigOpType.APPEND,
    AlterConfigOpType.SUBTRACT,
)


@pytest.fixture
def admin(broker: ServerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def answer(futures: dict[Any, Any]) -> Any:
    (future,) = futures.values()
    return future.result(TIMEOUT_SECONDS)


def change(
    admin: AdminClient, kind: str, name: str, *changes: tuple[str, AlterConfigOpType, str | None], **options: Any
) -> None:
    entries = [ConfigEntry(key, value, incremental_operation=operation) for key, operation, value in changes]
    resource = ConfigResource(ConfigResource.Type[kind], name, incremental_configs=entries)
    answer(admin.incremental_alter_configs([resource], **options))


def value(admin: AdminClient, kind: str, name: str, key: str) -> tuple[str | None, str]:
    entry = answer(admin.describe_configs([ConfigResource(ConfigResource.Type[kind], name)]))[key]
    return entry.value, str(entry.source)


def config_command(broker: ServerProcess, *arguments: str, expect_code: int = 0) -> str:
    """Run kafka-configs and answer what it printed."""
    server = ["--bootstrap-server", broker.bootstrap]
    done = run_java("kafka.admin.ConfigCommand", [*server, *arguments], require_libs(KAFKA_LIBS, "kafka"))
    assert done.returncode == expect_code, f"it ended with {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def test_a_topic_with_confluent_kafka(broker: ServerProcess, admin: AdminClient, topic: str) -> None:
    client = ConfluentClient(broker.bootstrap)
    client.create_topic(topic, configs={"flush.ms": "1000"})
    change(admin, "TOPIC", topic, ("retention.ms", SET, "5000"), ("flush.ms", DELETE, None))
    eventually(lambda: client.topic_configs(topic)["retention.ms"], "5000")
    assert client.topic_configs(topic)["flush.ms"] == "9223372036854775807"
    change(admin, "TOPIC", topic, ("cleanup.policy", APPEND, "compact"))
    eventually(lambda: client.topic_configs(topic)["cleanup.policy"], "delete,compact")
    change(admin, "TOPIC", topic, ("cleanup.policy", SUBTRACT, "delete"))
    eventually(lambda: client.topic_configs(topic)["cleanup.policy"], "compact")
    change(admin, "TOPIC", topic, ("retention.ms", SET, "1"), validate_only=True)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, set_config={"max.message.bytes": "200"})
    with pytest.warns(DeprecationWarning, match="incremental_alter_configs"):
        answer(admin.alter_configs([resource]))
    eventually(lambda: client.topic_configs(topic)["max.message.bytes"], "200")
    configs = client.topic_configs(topic)
    assert (configs["cleanup.policy"], configs["retention.ms"] == "5000") == ("delete", False)
    with pytest.raises(Refused) as caught:
        client.produce(topic, 0, [Message(b"x" * 1000)])
    assert caught.value.code == MESSAGE_TOO_LARGE


@pytest.mark.parametrize(
    ("kind", "name", "key", "given", "expected"),
    [
        ("TOPIC", None, "retention.ms", "soon", INVALID_CONFIG),
        ("TOPIC", None, "no.such.key", "1", INVALID_CONFIG),
        ("BROKER", "1", "num.partitions", "2", INVALID_REQUEST),
        ("BROKER", "1", "log.segment.bytes", "many", INVALID_REQUEST),
    ],
)
def test_what_confluent_kafka_is_refused(
    broker: ServerProcess,
    admin: AdminClient,
    topic: str,
    kind: str,
    name: str | None,
    key: str,
    given: str,
    expected: int,
) -> None:
    ConfluentClient(broker.bootstrap).create_topic(topic)
    with pytest.raises(KafkaException) as caught:
        change(admin, kind, name or topic, (key, SET, given))
    assert caught.value.args[0].code() == expected


def test_a_broker_with_confluent_kafka(admin: AdminClient) -> None:
    key = "log.index.interval.bytes"
    change(admin, "BROKER", "1", (key, SET, "5000"))
    eventually(lambda: value(admin, "BROKER", "1", key)[0], "5000")
    change(admin, "BROKER", "1", (key, DELETE, None))
    eventually(lambda: value(admin, "BROKER", "1", key)[0], "4096")


def test_topics_with_the_config_command(broker: ServerProcess, topic: str) -> None:
    client = ConfluentClient(broker.bootstrap)
    client.create_topic(topic)
    entity = ("--entity-type", "topics", "--entity-name", topic)
    changes = "retention.ms=5000,cleanup.policy=[compact,delete]"
    assert "Completed updating config" in config_command(broker, "--alter", *entity, "--add-config", changes)
    described = config_command(broker, "--describe", *entity)
    assert "retention.ms=5000" in described
    assert "DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete" in described
    assert "segment.bytes" not in described
    assert "segment.bytes=1073741824" in config_command(broker, "--describe", "--all", *entity)
    config_command(broker, "--alter", *entity, "--delete-config", "retention.ms")
    assert "retention.ms=5000" not in config_command(broker, "--describe", *entity)
    refused = config_command(broker, "--alter", *entity, "--add-config", "retention.ms=soon", expect_code=1)
    assert "InvalidConfigurationException" in refused


def test_brokers_with_the_config_command(broker: ServerProcess) -> None:
    entity = ("--entity-type", "brokers")
    key = "log.cleaner.delete.retention.ms"
    config_command(broker, "--alter", *entity, "--entity-default", "--add-config", f"{key}=5000")
    config_command(broker, "--alter", *entity, "--entity-name", "1", "--add-config", f"{key}=6000")
    described = config_command(broker, "--describe", *entity, "--entity-name", "1")
    assert f"{key}=6000 sensitive=false synonyms={{DYNAMIC_BROKER_CONFIG:{key}=6000, " in described
    assert f"DYNAMIC_DEFAULT_BROKER_CONFIG:{key}=5000, DEFAULT_CONFIG:{key}=86400000" in described
    assert f"{key}=5000" in config_command(broker, "--describe", *entity, "--entity-default")
    for who in (("--entity-default",), ("--entity-name", "1")):
        config_command(broker, "--alter", *entity, *who, "--delete-config", key)
    assert key not in config_command(broker, "--describe", *entity, "--entity-name", "1")
    refused = config_command(
        broker, "--alter", *entity, "--entity-name", "1", "--add-config", "num.partitions=3", expect_code=1
    )
    assert "InvalidRequestException" in refused
