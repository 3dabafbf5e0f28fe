"""Every setting that docs/CLIENT_SETTINGS.md lists can be set: a client with it starts and works.

Each is set to the default that the page names, or to a value that users give it, and where it has choices, to each of
them, together with what it needs. Settings of TLS and SASL are read as far as a client reads them before it connects.
"""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.peers.certificates import Authority, Identity
from tests.unit.client.settings_page import PAGE

from ottla import AsyncAdmin, AsyncConsumer, AsyncProducer
from ottla.client.config import AdminConfig, ClientConfig, ConsumerConfig, ProducerConfig, resolve
from ottla.client.config_settings import settings_of
from ottla.client.errors import ConfigError
from ottla.client.security.guard import Guard
from ottla.runtime.real import SystemClock, SystemIds
from ottla.testing import TestBroker

KINDS: dict[str, type[ClientConfig]] = {"Producer": ProducerConfig, "Consumer": ConsumerConfig, "Admin": AdminConfig}
COMMON, SECURITY = "All clients", "TLS and SASL, in all clients"
TOPIC = "orders"

Settings = dict[str, object]

PLAIN: Settings = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "a",
    "sasl.password": "b",
}
BEARER: Settings = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.token.endpoint.url": "https://login.example/token",
    "sasl.oauthbearer.client.credentials.client.id": "a",
    "sasl.oauthbearer.client.credentials.client.secret": "b",
}
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b";'

# For those without a default, or with one that says little.
VALUES: dict[str, list[object]] = {
    "acks": ["all", "-1", 1, 0],
    "auto.offset.reset": ["latest", "earliest", "none", "by_duration:PT1H"],
    "client.rack": ["a"],
    "group.id": ["billing"],
    "group.instance.id": ["billing-1"],
    "group.remote.assignor": ["uniform", "range"],
    "interceptor.classes": [[], [object()]],
    "key.deserializer": ["str"],
    "key.serializer": ["str"],
    "partition.assignment.strategy": ["range,cooperative-sticky", "roundrobin", ["sticky"]],
    "partitioner.class": [lambda topic, key, count: 0],
    "sasl.jaas.config": [JAAS],
    "sasl.login.connect.timeout.ms": [1000],
    "sasl.login.read.timeout.ms": [1000],
    "sasl.mechanism": ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"],
    "sasl.oauthbearer.client.credentials.client.id": ["a"],
    "sasl.oauthbearer.client.credentials.client.secret": ["b"],
    "sasl.oauthbearer.scope": ["kafka"],
    "sasl.oauthbearer.token.callback": [lambda: "token"],
    "sasl.oauthbearer.token.endpoint.url": ["https://login.example/token"],
    "sasl.password": ["b"],
    "sasl.username": ["a"],
    "ssl.cipher.suites": ["ECDHE-RSA-AES128-GCM-SHA256"],
    "ssl.key.password": ["secret"],
    "ssl.keystore.password": ["secret"],
    "ssl.truststore.password": ["secret"],
    "transactional.id": ["billing-1"],
    "value.deserializer": ["json"],
    "value.serializer": [str],
}
GROUP: Settings = {"group.id": "billing"}
NEEDED: dict[str, Settings] = {
    "auto.commit.interval.ms": GROUP,
    "enable.auto.commit": GROUP,
    "group.instance.id": GROUP,
    "group.protocol": GROUP,
    "group.remote.assignor": GROUP | {"group.protocol": "consumer"},
    "heartbeat.interval.ms": GROUP,
    "max.poll.interval.ms": GROUP,
    "partition.assignment.strategy": GROUP,
    "session.timeout.ms": GROUP,
    "transaction.timeout.ms": {"transactional.id": "billing-2"},
    "compression.gzip.level": {"compression.type": "gzip"},
    "compression.lz4.level": {"compression.type": "lz4"},
    "compression.zstd.level": {"compression.type": "zstd"},
    "sasl.jaas.config": {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"},
    "security.protocol": PLAIN,
}


def _listed() -> dict[str, list[tuple[str, str]]]:
    """The settings of each table of the page with their defaults, by its title."""
    found: dict[str, list[tuple[str, str]]] = {}
    title = ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("#"):
            title = line.lstrip("# ")
        elif row := re.fullmatch(r"\| `([a-z.]+)` \| (?:`(.*)`)? \| .*\|", line):
            found.setdefault(title, []).append((row[1], row[2] or ""))
    return found


LISTED = _listed()


def _settings(*titles: str) -> list[Any]:
    """Client, setting and value for what stands below these titles, and below those of the clients themselves."""
    found = []
    for client, kind in KINDS.items():
        declared = {one.name: one for one in settings_of(kind).values()}
        for name, default in [row for title in (*titles, client) if title in LISTED for row in LISTED[title]]:
            if (name in dict(LISTED[SECURITY])) != (SECURITY in titles):
                continue
            check = declared[name].check
            values = VALUES.get(name) or list(check.choices if check is not None else ()) or [default]
            for number, value in enumerate(values):
                found.append(pytest.param(kind, name, value, id=f"{client}-{name}-{number}"))
    return found


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker({"group.initial.rebalance.delay.ms": "0"}) as broker:
        broker.create_topic(TOPIC)
        yield broker


async def _produce(settings: Settings) -> None:
    async with AsyncProducer[Any, Any](config=settings) as producer:
        value: object = "value" if "value.serializer" in settings else b"value"
        key: object = "key" if "key.serializer" in settings else b"key"
        if "transactional.id" in settings:
            await producer.init_transactions()
            async with producer.transaction():
                producer.send(TOPIC, value, key)
        else:
            producer.send(TOPIC, value, key)
            await producer.flush()


async def _consume(settings: Settings) -> None:
    async with AsyncConsumer[Any, Any](config=settings) as consumer:
        if "group.id" in settings:
            consumer.subscribe([TOPIC])
        else:
            consumer.assign([(TOPIC, 0, 0)])
        await consumer.poll()


async def _administer(settings: Settings) -> None:
    async with AsyncAdmin(config=settings) as admin:
        await admin.describe_cluster()


@pytest.mark.parametrize(("kind", "name", "value"), _settings(COMMON))
def test_a_client_with_the_setting_works(
    kind: type[ClientConfig], name: str, value: object, broker: TestBroker
) -> None:
    work = {ProducerConfig: _produce, ConsumerConfig: _consume, AdminConfig: _administer}[kind]
    value = broker.bootstrap_servers if name == "bootstrap.servers" else value
    assert value != "", f"give {name} a value in VALUES"
    asyncio.run(work({"bootstrap.servers": broker.bootstrap_servers} | NEEDED.get(name, {}) | {name: value}))


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def identity(authority: Authority) -> Identity:
    return authority.issue("client")


def _tls(authority: Path, identity: Identity) -> dict[str, Settings]:
    """The settings that name keys and certificates, each with what it needs."""
    key, certificate = identity.key, identity.certificate
    texts: Settings = {"ssl.keystore.key": key.read_text(), "ssl.keystore.certificate.chain": certificate.read_text()}
    files: Settings = {"ssl.certificate.location": str(identity.both)}
    return {
        "ssl.ca.location": {"ssl.ca.location": str(authority)},
        "ssl.truststore.location": {"ssl.truststore.location": str(authority)},
        "ssl.truststore.certificates": {"ssl.truststore.certificates": authority.read_text()},
        "ssl.keystore.location": {"ssl.keystore.location": str(identity.both)},
        "ssl.certificate.location": files,
        "ssl.key.location": {"ssl.certificate.location": str(certificate), "ssl.key.location": str(key)},
        "ssl.key.password": files,
        **dict.fromkeys(texts, texts),
    }


@pytest.mark.parametrize(("kind", "name", "value"), _settings(SECURITY))
def test_a_client_with_the_setting_can_connect_safely(
    kind: type[ClientConfig], name: str, value: object, authority: Authority, identity: Identity
) -> None:
    settings: Settings = {"bootstrap.servers": "localhost:9092"}
    if name.startswith("ssl."):
        pems = _tls(authority.certificate, identity).get(name, {})
        settings |= {"security.protocol": "SSL"} | pems | ({} if name in pems else {name: value})
        assert settings[name] != "" or name == "ssl.endpoint.identification.algorithm", f"give {name} a value"
    else:
        assert value != "", f"give {name} a value in VALUES"
        is_of_tokens = name.startswith(("sasl.oauthbearer", "sasl.login"))
        settings |= NEEDED.get(name, BEARER if is_of_tokens else PLAIN) | {name: value}

    async def guard() -> None:
        Guard(resolve(kind, config=settings), SystemClock(), SystemIds())

    asyncio.run(guard())


def test_what_the_page_lists_as_refused_raises() -> None:
    of_kafka = {name for name, _ in _rows("Settings of Kafka's Java clients")}
    of_others = _rows("Settings of confluent-kafka, kafka-python and aiokafka")
    assert {"interceptor.classes", "ssl.engine.factory.class"} <= of_kafka
    assert {"consumer_timeout_ms", "enable.partition.eof", "on_delivery", "ssl_context"} <= {n for n, _ in of_others}
    for name, clients in [*_rows("Settings of Kafka's Java clients"), *of_others]:
        for kind in KINDS.values():
            if clients == "all" or kind.__name__.removesuffix("Config").lower() in clients:
                with pytest.raises(ConfigError, match=f"{re.escape(repr(name))}|{re.escape(name)} cannot be used"):
                    resolve(kind, "localhost:9092", {name: "x"})


def _rows(title: str) -> list[tuple[str, str]]:
    """Name and clients of the settings in a table of what is refused."""
    text = PAGE.read_text().partition(f"### {title}\n")[2].partition("\n#")[0]
    return re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", text, re.M)
