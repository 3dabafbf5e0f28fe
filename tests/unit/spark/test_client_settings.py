"""The `kafka.*` options of a data source: which settings they give, and which are refused with what advice."""

from pathlib import Path

import pytest

from ottla.client.config import AdminConfig, ConsumerConfig, ProducerConfig, resolve
from ottla.client.errors import ConfigError
from ottla.spark.client_settings import Role, client_settings

_SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}


def test_names_come_in_any_case_and_only_those_of_kafka_are_taken() -> None:
    settings = client_settings(
        {"Kafka.Bootstrap.SERVERS": "a:1,b:2", "KAFKA.linger.ms": "7", "topic": "t"}, role="sink"
    )
    assert settings == {"bootstrap.servers": "a:1,b:2", "linger.ms": "7"}
    assert resolve(ProducerConfig, config=settings).linger_ms == 7


@pytest.mark.parametrize("role", ["source", "sink", "admin"])
def test_the_brokers_have_to_be_named(role: Role) -> None:
    with pytest.raises(ConfigError, match=r"kafka\.bootstrap\.servers is missing"):
        client_settings({"topic": "t"}, role=role)


@pytest.mark.parametrize(
    ("role", "name", "advice"),
    [
        ("source", "auto.offset.reset", "startingOffsets"),
        ("source", "key.deserializer", "DataFrame functions"),
        ("source", "value.deserializer", "DataFrame functions"),
        ("source", "enable.auto.commit", "checkpoint"),
        ("source", "interceptor.classes", "Java class"),
        ("sink", "key.serializer", "DataFrame functions"),
        ("sink", "value.serializer", "DataFrame functions"),
        ("sink", "interceptor.classes", "Java class"),
        ("sink", "partitioner.class", "column named partition"),
        ("sink", "transactional.id", "deliveryGuarantee"),
    ],
)
def test_what_is_refused_says_what_to_do(role: Role, name: str, advice: str) -> None:
    with pytest.raises(ConfigError, match=rf"option kafka\.{name} is not supported: .*{advice}"):
        client_settings(_SERVERS | {f"kafka.{name.upper()}": "x"}, role=role)


def test_a_value_that_is_not_allowed_is_named_as_the_option() -> None:
    with pytest.raises(ConfigError, match=r"^option kafka\.acks cannot be 'some'"):
        client_settings(_SERVERS | {"kafka.acks": "some"}, role="sink")
    with pytest.raises(ConfigError, match=r"kafka\.\* options: there is no setting 'lingr\.ms': did you mean"):
        client_settings(_SERVERS | {"kafka.lingr.ms": "1"}, role="sink")


def test_security_is_passed_on() -> None:
    security = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required username=a;",
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": "trust.p12",
        "ssl.truststore.password": "secret",
    }
    options = _SERVERS | {f"kafka.{name}": value for name, value in security.items()}
    for role, kind in (("source", ConsumerConfig), ("sink", ProducerConfig), ("admin", AdminConfig)):
        settings = client_settings(options, role=role)  # type: ignore[arg-type]  # mypy sees a str in the loop
        assert {name: settings[name] for name in security} == security
        assert resolve(kind, config=settings).sasl_mechanism == "SCRAM-SHA-512"


def test_a_java_key_store_is_refused_with_the_command_that_converts_it(tmp_path: Path) -> None:
    store = tmp_path / "trust.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    with pytest.raises(ConfigError) as refusal:
        client_settings(_SERVERS | {"kafka.ssl.truststore.location": str(store)}, role="source")
    assert f"keytool -importkeystore -srckeystore {store} -destkeystore {tmp_path / 'trust.p12'}" in str(refusal.value)
    assert "kafka.ssl.truststore.type to PKCS12" in str(refusal.value)


def test_an_admin_client_gets_what_it_has_and_leaves_the_rest_to_others() -> None:
    options = _SERVERS | {"kafka.linger.ms": "5", "kafka.fetch.min.bytes": "9", "kafka.request.timeout.ms": "1000"}
    settings = client_settings(options, role="admin")
    assert settings == {"bootstrap.servers": "localhost:9092", "request.timeout.ms": "1000"}


def test_settings_that_only_java_has_do_no_harm() -> None:
    settings = client_settings(_SERVERS | {"kafka.ssl.provider": "x", "kafka.client.dns.lookup": "y"}, role="source")
    assert resolve(ConsumerConfig, config=settings).bootstrap_servers == ("localhost:9092",)
