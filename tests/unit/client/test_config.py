"""Settings: names, values, and which go together."""

import logging
from typing import Any

import pytest

from ottla.client.config import AdminConfig, ClientConfig, ConsumerConfig, ProducerConfig, parse_address, resolve
from ottla.client.config_settings import settings_of
from ottla.client.errors import ConfigError, OttlaError

SERVER = "localhost:9092"


def producer(**keywords: Any) -> ProducerConfig:
    return resolve(ProducerConfig, SERVER, None, keywords)


def consumer(**keywords: Any) -> ConsumerConfig:
    return resolve(ConsumerConfig, SERVER, None, keywords)


def test_dotted_names_keywords_and_texts_mean_the_same() -> None:
    wanted = producer(linger_ms=10, acks="all", enable_idempotence=True, compression_type="LZ4")
    dotted = {"linger.ms": "10", "acks": "-1", "enable.idempotence": "TRUE", "compression.type": " lz4 "}
    assert resolve(ProducerConfig, SERVER, dotted) == wanted
    assert resolve(ProducerConfig, None, {"bootstrap.servers": SERVER, **dotted}) == wanted
    assert producer(**{"linger.ms": 10, "acks": -1, "enable.idempotence": "true", "compression.type": "lz4"}) == wanted


def test_keywords_win_over_a_dictionary() -> None:
    assert resolve(ProducerConfig, SERVER, {"linger.ms": "10"}, {"linger_ms": 20}).linger_ms == 20


def test_aliases() -> None:
    config = producer(
        max_in_flight=3, partitioner=len, interceptors=[1], sasl_mechanisms="PLAIN", sasl_plain_username="a"
    )
    assert config.max_in_flight_requests_per_connection == 3
    assert config.partitioner_class is len
    assert config.interceptor_classes == [1]
    assert (config.sasl_mechanism, config.sasl_username) == ("PLAIN", "a")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("linger_msec", "linger_ms"),
        ("liner.ms", "linger.ms"),
        ("ack", "acks"),
        ("bootstrap_server", "bootstrap_servers"),
        ("enable.idempotent", "enable.idempotence"),
    ],
)
def test_a_misspelt_name_is_refused_with_the_nearest(name: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"did you mean '{meant}'"):
        resolve(ProducerConfig, SERVER, {name: "1"})


def test_a_name_that_is_like_no_other_is_refused() -> None:
    with pytest.raises(ConfigError, match="no setting 'zzz'"):
        producer(zzz=1)
    with pytest.raises(ConfigError, match="a string"):
        resolve(ProducerConfig, SERVER, {1: 2})  # type: ignore[dict-item]  # the mistake that is tested


@pytest.mark.parametrize(
    ("settings", "allowed"),
    [
        ({"linger_ms": -1}, "at least 0"),
        ({"linger_ms": "soon"}, "whole number"),
        ({"linger_ms": 1.5}, "whole number"),
        ({"linger_ms": True}, "whole number"),
        ({"linger_ms": None}, "whole number|at least"),
        ({"batch_size": 2**31}, "32 bits|at least"),
        ({"acks": 2}, "all"),
        ({"acks": "some"}, "all"),
        ({"enable_idempotence": "yes"}, "true or false"),
        ({"compression_type": "rar"}, "none, gzip, snappy, lz4, zstd"),
        ({"compression_gzip_level": 0}, "1 to 9"),
        ({"transactional_id": ""}, "not empty"),
        ({"security_protocol": "TLS"}, "PLAINTEXT, SSL"),
        ({"sasl_mechanism": "GSSAPI"}, "PLAIN, SCRAM"),
        ({"client_id": 5}, "a string"),
        ({"ssl_cipher_suites": 5}, "list of strings"),
        ({"sasl_login_refresh_window_factor": "nan"}, "from 0.5 to 1.0"),
        ({"sasl_login_refresh_window_factor": 2}, "from 0.5 to 1.0"),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_allowed(settings: dict[str, Any], allowed: str) -> None:
    with pytest.raises(ConfigError, match=allowed) as refused:
        producer(**settings)
    assert next(iter(settings)).replace("_", ".") in str(refused.value)
    assert isinstance(refused.value, OttlaError)
    assert isinstance(refused.value, ValueError)


def test_a_secret_is_not_in_its_refusal() -> None:
    with pytest.raises(ConfigError) as refused:
        producer(sasl_password=["s3cret"])
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    "text", ["earliest", "latest", "none", "by_duration:P1D", "by_duration:PT5M", "by_duration:P1DT2.5S"]
)
def test_where_to_begin_is_taken_as_kafka_takes_it(text: str) -> None:
    assert consumer(auto_offset_reset=text).auto_offset_reset == text


@pytest.mark.parametrize(
    "text", ["smallest", "by_duration:", "by_duration:P", "by_duration:PT", "by_duration:1D", "by_duration:-P1D"]
)
def test_where_to_begin_is_refused_as_kafka_refuses_it(text: str) -> None:
    with pytest.raises(ConfigError, match="earliest"):
        consumer(auto_offset_reset=text)


class TestIdempotence:
    def test_it_is_on_by_default(self) -> None:
        assert producer().enable_idempotence

    @pytest.mark.parametrize("settings", [{"acks": 1}, {"acks": 0}, {"retries": 0}])
    def test_settings_that_rule_it_out_turn_it_off(self, settings: dict[str, Any]) -> None:
        assert not producer(**settings).enable_idempotence

    @pytest.mark.parametrize("settings", [{"acks": 1}, {"retries": 0}, {"max_in_flight": 6}])
    def test_whoever_asks_for_it_is_told_what_rules_it_out(self, settings: dict[str, Any]) -> None:
        with pytest.raises(ConfigError, match=r"enable\.idempotence needs"):
            producer(enable_idempotence=True, **settings)

    def test_more_than_five_in_flight_needs_it_to_be_turned_off(self) -> None:
        with pytest.raises(ConfigError, match="at most 5"):
            producer(max_in_flight=6)
        assert producer(max_in_flight=6, enable_idempotence=False).max_in_flight_requests_per_connection == 6

    def test_transactions_need_it(self) -> None:
        for settings in ({"acks": 1}, {"enable_idempotence": False}):
            with pytest.raises(ConfigError, match=r"transactional\.id needs enable\.idempotence"):
                producer(transactional_id="t", **settings)


def test_the_delivery_timeout_covers_linger_and_request() -> None:
    with pytest.raises(ConfigError, match=r"at least linger\.ms"):
        producer(delivery_timeout_ms=1000)
    assert producer(request_timeout_ms=200_000).delivery_timeout_ms == 200_005
    assert producer(delivery_timeout_ms=1000, request_timeout_ms=900, linger_ms=100).delivery_timeout_ms == 1000


def test_a_consumer_without_a_group_commits_nothing() -> None:
    assert not consumer().enable_auto_commit
    assert consumer(group_id="g").enable_auto_commit
    with pytest.raises(ConfigError, match=r"needs group\.id"):
        consumer(enable_auto_commit=True)


def test_each_group_protocol_has_its_own_settings() -> None:
    with pytest.raises(ConfigError, match=r"group\.protocol=consumer"):
        consumer(group_id="g", group_remote_assignor="uniform")
    for name, given in (
        ("session_timeout_ms", 1000),
        ("heartbeat_interval_ms", 100),
        ("partition_assignment_strategy", "range"),
    ):
        with pytest.raises(ConfigError, match="is the broker's"):
            consumer(group_id="g", group_protocol="consumer", **{name: given})
    assert (
        consumer(group_id="g", group_protocol="CONSUMER", group_remote_assignor="uniform").group_protocol == "consumer"
    )


def test_a_reconnect_backoff_alone_does_not_grow() -> None:
    assert producer(reconnect_backoff_ms=70).reconnect_backoff_max_ms == 70
    assert producer(reconnect_backoff_ms=70, reconnect_backoff_max_ms=90).reconnect_backoff_max_ms == 90


def test_sasl_needs_a_mechanism() -> None:
    with pytest.raises(ConfigError, match=r"needs sasl\.mechanism"):
        producer(security_protocol="sasl_ssl")


@pytest.mark.parametrize(
    ("server", "address"),
    [
        ("localhost:9092", ("localhost", 9092)),
        ("10.0.0.1:1", ("10.0.0.1", 1)),
        ("[::1]:9092", ("::1", 9092)),
        ("PLAINTEXT://kafka.example:9093", ("kafka.example", 9093)),
    ],
)
def test_addresses_are_read(server: str, address: tuple[str, int]) -> None:
    assert parse_address(server) == address


@pytest.mark.parametrize(
    "server", ["localhost", "localhost:", ":9092", "localhost:0", "localhost:99999", "::1:9092", "h:x", "[::1]"]
)
def test_what_is_no_address_is_refused(server: str) -> None:
    with pytest.raises(ConfigError, match="host:port"):
        resolve(ProducerConfig, server)


@pytest.mark.parametrize("servers", [None, "", " , ", []])
def test_a_server_is_needed(servers: Any) -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers is missing"):
        resolve(ProducerConfig, servers)


def test_servers_come_as_a_text_or_a_list() -> None:
    for servers in ("a:1, b:2,a:1", ["a:1", "b:2"], (server for server in ("a:1", "b:2"))):
        assert resolve(AdminConfig, servers).bootstrap_servers == ("a:1", "b:2")


def test_what_means_nothing_here_is_accepted_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert producer(**{"metric.reporters": "com.example.Reporter", "fetch_min_bytes": 7}) == producer()
    assert "metric.reporters has no effect" in caplog.text
    assert "fetch_min_bytes has no effect here: it is a setting of the consumer" in caplog.text


@pytest.mark.parametrize(
    "name", ["ssl.engine.factory.class", "sasl.login.callback.handler.class", "bootstrap.controllers"]
)
def test_what_would_change_whom_a_client_trusts_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be used"):
        resolve(AdminConfig, SERVER, {name: "x"})


@pytest.mark.parametrize("kind", [ClientConfig, ProducerConfig, ConsumerConfig, AdminConfig])
def test_every_default_is_a_value_that_is_allowed(kind: type[ClientConfig]) -> None:
    config = kind()
    for name, found in settings_of(kind).items():
        assert name == found.field_name
        default = getattr(config, name)
        assert found.value_of(default) == default
        assert found.documentation.endswith(".")
