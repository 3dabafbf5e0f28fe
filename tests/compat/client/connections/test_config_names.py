"""Every setting of Kafka's own clients is known here, with the same default, or is left out on purpose."""

from pathlib import Path

import pytest
from tests.peers.java import compile_java, run_java
from tests.peers.paths import KAFKA_LIBS, require_libs

from ottla.client.config import AdminConfig, ClientConfig, ConsumerConfig, ProducerConfig
from ottla.client.config_ignored import HARMLESS, REFUSED, REFUSED_BY_CONSUMERS
from ottla.client.config_settings import settings_of

SOURCE = Path(__file__).parents[2] / "java" / "client" / "ClientConfigs.java"
KINDS: dict[str, type[ClientConfig]] = {"producer": ProducerConfig, "consumer": ConsumerConfig, "admin": AdminConfig}

OTHER_DEFAULTS = {
    # Left to the operating system, which sizes them by what the connection can carry.
    "send.buffer.bytes",
    "receive.buffer.bytes",
    # Java makes a name of its own for each client; ours are fixed.
    "client.id",
    # Kerberos is not supported: a mechanism has to be named.
    "sasl.mechanism",
    # Classes in Java.
    "partition.assignment.strategy",
}


@pytest.fixture(scope="module")
def of_java() -> list[tuple[str, str, str]]:
    libs = require_libs(KAFKA_LIBS, "kafka")
    done = run_java("ClientConfigs", [], libs, compile_java([SOURCE], libs))
    assert done.returncode == 0, done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    return [(client, name, default) for client, name, _, default in lines]


def test_every_name_is_known_or_left_out_on_purpose(of_java: list[tuple[str, str, str]]) -> None:
    known = {client: {one.name for one in settings_of(kind).values()} for client, kind in KINDS.items()}
    known["consumer"] |= set(REFUSED_BY_CONSUMERS)
    missing = {
        (client, name)
        for client, name, _ in of_java
        if name not in known[client] and name not in HARMLESS and name not in REFUSED
    }
    assert missing == set()


def test_every_default_is_the_same(of_java: list[tuple[str, str, str]]) -> None:
    different = {}
    for client, name, default in of_java:
        found = {one.name: one for one in settings_of(KINDS[client]).values()}.get(name)
        if found is None or name in OTHER_DEFAULTS:
            continue
        ours = getattr(KINDS[client](), found.field_name)
        parsed = None if default == "null" else found.value_of(default)
        if (parsed or None) != (ours or None):
            different[client, name] = (default, ours)
    assert different == {}


def test_what_is_left_out_is_something_that_kafka_has(of_java: list[tuple[str, str, str]]) -> None:
    names = {name for _, name, _ in of_java}
    assert sorted((HARMLESS | set(REFUSED)) - names) == []
