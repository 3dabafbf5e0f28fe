"""CreateTopics, DeleteTopics and CreatePartitions."""

import pytest
from tests.unit.broker.api.questions import PATIENCE_MS, batch, create_topic, fetch, produce, wait_for_leaders
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from ottla.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

FROM_TOPIC, FROM_DEFAULT = 1, 5


def create(
    client: WireClient, *topics: CreatableTopic, validate_only: bool = False, version: int = 7
) -> list[CreatableTopicResult]:
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=PATIENCE_MS, validate_only=validate_only)
    return list(client.ask(request, CreateTopicsResponse, version).topics)


def wanted(
    name: str,
    partitions: int = 1,
    replicas: int = 1,
    configs: dict[str, str | None] | None = None,
    assignments: dict[int, list[int]] | None = None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in (assignments or {}).items()
        ],
    )


def partition_count(client: WireClient, topic: str) -> int | None:
    """How many partitions a topic has, None when it is not there."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    (answer,) = client.ask(request, MetadataResponse).topics
    return None if answer.error_code else len(answer.partitions)


@pytest.mark.parametrize("version", range(2, 8))
def test_every_version_of_create(client: WireClient, topic: str, version: int) -> None:
    (result,) = create(client, wanted(topic, partitions=2), version=version)
    assert (result.error_code, result.name, result.error_message) == (0, topic, None)
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (2, 1)
    assert (result.topic_id != bytes(16)) == (version >= 7)
    wait_for_leaders(client, topic, 2)
    assert produce(client, topic, batch(b"one"), partition=1).error_code == ErrorCode.NONE


def test_defaults_of_the_broker(client: WireClient, topic: str) -> None:
    (result,) = create(client, wanted(topic, partitions=-1, replicas=-1))
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 1, 1)


def test_the_settings_of_the_new_topic_are_told(client: WireClient, topic: str) -> None:
    (result,) = create(client, wanted(topic, configs={"retention.ms": "12345"}))
    assert result.configs is not None
    told = {config.name: config for config in result.configs}
    assert (told["retention.ms"].value, told["retention.ms"].config_source) == ("12345", FROM_TOPIC)
    assert (told["segment.bytes"].value, told["segment.bytes"].config_source) == ("1073741824", FROM_DEFAULT)


def test_by_assignment(client: WireClient, topic: str) -> None:
    (result,) = create(client, wanted(topic, -1, -1, assignments={1: [1], 0: [1], 2: [1]}))
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 3, 1)
    assert partition_count(client, topic) == 3


def test_only_validated(client: WireClient, topic: str) -> None:
    (result,) = create(client, wanted(topic, partitions=4), validate_only=True)
    assert (result.error_code, result.num_partitions) == (0, 4)
    assert partition_count(client, topic) is None
    (refused,) = create(client, wanted(topic, replicas=5), validate_only=True)
    assert refused.error_code == ErrorCode.INVALID_REPLICATION_FACTOR


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param({"partitions": 0}, ErrorCode.INVALID_PARTITIONS, id="no partitions"),
        pytest.param({"partitions": -2}, ErrorCode.INVALID_PARTITIONS, id="negative partitions"),
        pytest.param({"replicas": 0}, ErrorCode.INVALID_REPLICATION_FACTOR, id="no replicas"),
        pytest.param({"replicas": -2}, ErrorCode.INVALID_REPLICATION_FACTOR, id="negative replicas"),
        pytest.param({"replicas": 2}, ErrorCode.INVALID_REPLICATION_FACTOR, id="more replicas than brokers"),
        pytest.param({"configs": {"no.such.key": "1"}}, ErrorCode.INVALID_CONFIG, id="unknown config"),
        pytest.param({"configs": {"retention.ms": "soon"}}, ErrorCode.INVALID_CONFIG, id="bad config"),
        pytest.param({"configs": {"segment.bytes": "1"}}, ErrorCode.INVALID_CONFIG, id="config out of range"),
        pytest.param({"configs": {"cleanup.policy": "burn"}}, ErrorCode.INVALID_CONFIG, id="config not allowed"),
        pytest.param({"configs": {"retention.ms": None}}, ErrorCode.INVALID_CONFIG, id="config without value"),
        pytest.param({"assignments": {0: [1]}}, ErrorCode.INVALID_REQUEST, id="counts and assignment"),
    ],
)
def test_what_cannot_be_created(client: WireClient, topic: str, change: dict[str, object], code: ErrorCode) -> None:
    (result,) = create(client, wanted(topic, **change))  # type: ignore[arg-type]  # each case has the right types
    assert ErrorCode(result.error_code) == code
    assert result.error_message
    assert partition_count(client, topic) is None


@pytest.mark.parametrize(
    "assignments",
    [{0: []}, {0: [9]}, {0: [1, 1]}, {1: [1]}, {0: [1], 2: [1]}],
)
def test_assignments_that_do_not_work(client: WireClient, topic: str, assignments: dict[int, list[int]]) -> None:
    (result,) = create(client, wanted(topic, -1, -1, assignments=assignments))
    assert ErrorCode(result.error_code) == ErrorCode.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "ä", "x" * 250, "a\n", "a:b"])
def test_names_that_no_topic_can_have(client: WireClient, name: str) -> None:
    (result,) = create(client, wanted(name))
    assert (result.error_code, result.name) == (ErrorCode.INVALID_TOPIC_EXCEPTION, name)
    assert result.error_message


def test_the_longest_name(client: WireClient, topic: str) -> None:
    name = topic.ljust(249, "x")
    assert create(client, wanted(name))[0].error_code == ErrorCode.NONE
    wait_for_leaders(client, name, 1)
    assert produce(client, name, batch(b"one")).error_code == ErrorCode.NONE


def test_names_that_differ_in_dots_and_underscores_collide(client: WireClient, topic: str) -> None:
    create_topic(client, f"{topic}.a_b")
    (result,) = create(client, wanted(f"{topic}_a.b"))
    assert result.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_topic_that_exists(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    for validate_only in (False, True):
        (result,) = create(client, wanted(topic), validate_only=validate_only)
        assert result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_one_bad_topic_does_not_spoil_the_others(client: WireClient, topic: str) -> None:
    good, bad, twice = f"{topic}-good", f"{topic}-bad", f"{topic}-twice"
    results = create(client, wanted(good), wanted(bad, partitions=0), wanted(twice), wanted(twice))
    assert {result.name: ErrorCode(result.error_code) for result in results} == {
        good: ErrorCode.NONE,
        bad: ErrorCode.INVALID_PARTITIONS,
        twice: ErrorCode.INVALID_REQUEST,
    }
    assert partition_count(client, twice) is None


# Deleting


def delete(client: WireClient, *topics: str | bytes, version: int = 6) -> list[DeletableTopicResult]:
    request = DeleteTopicsRequest(timeout_ms=PATIENCE_MS)
    if version < 6:
        request.topic_names = [str(topic) for topic in topics]
    else:
        request.topics = [
            DeleteTopicState(name=topic) if isinstance(topic, str) else DeleteTopicState(name=None, topic_id=topic)
            for topic in topics
        ]
    return list(client.ask(request, DeleteTopicsResponse, version).responses)


@pytest.mark.parametrize("version", range(1, 7))
def test_every_version_of_delete(client: WireClient, topic: str, version: int) -> None:
    topic_id = create_topic(client, topic)
    (result,) = delete(client, topic, version=version)
    assert (result.error_code, result.name) == (0, topic)
    assert result.topic_id == (topic_id if version >= 6 else bytes(16))
    assert partition_count(client, topic) is None
    (again,) = delete(client, topic, version=version)
    assert again.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_delete_by_id(client: WireClient, topic: str) -> None:
    topic_id = create_topic(client, topic)
    (result,) = delete(client, topic_id)
    assert (result.error_code, result.name, result.topic_id) == (0, topic, topic_id)
    (again,) = delete(client, topic_id)
    assert (again.error_code, again.topic_id) == (ErrorCode.UNKNOWN_TOPIC_ID, topic_id)


def test_delete_needs_a_name_or_an_id(client: WireClient, topic: str) -> None:
    topic_id = create_topic(client, topic)
    for state in (DeleteTopicState(name=None), DeleteTopicState(name=topic, topic_id=topic_id)):
        request = DeleteTopicsRequest(timeout_ms=PATIENCE_MS, topics=[state])
        (result,) = client.ask(request, DeleteTopicsResponse).responses
        assert result.error_code == ErrorCode.INVALID_REQUEST
    assert partition_count(client, topic) == 1


def test_a_topic_that_comes_again_is_a_new_one(client: WireClient, topic: str) -> None:
    old_id = create_topic(client, topic)
    produce(client, topic, batch(b"old"))
    delete(client, topic)
    new_id = create_topic(client, topic)
    assert new_id != old_id
    answer = fetch(client, topic, 0)
    assert (answer.high_watermark, bytes(answer.records or b"")) == (0, b"")


# More partitions


def grow(
    client: WireClient,
    topic: str,
    count: int,
    *,
    assignments: list[list[int]] | None = None,
    validate_only: bool = False,
    version: int = 3,
) -> ErrorCode:
    change = CreatePartitionsTopic(
        name=topic,
        count=count,
        assignments=(
            None if assignments is None else [CreatePartitionsAssignment(broker_ids=ids) for ids in assignments]
        ),
    )
    request = CreatePartitionsRequest(topics=[change], timeout_ms=PATIENCE_MS, validate_only=validate_only)
    (result,) = client.ask(request, CreatePartitionsResponse, version).results
    assert result.name == topic
    return ErrorCode(result.error_code)


@pytest.mark.parametrize("version", range(4))
def test_every_version_of_growing(client: WireClient, topic: str, version: int) -> None:
    create_topic(client, topic)
    produce(client, topic, batch(b"kept"))
    assert grow(client, topic, 3, version=version) == ErrorCode.NONE
    wait_for_leaders(client, topic, 3)
    assert partition_count(client, topic) == 3
    assert produce(client, topic, batch(b"new"), partition=2).base_offset == 0
    assert fetch(client, topic, 0).high_watermark == 1


def test_growing_by_assignment(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    assert grow(client, topic, 2, assignments=[[1]]) == ErrorCode.NONE
    assert partition_count(client, topic) == 2


def test_growing_only_validated(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    assert grow(client, topic, 2, validate_only=True) == ErrorCode.NONE
    assert partition_count(client, topic) == 1


@pytest.mark.parametrize(
    ("count", "assignments", "code"),
    [
        (1, None, ErrorCode.INVALID_PARTITIONS),
        (2, None, ErrorCode.INVALID_PARTITIONS),
        (0, None, ErrorCode.INVALID_PARTITIONS),
        (-1, None, ErrorCode.INVALID_PARTITIONS),
        (3, [[1], [1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (4, [[1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [[9]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_growth_that_does_not_work(
    client: WireClient, topic: str, count: int, assignments: list[list[int]] | None, code: ErrorCode
) -> None:
    create_topic(client, topic, partitions=2)
    assert grow(client, topic, count, assignments=assignments) == code
    assert partition_count(client, topic) == 2


def test_growing_a_topic_that_is_not_there(client: WireClient, topic: str) -> None:
    assert grow(client, topic, 2) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_growing_a_topic_twice_in_one_request(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    changes = [CreatePartitionsTopic(name=topic, count=count, assignments=None) for count in (2, 3)]
    request = CreatePartitionsRequest(topics=changes, timeout_ms=PATIENCE_MS)
    (result,) = client.ask(request, CreatePartitionsResponse).results
    assert result.error_code == ErrorCode.INVALID_REQUEST
    assert partition_count(client, topic) == 1
