"""Settings that promise protection which is not there: the broker does not start with them, nor take them later."""

import logging
from pathlib import Path

import pytest
from tests.broker_thread import BrokerThread
from tests.unit.broker.api.config_questions import (
    ALL_BROKERS,
    BROKER,
    SET,
    THIS_BROKER,
    by_name,
    change,
    describe,
)
from tests.wire_client import WireClient

from ottla.broker.config import BrokerConfig, ConfigError
from ottla.broker.config_dynamic import DynamicConfig
from ottla.cluster.image import BrokerConfigs
from ottla.protocol.errors import ErrorCode

PROMISES = [
    ("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer", "access rules"),
    ("super.users", "User:admin", "access rules"),
    ("allow.everyone.if.no.acl.found", "false", "access rules"),
    ("sasl.enabled.mechanisms", "SCRAM-SHA-512", "authentication"),
    ("sasl.mechanism.inter.broker.protocol", "PLAIN", "authentication"),
    ("delegation.token.secret.key", "secret", "authentication"),
    ("connections.max.reauth.ms", "3600000", "authentication"),
    ("connection.failed.authentication.delay.ms", "1000", "authentication"),
    ("security.inter.broker.protocol", "SASL_SSL", "authentication"),
    ("security.providers", "a.Provider", "authentication"),
    ("principal.builder.class", "a.Builder", "authentication"),
    ("ssl.keystore.location", "/etc/kafka/keys.jks", "encryption"),
    ("ssl.keystore.password", "secret", "encryption"),
    ("ssl.client.auth", "required", "encryption"),
    ("ssl.principal.mapping.rules", "RULE:^CN=(.*?)$/$1/", "encryption"),
    ("listener.name.internal.ssl.keystore.location", "/etc/kafka/keys.jks", "encryption"),
    ("listener.name.internal.sasl.enabled.mechanisms", "PLAIN", "authentication"),
    ("listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config", "secret", "authentication"),
    ("listener.name.internal.principal.builder.class", "a.Builder", "authentication"),
    ("create.topic.policy.class.name", "a.Policy", "policies"),
    ("alter.config.policy.class.name", "a.Policy", "policies"),
    ("client.quota.callback.class", "a.Quota", "policies"),
    ("password.encoder.secret", "secret", "stored"),
    ("zookeeper.set.acl", "true", "stored"),
    ("zookeeper.ssl.client.enable", "true", "stored"),
]


@pytest.mark.parametrize(("name", "value", "promise"), PROMISES)
def test_a_promise_that_cannot_be_kept_ends_the_start(name: str, value: str, promise: str) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.from_properties({name: value})
    text = str(caught.value)
    assert text.startswith(f"{name} promises ")
    assert promise in text
    assert "Remove the settings" in text
    assert "secret" not in text.removeprefix(name)
    assert "\n" not in text


def test_all_of_them_are_named_at_once() -> None:
    given = {"super.users": "User:a", "ssl.client.auth": "requested", "authorizer.class.name": "a.B", "node.id": "2"}
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.from_properties(given)
    assert "authorizer.class.name, super.users promise access rules (ACLs)" in str(caught.value)
    assert "ssl.client.auth promises encryption (TLS)" in str(caught.value)
    assert "node.id" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("authorizer.class.name", ""),
        ("super.users", ""),
        ("ssl.client.auth", "none"),
        ("ssl.endpoint.identification.algorithm", ""),
        ("security.inter.broker.protocol", "PLAINTEXT"),
        ("connections.max.reauth.ms", "0"),
        ("listener.name.internal.connections.max.reauth.ms", "0"),
    ],
)
def test_what_asks_for_no_protection_is_taken(name: str, value: str) -> None:
    assert BrokerConfig.from_properties({name: value}).properties == {name: value}


def test_the_map_of_kafkas_own_properties_file_is_taken() -> None:
    """Its names that no listener has promise nothing."""
    every = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"
    given = {"listeners": "PLAINTEXT://localhost:9092", "listener.security.protocol.map": every}
    assert BrokerConfig.from_properties(given).listeners[0].security_protocol == "PLAINTEXT"
    with pytest.raises(ConfigError, match=r"SASL_SSL: PLAINTEXT is what this broker speaks"):
        BrokerConfig.from_properties(given | {"listeners": "PLAINTEXT://localhost:9092,SASL_SSL://localhost:9093"})
    with pytest.raises(ConfigError, match=r"the security protocol SSL"):
        BrokerConfig.from_properties({"listener.security.protocol.map": "PLAINTEXT:SSL"})


def test_nor_can_they_be_set_while_the_broker_runs(tmp_path: Path) -> None:
    with BrokerThread(tmp_path) as running, WireClient(running.port) as client:
        for name, value, _ in PROMISES:
            assert change(client, BROKER, ALL_BROKERS, (name, SET, value)) == ErrorCode.INVALID_REQUEST, name
            assert change(client, BROKER, THIS_BROKER, (name, SET, value)) == ErrorCode.INVALID_REQUEST, name
        assert running.broker.image.configs.defaults == {}
        assert not {name for name, _, _ in PROMISES} & by_name(describe(client, BROKER, THIS_BROKER)).keys()


def test_those_that_are_kept_from_before_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    settings = DynamicConfig(BrokerConfig.from_properties({}))
    with caplog.at_level(logging.ERROR):
        settings.update(BrokerConfigs({None: {"super.users": "User:a"}}, {}))
    (message,) = (record.getMessage() for record in caplog.records)
    assert "super.users promises access rules" in message
