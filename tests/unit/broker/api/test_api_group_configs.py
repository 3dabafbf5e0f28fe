"""Settings of groups through DescribeConfigs, IncrementalAlterConfigs, AlterConfigs and ListConfigResources."""

import pytest
from tests.unit.broker.api.config_questions import (
    APPEND,
    DELETE,
    FROM_DEFAULT,
    GROUP,
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

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
FROM_GROUP = 8
OK = ErrorCode.NONE


def listed(client: WireClient) -> set[str]:
    answer = client.ask(ListConfigResourcesRequest(resource_types=[GROUP]), ListConfigResourcesResponse)
    return {resource.resource_name for resource in answer.config_resources}


def test_a_group_that_sets_nothing_goes_by_the_broker(client: WireClient, topic: str) -> None:
    configs = by_name(describe(client, GROUP, topic, synonyms=True))
    assert (configs[SESSION].value, configs[SESSION].read_only) == ("45000", False)
    assert configs["consumer.assignment.interval.ms"].value == "1000"
    assert layers(client, GROUP, topic, HEARTBEAT) == [(f"group.{HEARTBEAT}", "5000", FROM_DEFAULT)]


def test_settings_of_a_group(client: WireClient, topic: str) -> None:
    name = f"group {topic}/ü"
    assert change(client, GROUP, name, (SESSION, SET, "50000"), (HEARTBEAT, SET, "6000")) == OK
    eventually(lambda: described(client, GROUP, name, SESSION), ("50000", FROM_GROUP))
    eventually(lambda: described(client, GROUP, name, HEARTBEAT), ("6000", FROM_GROUP))
    assert layers(client, GROUP, name, SESSION) == [
        (SESSION, "50000", FROM_GROUP),
        (f"group.{SESSION}", "45000", FROM_DEFAULT),
    ]
    assert name in listed(client)
    assert replace_all(client, GROUP, name, [(HEARTBEAT, "7000")]) == OK
    eventually(lambda: described(client, GROUP, name, SESSION), ("45000", FROM_DEFAULT))
    eventually(lambda: described(client, GROUP, name, HEARTBEAT), ("7000", FROM_GROUP))
    assert change(client, GROUP, name, (HEARTBEAT, DELETE, None)) == OK
    eventually(lambda: name in listed(client), False)


def test_what_a_group_may_not_set(client: WireClient, topic: str) -> None:
    for wrong in ((SESSION, SET, "1"), (SESSION, SET, "x"), ("no.such.key", SET, "1"), (HEARTBEAT, APPEND, "6000")):
        assert change(client, GROUP, topic, wrong) == ErrorCode.INVALID_CONFIG, wrong
    assert change(client, GROUP, "", (SESSION, SET, "50000")) == ErrorCode.INVALID_REQUEST
    assert describe(client, GROUP, "").error_code == ErrorCode.INVALID_REQUEST
    assert change(client, GROUP, topic, (SESSION, SET, "50000"), validate_only=True) == OK
    assert topic not in listed(client)


RESET, SHARE_SESSION = "share.auto.offset.reset", "share.session.timeout.ms"


@pytest.mark.parametrize("value", ["earliest", "by_duration:PT1H", "by_duration:p1dt2h", "by_duration:PT2H-1M0.5S"])
def test_settings_of_groups_of_other_kinds_are_kept_and_shown(client: WireClient, topic: str, value: str) -> None:
    assert change(client, GROUP, topic, (RESET, SET, value), (SHARE_SESSION, SET, "50000")) == OK
    eventually(
        lambda: layers(client, GROUP, topic, RESET), [(RESET, value, FROM_GROUP), (RESET, "latest", FROM_DEFAULT)]
    )
    expected = [(SHARE_SESSION, "50000", FROM_GROUP), (f"group.{SHARE_SESSION}", "45000", FROM_DEFAULT)]
    assert layers(client, GROUP, topic, SHARE_SESSION) == expected
    assert change(client, GROUP, topic, (RESET, DELETE, None), (SHARE_SESSION, DELETE, None)) == OK


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((RESET, value) for value in ("none", "Earliest", "by_duration:", "by_duration:P", "by_duration:PT")),
        *((RESET, value) for value in ("by_duration:PT-1S", "by_duration:-PT1H", "by_duration:1H")),
        (SHARE_SESSION, "44999"),
        (SHARE_SESSION, "x"),
        ("share.isolation.level", "READ_COMMITTED"),
        ("share.renew.acknowledge.enable", "x"),
        ("share.delivery.count.limit", "11"),
        ("share.partition.max.record.locks", "4001"),
        ("streams.num.standby.replicas", "3"),
        ("streams.initial.rebalance.delay.ms", "-1"),
    ],
)
def test_what_groups_of_other_kinds_may_not_set(client: WireClient, topic: str, key: str, value: str) -> None:
    assert change(client, GROUP, topic, (key, SET, value)) == ErrorCode.INVALID_CONFIG


@pytest.mark.usefixtures("ottla_only")
def test_the_log_names_settings_of_groups_without_effect(
    client: WireClient, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert change(client, GROUP, topic, (RESET, SET, "earliest"), (SESSION, SET, "50000")) == OK
    assert change(client, GROUP, topic, (RESET, SET, "latest"), validate_only=True) == OK
    said = [record.getMessage() for record in caplog.records if "no effect" in record.getMessage()]
    assert said == [f"the setting {RESET} of group {topic} is kept, and has no effect here"]
