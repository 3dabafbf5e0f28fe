"""Settings: every refusal names the key and says what to do; what is not known is reported and ignored."""

import logging
import os
from pathlib import Path

import pytest

from ottla.broker.config import BrokerConfig, ConfigError
from ottla.broker.config_keys import BROKER_CONFIGS
from ottla.cluster.image import Endpoint
from ottla.groups.settings import GroupSettings


def refusal(**given: str) -> str:
    with pytest.raises(ConfigError) as caught:
        config({name.replace("_", "."): value for name, value in given.items()})
    return str(caught.value)


def config(given: dict[str, str]) -> BrokerConfig:
    return BrokerConfig.from_properties(given)


def test_nothing_needs_to_be_set() -> None:
    plain = config({})
    assert plain.node_id == 1
    assert plain.listeners == (Endpoint("PLAINTEXT", "localhost", 9092),)
    assert plain.advertised_listeners == ()
    assert plain.log_directories == (os.path.abspath("ottla-data"),)
    assert plain.num_partitions == 1
    assert plain.auto_create_topics
    assert plain.limits.request_bytes == 104_857_600


def test_every_key_is_documented_and_accepts_its_own_default() -> None:
    for key in BROKER_CONFIGS.values():
        assert key.documentation.endswith("."), key.name
        if key.default is not None:
            assert key.parse(key.format(key.default)) == key.default, key.name


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("num.partitions", "0", "at least 1"),
        ("num.partitions", "many", "a whole number"),
        ("num.partitions", "", "a whole number"),
        ("num.partitions", "2147483648", "fits in 32 bits"),
        ("node.id", "-1", "at least 0"),
        ("auto.create.topics.enable", "yes", "true or false"),
        ("socket.request.max.bytes", "0", "at least 1"),
        ("connections.max.idle.ms", "1.5", "a whole number"),
        ("fetch.max.bytes", "1023", "at least 1024"),
    ],
)
def test_a_bad_value_is_named_with_what_would_be_a_good_one(name: str, value: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config({name: value})
    assert name in str(caught.value)
    assert repr(value) in str(caught.value)
    assert expected in str(caught.value)


@pytest.mark.parametrize("name", ["log.retention.hours", "retention.ms", "log.segment.bytes", "min.insync.replicas"])
def test_a_bad_default_for_topics_is_refused_at_the_start(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"(?s){name}.*") as caught:
        config({name: "a few"})
    assert "a few" in str(caught.value)


def test_broker_id_is_the_old_name_of_node_id() -> None:
    assert config({"broker.id": "7"}).node_id == 7


def test_unknown_names_are_reported_with_the_nearest_one(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        config({"num.partition": "3", "zookeeper.connect": "localhost:2181", "log.retention.hour": "1"})
    messages = [record.getMessage() for record in caplog.records]
    assert "num.partition is not used by this broker; did you mean num.partitions?" in messages
    assert "log.retention.hour is not used by this broker; did you mean log.retention.hours?" in messages
    assert "zookeeper.connect is not used by this broker" in messages


def test_known_names_are_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        config({"num.partitions": "3", "log.retention.hours": "24", "broker.id": "2", "segment.ms": "1000"})
    assert caplog.records == []


def test_several_listeners() -> None:
    both = config(
        {
            "listeners": "PLAINTEXT://localhost:9092, INTERNAL://[::1]:9093,OPEN://:0",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT,OPEN:PLAINTEXT",
            "advertised.listeners": "PLAINTEXT://broker-1.example:19092",
        }
    )
    assert both.listeners == (
        Endpoint("PLAINTEXT", "localhost", 9092),
        Endpoint("INTERNAL", "::1", 9093),
        Endpoint("OPEN", "", 0),
    )
    assert both.advertised_listeners == (Endpoint("PLAINTEXT", "broker-1.example", 19092),)


def test_listener_names_are_upper_case() -> None:
    assert config({"listeners": "plaintext://localhost:9092"}).listeners[0].name == "PLAINTEXT"


@pytest.mark.parametrize(
    "listener",
    [
        "localhost:9092",
        "PLAINTEXT://localhost",
        "PLAINTEXT://localhost:",
        "PLAINTEXT://localhost:port",
        "PLAINTEXT://localhost:-1",
        "PLAINTEXT://localhost:65536",
        "PLAINTEXT:localhost:9092",
        "://localhost:9092",
        "PLAINTEXT://localhost:²",
    ],
)
@pytest.mark.parametrize("name", ["listeners", "advertised.listeners"])
def test_a_listener_that_does_not_read_is_shown_an_example(name: str, listener: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config({name: listener})
    assert name in str(caught.value)
    assert listener in str(caught.value)
    assert "PLAINTEXT://host:port" in str(caught.value)


def test_no_listener_at_all() -> None:
    assert "listeners is empty" in refusal(listeners="")


def test_a_listener_name_cannot_be_used_twice() -> None:
    message = refusal(listeners="PLAINTEXT://localhost:1,plaintext://localhost:2")
    assert "listeners" in message
    assert "twice" in message


def test_an_advertised_listener_must_exist() -> None:
    message = refusal(
        advertised_listeners="OTHER://localhost:1", listener_security_protocol_map="PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT"
    )
    assert "advertised.listeners" in message
    assert "OTHER" in message
    assert "listeners" in message


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL", "SASL_PLAINTEXT", "HTTP"])
def test_security_protocols_that_are_not_spoken(protocol: str) -> None:
    message = refusal(listeners=f"{protocol}://localhost:9092")
    assert protocol in message
    assert "PLAINTEXT is what this broker speaks" in message


def test_the_protocol_of_a_listener_name_comes_from_the_map() -> None:
    internal = {"listeners": "INTERNAL://localhost:9092"}
    mapped = config({**internal, "listener.security.protocol.map": "INTERNAL:PLAINTEXT"})
    assert mapped.listeners == (Endpoint("INTERNAL", "localhost", 9092, "PLAINTEXT"),)
    with pytest.raises(ConfigError, match="INTERNAL"):
        config(internal)


@pytest.mark.parametrize("value", ["PLAINTEXT", "PLAINTEXT:", ":PLAINTEXT", "PLAINTEXT:PLAINTEXT,"])
def test_a_protocol_map_that_does_not_read(value: str) -> None:
    message = refusal(listener_security_protocol_map=value)
    assert "listener.security.protocol.map" in message
    assert "name:value" in message


def test_log_dirs_win_over_log_dir(tmp_path: Path) -> None:
    one, two, three = (str(tmp_path / name) for name in ("one", "two", "three"))
    assert config({"log.dir": one}).log_directories == (one,)
    assert config({"log.dir": one, "log.dirs": f"{two}, {three}"}).log_directories == (two, three)


def test_the_home_directory_can_be_named() -> None:
    assert config({"log.dir": "~/ottla"}).log_directories == (os.path.expanduser("~/ottla"),)


def test_limits_by_address() -> None:
    limits = config({"max.connections.per.ip": "5", "max.connections.per.ip.overrides": "127.0.0.1:100,::1:7"}).limits
    assert limits.connections_per_address == 5
    assert limits.connections_per_address_overrides == {"127.0.0.1": 100, "::1": 7}


@pytest.mark.parametrize("value", ["127.0.0.1:many", "127.0.0.1:-1", "127.0.0.1"])
def test_limits_by_address_that_do_not_read(value: str) -> None:
    with pytest.raises(ConfigError, match=r"max\.connections\.per\.ip\.overrides"):
        config({"max.connections.per.ip.overrides": value})


def test_nothing_is_served_over_http_unless_it_is_set() -> None:
    assert config({}).http_listeners == ()
    assert config({}).metrics_partitions
    assert config({"ottla.http.listeners": ""}).http_listeners == ()


def test_http_listeners() -> None:
    given = config({"ottla.http.listeners": "http://localhost:9644, HTTP://[::1]:0/,http://:9645"})
    assert given.http_listeners == (
        Endpoint("http", "localhost", 9644),
        Endpoint("http", "::1", 0),
        Endpoint("http", "", 9645),
    )
    assert not config({"ottla.metrics.partitions": "false"}).metrics_partitions


@pytest.mark.parametrize(
    "listener",
    [
        "localhost:9644",
        "https://localhost:9644",
        "http://localhost",
        "http://localhost:",
        "http://localhost:65536",
        "http://localhost:-1",
        "http://localhost:٣",
        "http://localhost/metrics:9644",
        "http:localhost:9644",
        "http://localhost:9644,",
    ],
)
def test_an_http_listener_that_does_not_read_is_shown_an_example(listener: str) -> None:
    message = refusal(ottla_http_listeners=listener)
    assert "ottla.http.listeners" in message
    assert "http://localhost:9644" in message


def test_minus_one_means_no_limit() -> None:
    limits = config({"queued.max.request.bytes": "-1", "connections.max.idle.ms": "-1"}).limits
    assert limits.queued_request_bytes > 2**60
    assert limits.idle_ms > 10**15


@pytest.mark.parametrize(
    ("properties", "names"),
    [
        ({"group.consumer.session.timeout.ms": "44999"}, "group.consumer.min.session.timeout.ms"),
        ({"group.consumer.max.heartbeat.interval.ms": "4000"}, "group.consumer.min.heartbeat.interval.ms"),
        ({"group.consumer.assignment.interval.ms": "20000"}, "group.consumer.max.assignment.interval.ms"),
        (
            {"group.consumer.heartbeat.interval.ms": "50000", "group.consumer.max.heartbeat.interval.ms": "60000"},
            "group.consumer.session.timeout.ms",
        ),
        ({"group.consumer.migration.policy": "sideways"}, "group.consumer.migration.policy"),
        ({"group.consumer.assignors": ""}, "group.consumer.assignors"),
        ({"offsets.retention.minutes": "0"}, "offsets.retention.minutes"),
    ],
)
def test_settings_of_groups_must_fit_together(properties: dict[str, str], names: str) -> None:
    with pytest.raises(ConfigError, match=names):
        BrokerConfig.from_properties(properties)


def test_settings_of_groups_are_named_like_their_keys() -> None:
    given = {
        "offsets.retention.minutes": "2",
        "group.max.size": "7",
        "group.consumer.assignors": "range",
        "group.consumer.migration.policy": "Upgrade",
    }
    groups = BrokerConfig.from_properties(given).groups
    assert (groups.offsets_retention_ms, groups.group_max_size) == (120_000, 7)
    assert groups.group_consumer_assignors == ("range",)
    assert groups.group_consumer_migration_policy == "upgrade"
    assert BrokerConfig.from_properties({}).groups == GroupSettings()
