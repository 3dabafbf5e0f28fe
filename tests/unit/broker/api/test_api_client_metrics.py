"""Subscriptions to client metrics: set, described, listed and deleted."""

from pathlib import Path

import pytest
from tests.broker_thread import BrokerThread
from tests.unit.broker.api.config_questions import (
    APPEND,
    CLIENT_METRICS,
    DELETE,
    FROM_DEFAULT,
    SET,
    by_name,
    change,
    describe,
    described,
    eventually,
    layers,
    replace_all,
)
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse

INTERVAL, METRICS, MATCH = "interval.ms", "metrics", "match"
FROM_CLIENT_METRICS = 7
OK, BAD_REQUEST, BAD_CONFIG = ErrorCode.NONE, ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG


def listed(client: WireClient) -> set[str]:
    answer = client.ask(ListConfigResourcesRequest(resource_types=[CLIENT_METRICS]), ListConfigResourcesResponse)
    return {resource.resource_name for resource in answer.config_resources}


def test_a_subscription_is_set_described_listed_and_deleted(client: WireClient, topic: str) -> None:
    name = f"subscription {topic}/ü"
    matching = "client_id=app-.*,client_software_name=apache-kafka-java"
    assert change(client, CLIENT_METRICS, name, (INTERVAL, SET, "1000"), (MATCH, SET, matching)) == OK
    eventually(lambda: described(client, CLIENT_METRICS, name, INTERVAL), ("1000", FROM_CLIENT_METRICS))
    assert layers(client, CLIENT_METRICS, name, MATCH) == [(MATCH, matching, FROM_CLIENT_METRICS)]
    assert layers(client, CLIENT_METRICS, name, METRICS) == []
    assert name in listed(client)
    assert replace_all(client, CLIENT_METRICS, name, [(METRICS, "org.apache.kafka.producer.,*")]) == OK
    eventually(lambda: described(client, CLIENT_METRICS, name, INTERVAL), ("300000", FROM_DEFAULT))
    assert described(client, CLIENT_METRICS, name, METRICS) == ("org.apache.kafka.producer.,*", FROM_CLIENT_METRICS)
    assert change(client, CLIENT_METRICS, name, (METRICS, DELETE, None)) == OK
    eventually(lambda: name in listed(client), False)


def test_a_subscription_that_is_not_there_has_defaults(client: WireClient, topic: str) -> None:
    configs = by_name(describe(client, CLIENT_METRICS, topic))
    assert {name: (config.value, config.config_type) for name, config in configs.items()} == {
        INTERVAL: ("300000", 3),
        MATCH: ("", 7),
        METRICS: ("", 7),
    }


@pytest.mark.parametrize(
    ("key", "operation", "value", "code"),
    [
        (INTERVAL, SET, "99", BAD_REQUEST),
        (INTERVAL, SET, "3600001", BAD_REQUEST),
        (INTERVAL, SET, "x", BAD_CONFIG),
        ("no.such.key", SET, "1", BAD_REQUEST),
        (METRICS, APPEND, "a", BAD_CONFIG),
        (METRICS, SET, "a,", BAD_CONFIG),
        (MATCH, SET, "client_id", BAD_CONFIG),
        (MATCH, SET, "client_id=a=b", BAD_CONFIG),
        (MATCH, SET, "client_id=[", BAD_CONFIG),
        (MATCH, SET, "no_such_selector=a", BAD_CONFIG),
    ],
)
def test_what_a_subscription_may_not_set(
    client: WireClient, topic: str, key: str, operation: int, value: str, code: ErrorCode
) -> None:
    assert change(client, CLIENT_METRICS, topic, (key, operation, value)) == code
    assert topic not in listed(client)


def test_a_subscription_has_a_name(client: WireClient) -> None:
    assert change(client, CLIENT_METRICS, "", (INTERVAL, SET, "1000")) == BAD_REQUEST
    assert replace_all(client, CLIENT_METRICS, "", [(INTERVAL, "1000")]) == BAD_REQUEST
    assert describe(client, CLIENT_METRICS, "").error_code == BAD_REQUEST


def test_a_subscription_outlives_the_broker_and_the_log_says_that_it_has_no_effect(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with BrokerThread(tmp_path) as running, WireClient(running.port) as client:
        assert change(client, CLIENT_METRICS, "mine", (INTERVAL, SET, "1000")) == OK
    said = [record.getMessage() for record in caplog.records if "no effect" in record.getMessage()]
    assert said == ["the subscription to client metrics mine is kept, and has no effect here"]
    with BrokerThread(tmp_path) as running, WireClient(running.port) as client:
        assert listed(client) == {"mine"}
        assert described(client, CLIENT_METRICS, "mine", INTERVAL) == ("1000", FROM_CLIENT_METRICS)
