"""Which assignments of a partition are accepted, on a cluster of several brokers."""

import pytest
from tests.unit.cluster.harness import SeededIds, Tree

from ottla.cluster.reassignments import Reassignment, alter_reassignments
from ottla.cluster.requests import ControllerSettings, NewTopic
from ottla.cluster.topics import TopicDecisions
from ottla.protocol.errors import ErrorCode

NONE, INVALID = ErrorCode.NONE, ErrorCode.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize(
    ("topic", "index", "replicas", "may_change", "error"),
    [
        ("t", 0, (1, 2), True, NONE),
        ("t", 0, (1, 2), False, NONE),
        ("t", 0, None, True, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ("t", 1, None, True, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", -1, (1, 2), True, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("nope", 0, (9,), True, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 0, (), True, INVALID),
        ("t", 0, (1, 9), True, INVALID),
        ("t", 0, (2, 2), True, INVALID),
        # A wrong list is a wrong list, whatever its length.
        ("t", 0, (1, 2, 9), False, INVALID),
        ("t", 0, (1, 2, 3), False, ErrorCode.INVALID_REPLICATION_FACTOR),
        ("t", 0, (1,), False, ErrorCode.INVALID_REPLICATION_FACTOR),
        # Replicas do not move between brokers yet.
        ("t", 0, (1, 3), True, INVALID),
        ("t", 0, (2, 1), True, INVALID),
        ("t", 0, (1, 2, 3), True, INVALID),
    ],
)
def test_one_request(
    topic: str, index: int, replicas: tuple[int, ...] | None, may_change: bool, error: ErrorCode
) -> None:
    tree = Tree(brokers=(1, 2, 3))
    topics = TopicDecisions(ControllerSettings(), lambda configs: None, SeededIds(), 1)
    (creation,) = topics.create_topics(tree.image, [NewTopic("t", assignments=((0, (1, 2)),))], {})
    tree.apply(creation.operations)
    (decision,) = alter_reassignments(tree.image, [Reassignment(topic, index, replicas)], may_change)
    assert decision.result.error == error
    assert (decision.result.message is None) == (error == NONE)
    assert decision.operations == ()
