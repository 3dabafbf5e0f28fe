"""Settings of brokers that are changed while they run: layers, sources, and what cannot be changed."""

from collections.abc import Iterator

import pytest
from tests.unit.broker.api.config_questions import (
    ALL_BROKERS,
    APPEND,
    BROKER,
    DELETE,
    FROM_ALL_BROKERS,
    FROM_BROKER,
    FROM_DEFAULT,
    FROM_TOPIC,
    SET,
    SUBTRACT,
    THIS_BROKER,
    TOPIC,
    by_name,
    change,
    describe,
    described,
    eventually,
    layers,
    replace_all,
)
from tests.unit.broker.api.questions import create_topic
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode

OK, BAD_REQUEST, BAD_CONFIG = ErrorCode.NONE, ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG
KEY, TOPIC_KEY, DEFAULT = "log.index.interval.bytes", "index.interval.bytes", "4096"
OF_ONE_BROKER = "sasl.kerberos.min.time.before.relogin"
CHANGED = (
    KEY,
    "log.cleanup.policy",
    "no.such.key",
    "max.connections.per.ip",
    "log.segment.bytes",
    "num.io.threads",
    "config.providers",
)


@pytest.fixture(autouse=True)
def clean(client: WireClient) -> Iterator[None]:
    """The broker is shared: each test gives back the settings it found."""
    yield
    for name in (THIS_BROKER, ALL_BROKERS):
        assert change(client, BROKER, name, *((key, DELETE, None) for key in CHANGED)) == OK
    assert change(client, BROKER, THIS_BROKER, (OF_ONE_BROKER, DELETE, None)) == OK
    eventually(lambda: {source_of(client, key) for key in (*CHANGED, OF_ONE_BROKER)} - {None}, {FROM_DEFAULT})


def source_of(client: WireClient, key: str) -> int | None:
    found = described(client, BROKER, THIS_BROKER, key)
    return None if found is None else found[1]


def test_the_nearest_layer_wins(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    default = (KEY, DEFAULT, FROM_DEFAULT)
    assert layers(client, BROKER, THIS_BROKER, KEY) == [default]

    assert change(client, BROKER, ALL_BROKERS, (KEY, SET, "5000")) == OK
    for_all = (KEY, "5000", FROM_ALL_BROKERS)
    eventually(lambda: layers(client, BROKER, THIS_BROKER, KEY), [for_all, default])
    assert described(client, BROKER, THIS_BROKER, KEY) == ("5000", FROM_ALL_BROKERS)
    assert layers(client, TOPIC, topic, TOPIC_KEY) == [for_all, default]
    assert described(client, TOPIC, topic, TOPIC_KEY) == ("5000", FROM_ALL_BROKERS)

    assert change(client, BROKER, THIS_BROKER, (KEY, SET, "6000")) == OK
    own = (KEY, "6000", FROM_BROKER)
    eventually(lambda: layers(client, BROKER, THIS_BROKER, KEY), [own, for_all, default])
    assert described(client, TOPIC, topic, TOPIC_KEY) == ("6000", FROM_BROKER)

    assert change(client, TOPIC, topic, (TOPIC_KEY, SET, "7000")) == OK
    of_topic = (TOPIC_KEY, "7000", FROM_TOPIC)
    eventually(lambda: layers(client, TOPIC, topic, TOPIC_KEY), [of_topic, own, for_all, default])

    assert replace_all(client, BROKER, THIS_BROKER, []) == OK
    assert change(client, TOPIC, topic, (TOPIC_KEY, DELETE, None)) == OK
    eventually(lambda: layers(client, TOPIC, topic, TOPIC_KEY), [for_all, default])
    assert change(client, BROKER, ALL_BROKERS, (KEY, DELETE, None)) == OK
    eventually(lambda: described(client, TOPIC, topic, TOPIC_KEY), (DEFAULT, FROM_DEFAULT))


def test_what_is_set_for_all_brokers(client: WireClient) -> None:
    assert change(client, BROKER, ALL_BROKERS, (KEY, SET, "5000")) == OK
    assert change(client, BROKER, THIS_BROKER, (KEY, SET, "6000")) == OK
    eventually(lambda: described(client, BROKER, THIS_BROKER, KEY), ("6000", FROM_BROKER))
    eventually(lambda: KEY in by_name(describe(client, BROKER, ALL_BROKERS)), True)
    configs = by_name(describe(client, BROKER, ALL_BROKERS, synonyms=True))
    assert "num.partitions" not in configs
    config = configs[KEY]
    assert (config.value, config.config_source, config.read_only) == ("5000", FROM_ALL_BROKERS, False)
    assert [(synonym.value, synonym.source) for synonym in config.synonyms] == [("5000", FROM_ALL_BROKERS)]


def test_new_topics_get_the_new_defaults(client: WireClient, topic: str) -> None:
    assert change(client, BROKER, ALL_BROKERS, ("log.segment.bytes", SET, "2000000")) == OK
    eventually(lambda: source_of(client, "log.segment.bytes"), FROM_ALL_BROKERS)
    create_topic(client, topic)
    assert described(client, TOPIC, topic, "segment.bytes") == ("2000000", FROM_ALL_BROKERS)


def test_lists_of_brokers(client: WireClient) -> None:
    key = "log.cleanup.policy"
    assert change(client, BROKER, ALL_BROKERS, (key, APPEND, "compact")) == OK
    eventually(lambda: described(client, BROKER, ALL_BROKERS, key), ("delete,compact", FROM_ALL_BROKERS))
    assert change(client, BROKER, ALL_BROKERS, (key, SUBTRACT, "delete")) == OK
    eventually(lambda: described(client, BROKER, ALL_BROKERS, key), ("compact", FROM_ALL_BROKERS))
    assert change(client, BROKER, ALL_BROKERS, (KEY, APPEND, "1")) == BAD_CONFIG
    assert change(client, BROKER, THIS_BROKER, (KEY, SUBTRACT, "1")) == BAD_CONFIG


@pytest.mark.parametrize("name", [THIS_BROKER, ALL_BROKERS])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num.partitions", "3"),
        ("node.id", "7"),
        ("broker.id", "7"),
        ("log.dirs", "/tmp"),
        ("log.retention.hours", "3"),
        ("log.roll.hours", "3"),
        ("auto.create.topics.enable", "false"),
        ("connections.max.idle.ms", "5"),
        ("broker.heartbeat.interval.ms", "5"),
        ("ssl.keystore.type", "PEM"),
        ("authorizer.class.name", "x"),
        ("num.io.threads", "0"),
        ("num.io.threads", "x"),
        ("group.coordinator.cached.buffer.max.bytes", "524287"),
        (KEY, "many"),
        (KEY, "-1"),
        ("max.connections.per.ip", "x"),
        ("log.cleanup.policy", "shred"),
    ],
)
def test_what_cannot_be_changed(client: WireClient, name: str, key: str, value: str) -> None:
    before = described(client, BROKER, THIS_BROKER, key)
    assert change(client, BROKER, name, ("log.segment.bytes", SET, "2000000"), (key, SET, value)) == BAD_REQUEST
    assert replace_all(client, BROKER, name, [(key, value)]) == BAD_REQUEST
    assert described(client, BROKER, THIS_BROKER, key) == before
    assert described(client, BROKER, THIS_BROKER, "log.segment.bytes") == ("1073741824", FROM_DEFAULT)


def test_only_the_broker_itself_and_all_brokers_can_be_named(client: WireClient) -> None:
    for name in ("2", "-1", "one", "1.0", " "):
        assert change(client, BROKER, name, (KEY, SET, "9")) == BAD_REQUEST
        assert replace_all(client, BROKER, name, [(KEY, "9")]) == BAD_REQUEST


def test_names_that_nobody_knows_are_kept(client: WireClient) -> None:
    assert change(client, BROKER, THIS_BROKER, ("no.such.key", SET, "x")) == OK
    eventually(lambda: described(client, BROKER, THIS_BROKER, "no.such.key"), (None, FROM_BROKER))
    config = by_name(describe(client, BROKER, THIS_BROKER, synonyms=True))["no.such.key"]
    assert (config.is_sensitive, config.read_only, config.config_type) == (True, True, 0)
    assert [(synonym.name, synonym.value) for synonym in config.synonyms] == [("no.such.key", None)]


@pytest.mark.parametrize("name", [THIS_BROKER, ALL_BROKERS])
def test_settings_that_are_not_used_are_kept_and_shown(client: WireClient, name: str) -> None:
    source = FROM_BROKER if name else FROM_ALL_BROKERS
    assert change(client, BROKER, name, ("num.io.threads", SET, "9"), ("config.providers", APPEND, "a")) == OK
    eventually(
        lambda: layers(client, BROKER, THIS_BROKER, "num.io.threads"),
        [("num.io.threads", "9", source), ("num.io.threads", "8", FROM_DEFAULT)],
    )
    config = by_name(describe(client, BROKER, THIS_BROKER))["num.io.threads"]
    assert (config.is_sensitive, config.read_only, config.config_type) == (False, False, 3)
    assert described(client, BROKER, THIS_BROKER, "config.providers") == ("a", source)


def test_settings_that_can_be_set_for_one_broker_only(client: WireClient) -> None:
    assert change(client, BROKER, ALL_BROKERS, (OF_ONE_BROKER, SET, "1000")) == BAD_REQUEST
    assert change(client, BROKER, THIS_BROKER, (OF_ONE_BROKER, SET, "1000")) == OK
    eventually(lambda: described(client, BROKER, THIS_BROKER, OF_ONE_BROKER), ("1000", FROM_BROKER))


@pytest.mark.usefixtures("ottla_only")
@pytest.mark.parametrize(
    "key",
    [
        "super.users",
        "principal.builder.class",
        "password.encoder.secret",
        "listener.name.plaintext.ssl.keystore.location",
        "listener.name.plaintext.max.connections",
        "cordoned.log.dirs",
        "sasl.enabled.mechanisms",
    ],
)
def test_settings_that_promise_what_there_is_not(client: WireClient, key: str) -> None:
    assert change(client, BROKER, THIS_BROKER, (key, SET, "x")) == BAD_REQUEST
    assert described(client, BROKER, THIS_BROKER, key) is None


@pytest.mark.usefixtures("ottla_only")
def test_the_log_names_settings_without_effect_once(client: WireClient, caplog: pytest.LogCaptureFixture) -> None:
    for value in ("9", "9", "10"):
        assert change(client, BROKER, THIS_BROKER, ("num.io.threads", SET, value), (KEY, SET, "5000")) == OK
    said = [record.getMessage() for record in caplog.records if "no effect" in record.getMessage()]
    assert said == ["the setting num.io.threads is kept, and has no effect on this broker"] * 2


def test_min_insync_replicas_is_set_for_all_brokers(client: WireClient, topic: str) -> None:
    key = "min.insync.replicas"
    create_topic(client, topic)
    expected = [(key, "1", FROM_ALL_BROKERS), (key, "1", FROM_DEFAULT)]
    assert layers(client, TOPIC, topic, key) == layers(client, BROKER, THIS_BROKER, key) == expected
    assert described(client, BROKER, ALL_BROKERS, key) == ("1", FROM_ALL_BROKERS)
    assert change(client, BROKER, ALL_BROKERS, (key, SET, "2")) == OK
    eventually(lambda: described(client, TOPIC, topic, key), ("2", FROM_ALL_BROKERS))
    assert change(client, BROKER, ALL_BROKERS, (key, SET, "1")) == OK
    eventually(lambda: described(client, TOPIC, topic, key), ("1", FROM_ALL_BROKERS))


def test_which_settings_are_read_only(client: WireClient) -> None:
    configs = by_name(describe(client, BROKER, THIS_BROKER))
    changeable = {"max.connections", "log.retention.ms", KEY, "message.max.bytes"}
    assert {name: configs[name].read_only for name in changeable} == dict.fromkeys(changeable, False)
    fixed = {"node.id", "num.partitions", "log.retention.hours", "log.dirs"}
    assert {name: configs[name].read_only for name in fixed} == dict.fromkeys(fixed, True)
