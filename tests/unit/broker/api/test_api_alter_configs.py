"""IncrementalAlterConfigs and AlterConfigs of topics, and what both refuse."""

import pytest
from tests.unit.broker.api.config_questions import (
    ALL_BROKERS,
    APPEND,
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    DELETE,
    SET,
    SUBTRACT,
    THIS_BROKER,
    TOPIC,
    Change,
    change,
    described,
    eventually,
    incremental,
    own_settings,
    replace_all,
    resource,
)
from tests.unit.broker.api.questions import create_topic
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode

OK = ErrorCode.NONE
BAD_REQUEST, BAD_CONFIG = ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize("version", [0, 1])
def test_every_version_of_incremental_changes(client: WireClient, topic: str, version: int) -> None:
    create_topic(client, topic, configs={"retention.ms": "1000"})
    changes = resource(TOPIC, topic, ("flush.ms", SET, "7"), ("retention.ms", DELETE, None))
    assert incremental(client, changes, version=version) == [OK]
    eventually(lambda: own_settings(client, topic), {"flush.ms": "7"})


@pytest.mark.parametrize("version", [0, 1, 2])
def test_every_version_of_replacing_all(client: WireClient, topic: str, version: int) -> None:
    create_topic(client, topic, configs={"retention.ms": "1000", "segment.bytes": "2000000"})
    assert replace_all(client, TOPIC, topic, [("retention.ms", "2000"), ("flush.ms", "5")], version=version) == OK
    eventually(lambda: own_settings(client, topic), {"retention.ms": "2000", "flush.ms": "5"})
    assert replace_all(client, TOPIC, topic, [], version=version) == OK
    eventually(lambda: own_settings(client, topic), {})


def test_lists_are_added_to_and_taken_from(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    assert change(client, TOPIC, topic, ("cleanup.policy", APPEND, "compact")) == OK
    eventually(lambda: own_settings(client, topic), {"cleanup.policy": "delete,compact"})
    assert change(client, TOPIC, topic, ("cleanup.policy", APPEND, "compact,delete")) == OK
    assert change(client, TOPIC, topic, ("cleanup.policy", SUBTRACT, "delete,nothing")) == OK
    eventually(lambda: own_settings(client, topic), {"cleanup.policy": "compact"})
    throttled = "leader.replication.throttled.replicas"
    assert change(client, TOPIC, topic, (throttled, APPEND, "0:1"), ("cleanup.policy", DELETE, None)) == OK
    eventually(lambda: own_settings(client, topic), {throttled: "0:1"})
    assert change(client, TOPIC, topic, (throttled, APPEND, "1:1,0:1")) == OK
    eventually(lambda: own_settings(client, topic), {throttled: "0:1,1:1"})


REFUSED: list[tuple[tuple[Change, ...], ErrorCode]] = [
    ((("flush.ms", SET, "1"), ("retention.ms", SET, "soon")), BAD_CONFIG),
    ((("flush.ms", SET, "-1"),), BAD_CONFIG),
    ((("flush.ms", SET, "1"), ("no.such.key", SET, "1")), BAD_CONFIG),
    ((("log.retention.ms", SET, "1"),), BAD_CONFIG),
    ((("cleanup.policy", SET, "shred"),), BAD_CONFIG),
    ((("cleanup.policy", APPEND, "shred"),), BAD_CONFIG),
    ((("retention.ms", APPEND, "1"),), BAD_CONFIG),
    ((("retention.ms", SUBTRACT, "1"),), BAD_CONFIG),
    ((("no.such.key", APPEND, "1"),), BAD_CONFIG),
    ((("min.compaction.lag.ms", SET, "10"), ("max.compaction.lag.ms", SET, "5")), BAD_CONFIG),
    ((("remote.storage.enable", SET, "true"),), BAD_CONFIG),
    ((("flush.ms", SET, None),), BAD_REQUEST),
    ((("cleanup.policy", APPEND, None),), BAD_REQUEST),
    ((("flush.ms", SET, "1"), ("flush.ms", SET, "2")), BAD_REQUEST),
    ((("flush.ms", SET, "1"), ("flush.ms", DELETE, None)), BAD_REQUEST),
]


@pytest.mark.parametrize(("changes", "expected"), REFUSED)
@pytest.mark.parametrize("validate_only", [False, True])
def test_what_is_refused_changes_nothing(
    client: WireClient, topic: str, changes: tuple[Change, ...], expected: ErrorCode, validate_only: bool
) -> None:
    create_topic(client, topic, configs={"retention.ms": "1000"})
    assert change(client, TOPIC, topic, *changes, validate_only=validate_only) == expected
    assert own_settings(client, topic) == {"retention.ms": "1000"}


@pytest.mark.parametrize(
    ("configs", "expected"),
    [
        ([("flush.ms", "1"), ("retention.ms", "soon")], BAD_CONFIG),
        ([("no.such.key", "1")], BAD_CONFIG),
        ([("flush.ms", None)], BAD_REQUEST),
        ([("flush.ms", "1"), ("flush.ms", "2")], BAD_REQUEST),
    ],
)
def test_the_old_way_refuses_the_same(
    client: WireClient, topic: str, configs: list[tuple[str, str | None]], expected: ErrorCode
) -> None:
    create_topic(client, topic, configs={"retention.ms": "1000"})
    assert replace_all(client, TOPIC, topic, configs) == expected
    assert own_settings(client, topic) == {"retention.ms": "1000"}


def test_deleting_what_is_not_set_is_fine(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    assert change(client, TOPIC, topic, ("flush.ms", DELETE, None), ("no.such.key", DELETE, None)) == OK
    assert change(client, TOPIC, topic, ("flush.ms", DELETE, "with a value")) == OK
    assert own_settings(client, topic) == {}


def test_validating_only_changes_nothing(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    assert change(client, TOPIC, topic, ("flush.ms", SET, "1"), validate_only=True) == OK
    assert replace_all(client, TOPIC, topic, [("flush.ms", "1")], validate_only=True) == OK
    before = described(client, BROKER, THIS_BROKER, "log.flush.interval.ms")
    assert change(client, BROKER, ALL_BROKERS, ("log.flush.interval.ms", SET, "1"), validate_only=True) == OK
    assert own_settings(client, topic) == {}
    assert described(client, BROKER, THIS_BROKER, "log.flush.interval.ms") == before


def test_topics_that_are_not_there(client: WireClient, topic: str) -> None:
    good, bad = ("flush.ms", SET, "1"), ("flush.ms", SET, "x")
    assert change(client, TOPIC, topic, good) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert change(client, TOPIC, topic, bad) == BAD_CONFIG
    assert change(client, TOPIC, "a/b", good) == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert change(client, TOPIC, "", good) == BAD_REQUEST
    assert replace_all(client, TOPIC, topic, [("flush.ms", "1")]) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_each_resource_is_answered_for_itself(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    create_topic(client, f"{topic}-b")
    codes = incremental(
        client,
        resource(TOPIC, f"{topic}-missing", ("flush.ms", SET, "1")),
        resource(TOPIC, topic, ("flush.ms", SET, "1")),
        resource(BROKER, "none", ("log.flush.interval.ms", SET, "1")),
        resource(TOPIC, f"{topic}-b", ("flush.ms", SET, "x")),
    )
    assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, OK, BAD_REQUEST, BAD_CONFIG]
    eventually(lambda: own_settings(client, topic), {"flush.ms": "1"})
    assert own_settings(client, f"{topic}-b") == {}


def test_a_resource_that_is_named_twice_is_refused_alone(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    create_topic(client, f"{topic}-b")
    codes = incremental(
        client,
        resource(TOPIC, topic, ("flush.ms", SET, "1")),
        resource(TOPIC, f"{topic}-b", ("flush.ms", SET, "3")),
        resource(TOPIC, topic, ("flush.ms", SET, "2")),
    )
    assert codes == [BAD_REQUEST, OK, BAD_REQUEST]
    eventually(lambda: own_settings(client, f"{topic}-b"), {"flush.ms": "3"})
    assert own_settings(client, topic) == {}


def test_many_resources_in_one_request(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    missing = [resource(TOPIC, f"{topic}-{number}", ("flush.ms", SET, "1")) for number in range(50)]
    codes = incremental(client, *missing, resource(TOPIC, topic, ("flush.ms", SET, "1")))
    assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 50 + [OK]
    eventually(lambda: own_settings(client, topic), {"flush.ms": "1"})


@pytest.mark.parametrize("kind", [0, 1, 3, 77])
def test_types_that_have_no_settings(client: WireClient, kind: int) -> None:
    assert change(client, kind, "x", ("flush.ms", SET, "1")) == BAD_REQUEST
    assert replace_all(client, kind, "x", [("flush.ms", "1")]) == BAD_REQUEST


@pytest.mark.usefixtures("ottla_only")
@pytest.mark.parametrize("kind", [BROKER_LOGGER, CLIENT_METRICS])
def test_types_that_have_settings_in_kafka_only(client: WireClient, kind: int) -> None:
    assert change(client, kind, "1", ("x", SET, "1")) == BAD_REQUEST


def test_an_operation_that_does_not_exist(client: WireClient) -> None:
    for operation in (4, -1):
        assert change(client, BROKER, ALL_BROKERS, ("log.flush.interval.ms", operation, "1")) == BAD_REQUEST


@pytest.mark.usefixtures("ottla_only")
def test_an_operation_that_does_not_exist_on_a_topic(client: WireClient, topic: str) -> None:
    """Apache Kafka's controller resigns over it, with UNKNOWN_SERVER_ERROR."""
    create_topic(client, topic)
    assert change(client, TOPIC, topic, ("flush.ms", 4, "1")) == BAD_REQUEST
    assert own_settings(client, topic) == {}


def test_a_request_has_a_limit(client: WireClient) -> None:
    many: list[Change] = [(f"key.{number}", SET, "x") for number in range(10_001)]
    assert change(client, BROKER, THIS_BROKER, *many) == ErrorCode.POLICY_VIOLATION
    assert described(client, BROKER, THIS_BROKER, "key.0") is None
