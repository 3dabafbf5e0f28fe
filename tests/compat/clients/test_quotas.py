"""Real clients with quotas: they see in their own statistics that they are made to wait, and lose nothing.

The broker looks back two seconds instead of eleven, so that nobody waits for long. How long it is depends on the
machine; that it is something does not.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, ThrottleEvent, TopicPartition
from tests.compat.clients.adapters import kafka_python  # noqa: F401 - imports the library without its warnings
from tests.compat.clients.adapters.confluent import ConfluentClient
from tests.compat.clients.contract import eventually
from tests.conftest import start_broker
from tests.peers.java import compile_java, run_java
from tests.peers.paths import KAFKA_LIBS, REPOSITORY, require_libs
from tests.peers.process import ServerProcess
from tests.unit.broker.api.quota_questions import EXACT, NamedClient, describe, set_quota

pytestmark = pytest.mark.timeout(120)

JAVA = REPOSITORY / "tests" / "compat" / "java" / "quotas"
THROTTLED, COMMANDS = JAVA / "ThrottledClient.java", JAVA / "ConfigCommands.java"
BYTES_PER_SECOND = 200_000
RECORD_BYTES = 150_000
RECORDS = 3


@pytest.fixture(scope="module")
def quota_broker(target: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    server = start_broker(target, tmp_path_factory.mktemp("quotas"), properties={"quota.window.num": "2"})
    yield server
    server.stop()


@pytest.fixture
def client_id(quota_broker: ServerProcess, topic: str) -> Iterator[str]:
    """A client with a quota of its own, and a topic that it may write to."""
    assert quota_broker.port is not None
    name = f"client-of-{topic}"
    entity = [("client-id", name)]
    ConfluentClient(quota_broker.bootstrap).create_topic(topic)
    with NamedClient(quota_broker.port, "operator") as operator:
        set_quota(operator, entity, producer_byte_rate=BYTES_PER_SECOND, consumer_byte_rate=BYTES_PER_SECOND)
        eventually(lambda: bool(describe(operator, ("client-id", EXACT, name))[1]), True)
        yield name
        set_quota(operator, entity, producer_byte_rate=None, consumer_byte_rate=None)


def test_confluent_kafka(quota_broker: ServerProcess, topic: str, client_id: str) -> None:
    waits: list[float] = []

    def throttled(event: ThrottleEvent) -> None:
        waits.append(event.throttle_time)

    common = {"bootstrap.servers": quota_broker.bootstrap, "client.id": client_id, "throttle_cb": throttled}
    producer = Producer(common)
    for _ in range(RECORDS):
        producer.produce(topic, bytes(RECORD_BYTES), partition=0)
        producer.flush()
    eventually(lambda: producer.poll(0.05) >= 0 and any(waits), True)
    produce_waits = len(waits)
    consumer = Consumer({**common, "group.id": "none", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    read = 0
    while read < RECORDS:
        message = consumer.poll(1.0)
        if message is not None:
            assert message.error() is None
            read += 1
    consumer.close()
    assert max(waits[:produce_waits]) > 0
    assert max(waits[produce_waits:]) > 0


def test_kafka_python(quota_broker: ServerProcess, topic: str, client_id: str) -> None:
    from kafka import KafkaConsumer, KafkaProducer
    from kafka import TopicPartition as Partition

    producer = KafkaProducer(bootstrap_servers=quota_broker.bootstrap, client_id=client_id)
    for _ in range(RECORDS):
        producer.send(topic, bytes(RECORD_BYTES), partition=0).get(timeout=60)
    assert producer.metrics()["producer-metrics"]["throttle-time-max"] > 0
    producer.close()
    consumer = KafkaConsumer(
        bootstrap_servers=quota_broker.bootstrap, client_id=client_id, auto_offset_reset="earliest"
    )
    consumer.assign([Partition(topic, 0)])
    read = 0
    while read < RECORDS:
        read += sum(map(len, consumer.poll(timeout_ms=1000).values()))
    longest_wait_ms = consumer.metrics()["consumer-metrics"]["throttle-time-max"]
    consumer.close()
    assert longest_wait_ms > 0


def test_java(quota_broker: ServerProcess, topic: str, client_id: str) -> None:
    libs = require_libs(KAFKA_LIBS, "kafka")
    arguments = [quota_broker.bootstrap, topic, client_id, str(RECORDS), str(RECORD_BYTES)]
    done = run_java("ThrottledClient", arguments, libs, compile_java([THROTTLED], libs), timeout_seconds=100.0)
    assert done.returncode == 0, done.stderr
    waits = dict(line.split() for line in done.stdout.splitlines())
    assert set(waits) == {"produce-throttle-time-max", "fetch-throttle-time-max"}
    assert all(float(wait) > 0 for wait in waits.values()), waits


def test_kafka_configs_command(quota_broker: ServerProcess, topic: str) -> None:
    """Quotas of clients, users and addresses, set, shown and removed with Kafka's own tool."""
    client = ("--entity-type", "clients", "--entity-name", topic)
    user = ("--entity-type", "users", "--entity-name", topic)
    address = ("--entity-type", "ips", "--entity-name", "10.0.0.1")
    shown = config_commands(
        quota_broker,
        ("--alter", *client, "--add-config", "producer_byte_rate=1048576,consumer_byte_rate=2097152"),
        ("--alter", *user, *client, "--add-config", "request_percentage=150.5"),
        ("--alter", *user, "--add-config", "controller_mutation_rate=10"),
        ("--alter", *address, "--add-config", "connection_creation_rate=5"),
        ("--describe", *client),
        ("--describe", *user),
        ("--describe", *user, *client),
        ("--describe", "--entity-type", "users"),
        ("--describe", "--entity-type", "ips"),
        ("--alter", *address, "--delete-config", "connection_creation_rate"),
        ("--describe", "--entity-type", "ips"),
    )
    assert [text.strip() for text in shown] == [
        f"Completed updating config for client {topic}.",
        f"Completed updating config for user {topic}.",
        f"Completed updating config for user {topic}.",
        "Completed updating config for ip 10.0.0.1.",
        f"Quota configs for client-id '{topic}' are consumer_byte_rate=2097152.0, producer_byte_rate=1048576.0",
        f"Quota configs for user-principal '{topic}' are controller_mutation_rate=10.0",
        f"Quota configs for user-principal '{topic}', client-id '{topic}' are request_percentage=150.5",
        f"Quota configs for user-principal '{topic}' are controller_mutation_rate=10.0",
        "Quota configs for ip '10.0.0.1' are connection_creation_rate=5.0",
        "Completed updating config for ip 10.0.0.1.",
        "",
    ]


def config_commands(quota_broker: ServerProcess, *commands: tuple[str, ...]) -> list[str]:
    """What kafka-configs prints when it is run with each of these, in one JVM."""
    server = ("--bootstrap-server", quota_broker.bootstrap)
    words = [word for command in commands for word in (",", *server, *command)][1:]
    libs = require_libs(KAFKA_LIBS, "kafka")
    done = run_java("ConfigCommands", words, libs, compile_java([COMMANDS], libs), timeout_seconds=100.0)
    assert done.returncode == 0, done.stdout + done.stderr
    return [text.partition("\n")[2] for text in done.stdout.split("> ")[1:]]
