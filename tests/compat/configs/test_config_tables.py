"""What Apache Kafka says of its settings against what Ottla says: every difference is named here, with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from tests.broker_thread import BrokerThread
from tests.peers.kafka import KafkaBroker
from tests.peers.paths import PeerMissing
from tests.unit.broker.api.config_questions import (
    ALL_BROKERS,
    BROKER,
    SET,
    THIS_BROKER,
    TOPIC,
    by_name,
    change,
    describe,
)
from tests.unit.broker.api.questions import create_topic
from tests.wire_client import WireClient

from ottla.broker.config_description import TYPE_NUMBERS
from ottla.broker.config_foreign import UNUSED_KEYS, is_fixed_in_kafka, is_promise
from ottla.broker.config_security import missing_protection
from ottla.log.config import ConfigType
from ottla.protocol.messages.describe_configs import DescribeConfigsResourceResult

pytestmark = pytest.mark.timeout(120)

# What both are started with: one key under a coarse unit, one under both, one under its own name.
STATIC = {
    "log.roll.hours": "24",
    "log.retention.ms": "-1",
    "log.retention.hours": "48",
    "log.segment.bytes": "2000000",
    "no.such.key": "x",
}
# Set by whoever starts the broker, so they say nothing about defaults.
GIVEN = {
    "node.id",
    "log.dirs",
    "listeners",
    "advertised.listeners",
    "log.retention.check.interval.ms",
    "group.initial.rebalance.delay.ms",
    "offsets.topic.num.partitions",
    "offsets.topic.replication.factor",
    "transaction.state.log.min.isr",
    "transaction.state.log.num.partitions",
    "transaction.state.log.replication.factor",
}

PORTS = "a listener cannot be moved while the broker runs"
BOUND = "bounded out of the box"
FASTER = "measured to be faster"
DEFAULTS_THAT_DIFFER = {
    "broker.id": "an alias of node.id here",
    "queued.max.request.bytes": BOUND,
    "socket.send.buffer.bytes": FASTER,
    "socket.receive.buffer.bytes": FASTER,
    "socket.listen.backlog.size": FASTER,
    "log.dir": "a directory of its own name, in the working directory",
    "listener.security.protocol.map": "there is one security protocol",
}
FIXED_HERE = {
    "listeners": PORTS,
    "listener.security.protocol.map": PORTS,
}


KRAFT = "brokers meet in the coordination store, not in a quorum"
SECURITY = "there is no TLS, SASL or authorisation"
GROUPS, TRANSACTIONS = "there are no groups of this kind", "not used by the coordinator of transactions"
REPLICATION = "there is one broker"
QUOTAS, METRICS, TIERED = "there are no quotas", "there are no metrics of this kind", "there is no tiered storage"
THREADS, PLUGINS = "one loop does the work", "nothing is plugged in"
# By what the names begin with.
MISSING_HERE = {
    "broker.id": "an alias of node.id",
    **dict.fromkeys(("controller.quorum.", "controller.listener.", "controller.socket.", "process.roles"), KRAFT),
    **dict.fromkeys(("metadata.", "initial.broker.", "broker.heartbeat.", "broker.session.", "early.start."), KRAFT),
    **dict.fromkeys(("ssl.", "sasl.", "security.", "principal.", "delegation.", "authorizer."), SECURITY),
    **dict.fromkeys(("connection.failed.authentication.", "connections.max.reauth."), SECURITY),
    **dict.fromkeys(("group.", "share.", "offset.", "offsets."), GROUPS),
    **dict.fromkeys(("transaction.state.log.load.", "transaction.two.phase."), TRANSACTIONS),
    **dict.fromkeys(("replica.", "leader.", "auto.leader.", "controlled.shutdown.", "num.replica."), REPLICATION),
    **dict.fromkeys(("inter.broker.", "request.timeout.", "socket.connection.setup."), REPLICATION),
    **dict.fromkeys(("client.quota.", "replication.quota.", "alter.log."), QUOTAS),
    **dict.fromkeys(("metric.", "metrics.", "kafka.metrics.", "telemetry."), METRICS),
    **dict.fromkeys(("remote.", "follower.fetch.last.tiered."), TIERED),
    **dict.fromkeys(("num.io.", "num.network.", "num.recovery.", "background.", "queued.max.requests"), THREADS),
    **dict.fromkeys(("alter.config.policy.", "create.topic.policy.", "config.providers"), PLUGINS),
    **dict.fromkeys(("fetch.purgatory.", "producer.purgatory.", "delete.records.purgatory."), "nothing is purged"),
    **dict.fromkeys(("log.cleaner.", "log.retention.check."), "nothing is cleaned"),
    **dict.fromkeys(("log.dir.failure.", "cordoned."), "a directory that failed stays failed"),
    "max.request.partition.size.limit": "the limit is fixed",
}


# Values beside those that every setting is asked about.
ENDS = {
    "background.threads": ("0",),
    "num.io.threads": ("0",),
    "log.cleaner.io.buffer.size": ("-1", "0"),
    "group.coordinator.cached.buffer.max.bytes": ("524287", "524288"),
    "share.coordinator.cached.buffer.max.bytes": ("524287", "524288"),
    "group.share.assignment.interval.ms": ("-1", "0", "15000", "15001"),
    "group.streams.assignment.interval.ms": ("-1", "0", "15000", "15001"),
    "remote.fetch.max.wait.ms": ("0", "1"),
    "sasl.kerberos.min.time.before.relogin": ("-1", "0"),
    "sasl.login.refresh.window.factor": ("-1", "5"),
}


class Says(NamedTuple):
    """What a broker says of one setting."""

    type: int
    default: str | None
    read_only: bool
    is_sensitive: bool


class Peers(NamedTuple):
    kafka: WireClient
    ottla: WireClient


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peers]:
    try:
        kafka = KafkaBroker(tmp_path_factory.mktemp("kafka"), properties=STATIC)
    except PeerMissing as missing:
        pytest.skip(str(missing))
    with kafka, BrokerThread(tmp_path_factory.mktemp("ottla"), STATIC) as ottla:
        assert kafka.port is not None
        with WireClient(kafka.port) as kafka_client, WireClient(ottla.port) as ottla_client:
            for client in (kafka_client, ottla_client):
                create_topic(client, "topic")
            yield Peers(kafka_client, ottla_client)


def said(client: WireClient, kind: int, name: str) -> dict[str, Says]:
    configs = by_name(describe(client, kind, name))
    return {
        key: Says(config.config_type, config.value, config.read_only, config.is_sensitive)
        for key, config in configs.items()
    }


def is_own(name: str) -> bool:
    return name.startswith("ottla.")


def test_a_topic_has_the_same_settings(peers: Peers) -> None:
    kafka, ottla = said(peers.kafka, TOPIC, "topic"), said(peers.ottla, TOPIC, "topic")
    assert ottla == kafka


def test_the_settings_of_a_broker_are_kafkas(peers: Peers) -> None:
    kafka, ottla = said(peers.kafka, BROKER, THIS_BROKER), said(peers.ottla, BROKER, THIS_BROKER)
    assert {name for name in ottla if name not in kafka and not is_own(name)} == set()
    differences = {}
    for name, says in ottla.items():
        if is_own(name):
            continue
        expected = kafka[name]
        if name in GIVEN or name in DEFAULTS_THAT_DIFFER:
            expected = expected._replace(default=says.default)
        if name in FIXED_HERE:
            expected = expected._replace(read_only=True)
        if says != expected:
            differences[name] = (says, kafka[name])
    assert differences == {}


def test_every_excuse_is_needed(peers: Peers) -> None:
    kafka, ottla = said(peers.kafka, BROKER, THIS_BROKER), said(peers.ottla, BROKER, THIS_BROKER)
    same = {name for name in DEFAULTS_THAT_DIFFER if name in ottla and kafka[name].default == ottla[name].default}
    assert same == set()
    assert {name for name in FIXED_HERE if kafka[name].read_only} == set()


@pytest.mark.parametrize(("kind", "name"), [(TOPIC, "topic"), (BROKER, THIS_BROKER)])
def test_sources_and_synonyms(peers: Peers, kind: int, name: str) -> None:
    def origin(config: DescribeConfigsResourceResult) -> tuple[int, list[tuple[str, str | None, int]]]:
        return config.config_source, [(item.name, item.value, item.source) for item in config.synonyms]

    excused = {*GIVEN, *DEFAULTS_THAT_DIFFER}
    kafka, ottla = (by_name(describe(client, kind, name, synonyms=True)) for client in peers)
    differences = {
        key: (origin(ottla[key]), origin(config))
        for key, config in kafka.items()
        if key in ottla and key not in excused and origin(ottla[key]) != origin(config)
    }
    assert differences == {}


def test_every_setting_of_kafka_is_known_or_excused(peers: Peers) -> None:
    kafka, ottla = said(peers.kafka, BROKER, THIS_BROKER), said(peers.ottla, BROKER, THIS_BROKER)
    missing = [name for name in kafka if name not in ottla and not name.startswith(tuple(MISSING_HERE))]
    assert missing == []


def test_what_cannot_be_changed_in_kafka_cannot_be_changed_here(peers: Peers) -> None:
    kafka, ottla = said(peers.kafka, BROKER, THIS_BROKER), said(peers.ottla, BROKER, THIS_BROKER)
    foreign = {name: says for name, says in kafka.items() if name not in ottla and name != "broker.id"}
    fixed = {name for name, says in foreign.items() if says.read_only}
    assert {name for name in foreign if is_fixed_in_kafka(name) or is_promise(name)} >= fixed
    assert {name for name in foreign if is_fixed_in_kafka(name)} <= fixed


def test_every_dynamic_setting_of_kafka_is_used_kept_or_a_promise(peers: Peers) -> None:
    kafka, ottla = said(peers.kafka, BROKER, THIS_BROKER), said(peers.ottla, BROKER, THIS_BROKER)
    foreign = {name: says for name, says in kafka.items() if name not in ottla and not says.read_only}
    assert {name for name in foreign if not is_promise(name)} == UNUSED_KEYS.keys()
    for name, key in UNUSED_KEYS.items():
        default = foreign[name].default if key.default is None else key.format(key.default)
        assert foreign[name] == Says(TYPE_NUMBERS[key.type], default, read_only=False, is_sensitive=False), name


@pytest.mark.parametrize("place", [THIS_BROKER, ALL_BROKERS])
def test_unused_settings_are_taken_and_refused_as_in_kafka(peers: Peers, place: str) -> None:
    """At both ends of what Kafka allows; it also refuses a number of threads far from the present one."""
    for name, key in UNUSED_KEYS.items():
        value = "10000" if key.default is None else key.format(key.default)
        for text in (value, "x" if key.type is not ConfigType.LIST else "", *ENDS.get(name, ())):
            codes = [change(client, BROKER, place, (name, SET, text), validate_only=True) for client in peers]
            assert codes[0] == codes[1], (name, text)


def test_no_setting_of_security_is_ignored(peers: Peers) -> None:
    kafka = said(peers.kafka, BROKER, THIS_BROKER)
    beginnings = tuple(beginning for beginning, why in MISSING_HERE.items() if why is SECURITY)
    secured = [name for name in kafka if name.startswith(beginnings)]
    assert len(secured) > 70
    assert [name for name in secured if name not in UNUSED_KEYS and missing_protection({name: "value"}) is None] == []
