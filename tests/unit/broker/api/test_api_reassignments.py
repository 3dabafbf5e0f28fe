"""AlterPartitionReassignments and ListPartitionReassignments on one broker: there is nowhere to move to."""

import pytest
from tests.unit.broker.api.questions import create_topic
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)

Asked = list[tuple[str, list[tuple[int, list[int] | None]]]]
NONE, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
INVALID, NOT_MOVING = ErrorCode.INVALID_REPLICA_ASSIGNMENT, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def reassign(
    client: WireClient, asked: Asked, *, may_change: bool = True, version: int | None = None
) -> list[tuple[str, list[tuple[int, int]]]]:
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=10_000,
        allow_replication_factor_change=may_change,
        topics=[
            ReassignableTopic(
                name=name,
                partitions=[ReassignablePartition(partition_index=index, replicas=ids) for index, ids in partitions],
            )
            for name, partitions in asked
        ],
    )
    answer = client.ask(request, AlterPartitionReassignmentsResponse, version)
    assert (answer.throttle_time_ms, answer.error_code) == (0, NONE)
    assert answer.error_message == (None if asked else "")
    assert answer.allow_replication_factor_change == (may_change or not asked)
    return [
        (topic.name, [(each.partition_index, each.error_code) for each in topic.partitions])
        for topic in answer.responses
    ]


@pytest.mark.parametrize("version", range(2))
def test_every_version(client: WireClient, topic: str, version: int) -> None:
    create_topic(client, topic)
    assert reassign(client, [(topic, [(0, [1])])], version=version) == [(topic, [(0, NONE)])]
    assert reassign(client, [(topic, [(0, [2])])], version=version) == [(topic, [(0, INVALID)])]


@pytest.mark.parametrize("may_change", [True, False])
@pytest.mark.parametrize(
    ("replicas", "error"),
    [
        ([1], NONE),
        (None, NOT_MOVING),
        ([], INVALID),
        ([2], INVALID),
        ([1, 2], INVALID),
        ([2, 1], INVALID),
        ([1, 1], INVALID),
        ([-1], INVALID),
        ([1, -5], INVALID),
    ],
)
def test_replicas(
    client: WireClient, topic: str, replicas: list[int] | None, error: ErrorCode, may_change: bool
) -> None:
    create_topic(client, topic)
    assert reassign(client, [(topic, [(0, replicas)])], may_change=may_change) == [(topic, [(0, error)])]


def test_everything_that_is_asked_for_is_answered_in_order(client: WireClient, topic: str) -> None:
    create_topic(client, topic, partitions=2)
    asked: Asked = [
        ("nope", [(0, [1]), (1, None)]),
        (topic, [(9, [1]), (-1, [1]), (9, None), (9, []), (1, [1]), (0, [1]), (0, [1])]),
        ("", [(0, [1])]),
        (topic, [(0, None), (1, [5])]),
        (topic, []),
        ("nope", []),
    ]
    assert reassign(client, asked) == [
        ("nope", [(0, UNKNOWN), (1, UNKNOWN)]),
        (topic, [*((index, UNKNOWN) for index in (9, -1, 9, 9)), (1, NONE), (0, NONE), (0, NONE)]),
        ("", [(0, UNKNOWN)]),
        (topic, [(0, NOT_MOVING), (1, INVALID)]),
        (topic, []),
        ("nope", []),
    ]
    assert reassign(client, []) == []
    assert reassign(client, [], may_change=False) == []


def test_no_move_is_ever_under_way(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    reassign(client, [(topic, [(0, [1])])])
    for wanted in (None, [], [(topic, [0, 0, 9, -1]), (topic, []), ("nope", [1]), ("", [2])]):
        topics = None
        if wanted is not None:
            topics = [ListPartitionReassignmentsTopics(name=name, partition_indexes=ids) for name, ids in wanted]
        answer = client.ask(ListPartitionReassignmentsRequest(topics=topics), ListPartitionReassignmentsResponse)
        assert (answer.error_code, answer.error_message, answer.topics) == (NONE, None, [])
