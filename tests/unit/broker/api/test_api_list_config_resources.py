"""ListConfigResources."""

import pytest
from tests.unit.broker.api.config_questions import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    SET,
    TOPIC,
    change,
    eventually,
)
from tests.unit.broker.api.questions import create_topic
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse


def listed(client: WireClient, *types: int, version: int = 1) -> list[tuple[int, str]]:
    request = ListConfigResourcesRequest(resource_types=list(types))
    answer = client.ask(request, ListConfigResourcesResponse, version)
    assert answer.error_code == ErrorCode.NONE
    return [(resource.resource_type, resource.resource_name) for resource in answer.config_resources]


def test_topics_and_brokers(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    topics = listed(client, TOPIC)
    assert (TOPIC, topic) in topics
    assert {kind for kind, _ in topics} == {TOPIC}
    assert listed(client, BROKER) == [(BROKER, "1")]
    assert {(TOPIC, topic), (BROKER, "1")} <= set(listed(client, BROKER, TOPIC, TOPIC))


def test_no_type_is_every_type(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    assert {(TOPIC, topic), (BROKER, "1")} <= set(listed(client))


def test_the_first_version_lists_client_metrics_only(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    assert change(client, CLIENT_METRICS, topic, ("interval.ms", SET, "200")) == ErrorCode.NONE
    eventually(lambda: (CLIENT_METRICS, topic) in listed(client, version=0), True)
    assert {kind for kind, _ in listed(client, version=0)} == {CLIENT_METRICS}
    assert (CLIENT_METRICS, topic) in listed(client, CLIENT_METRICS, GROUP)


@pytest.mark.usefixtures("ottla_only")
def test_loggers_have_no_settings_here(client: WireClient) -> None:
    assert listed(client, BROKER_LOGGER) == []


@pytest.mark.parametrize("unknown", [0, 1, 3, 64, -1])
def test_types_that_do_not_exist(client: WireClient, unknown: int) -> None:
    request = ListConfigResourcesRequest(resource_types=[TOPIC, unknown])
    answer = client.ask(request, ListConfigResourcesResponse)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert answer.config_resources == []
