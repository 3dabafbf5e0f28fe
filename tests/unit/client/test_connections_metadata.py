"""What an answer about metadata changes, and what it must not."""

from ottla.client.cluster import NO_LEADER, Node
from ottla.client.connections_metadata import Known, learned, with_leader, without_topics
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

A, B = b"a" * 16, b"b" * 16


def partition(index: int, leader: int, epoch: int) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        partition_index=index, leader_id=leader, leader_epoch=epoch, replica_nodes=[1, 2], isr_nodes=[1]
    )


def topic(
    name: str, *partitions: MetadataResponsePartition, topic_id: bytes = A, code: int = 0
) -> MetadataResponseTopic:
    return MetadataResponseTopic(name=name, topic_id=topic_id, partitions=list(partitions), error_code=code)


def answer(*topics: MetadataResponseTopic, nodes: tuple[int, ...] = (1, 2)) -> MetadataResponse:
    brokers = [MetadataResponseBroker(node_id=node, host="h", port=9000 + node) for node in nodes]
    return MetadataResponse(brokers=brokers, controller_id=1, cluster_id="c", topics=list(topics))


def known(*topics: MetadataResponseTopic) -> Known:
    return learned(Known(), answer(*topics), only_some_topics=False)


def test_an_answer_is_what_is_known() -> None:
    cluster = known(topic("orders", partition(1, 2, 5), partition(0, 1, 4))).cluster
    assert (cluster.cluster_id, cluster.controller_id, cluster.version) == ("c", 1, 1)
    assert [(p.partition, p.leader, p.leader_epoch) for p in cluster.topics["orders"].partitions] == [
        (0, 1, 4),
        (1, 2, 5),
    ]
    assert cluster.leader_of("orders", 1) == 2
    assert cluster.names_by_id == {A: "orders"}


def test_leader_epochs_never_go_back_while_the_topic_is_the_same() -> None:
    first = known(topic("orders", partition(0, 1, 5)))
    stale = learned(first, answer(topic("orders", partition(0, 2, 4))), only_some_topics=False)
    assert stale.cluster.leader_of("orders", 0) == 1
    assert stale.cluster.version == 2
    newer = learned(stale, answer(topic("orders", partition(0, 2, 6))), only_some_topics=False)
    assert newer.cluster.leader_of("orders", 0) == 2


def test_a_topic_that_was_created_again_starts_anew() -> None:
    first = known(topic("orders", partition(0, 1, 5), partition(1, 1, 5)))
    again = learned(first, answer(topic("orders", partition(0, 2, 0), topic_id=B)), only_some_topics=False)
    assert again.cluster.leader_of("orders", 0) == 2
    assert len(again.cluster.topics["orders"].partitions) == 1
    assert again.cluster.names_by_id == {B: "orders"}


def test_an_old_broker_without_epochs_is_believed() -> None:
    first = known(topic("orders", partition(0, 1, 5)))
    told = learned(first, answer(topic("orders", partition(0, 2, -1), topic_id=bytes(16))), only_some_topics=False)
    assert told.cluster.leader_of("orders", 0) == 2


def test_an_answer_about_some_topics_leaves_the_others() -> None:
    first = known(topic("orders", partition(0, 1, 5)), topic("bad", code=int(ErrorCode.INVALID_TOPIC_EXCEPTION)))
    more = learned(first, answer(topic("users", partition(0, 2, 0), topic_id=B)), only_some_topics=True)
    assert sorted(more.cluster.topics) == ["orders", "users"]
    assert more.errors == {"bad": ErrorCode.INVALID_TOPIC_EXCEPTION}
    whole = learned(more, answer(topic("users", partition(0, 2, 0), topic_id=B)), only_some_topics=False)
    assert list(whole.cluster.topics) == ["users"]
    assert whole.errors == {}


def test_errors_and_missing_leaders_are_asked_about_again_where_that_helps() -> None:
    unknown = known(topic("orders", code=int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)))
    assert unknown.errors == {"orders": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert unknown.is_incomplete
    assert not known(topic("orders", code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED))).is_incomplete
    leaderless = known(topic("orders", partition(0, -1, 3)))
    assert leaderless.is_incomplete
    assert leaderless.cluster.leader_of("orders", 0) == NO_LEADER


def test_a_gap_between_partitions_is_a_partition_without_a_leader() -> None:
    cluster = known(topic("orders", partition(2, 1, 1))).cluster
    assert [p.leader for p in cluster.topics["orders"].partitions] == [NO_LEADER, NO_LEADER, 1]


def test_a_leader_that_is_named_is_taken_when_it_is_news() -> None:
    first = known(topic("orders", partition(0, 1, 5)))
    assert with_leader(first, "orders", 0, 2, 5, ()) is first
    assert with_leader(first, "orders", 9, 2, 6, ()) is first
    assert with_leader(first, "users", 0, 2, 6, ()) is first
    assert with_leader(first, "orders", 0, 3, 6, ()) is first
    moved = with_leader(first, "orders", 0, 2, 6, ())
    assert moved.cluster.leader_of("orders", 0) == 2
    assert moved.cluster.version == 2
    joined = with_leader(first, "orders", 0, 3, 6, [Node(3, "new", 9003)])
    assert joined.cluster.leader_of("orders", 0) == 3
    assert joined.cluster.nodes[3].host == "new"


def test_topics_that_nobody_wants_are_dropped() -> None:
    first = known(topic("orders", partition(0, 1, 5)), topic("bad", code=3))
    assert without_topics(first, ["users"]) is first
    gone = without_topics(first, ["orders", "bad"])
    assert (dict(gone.cluster.topics), dict(gone.cluster.names_by_id), dict(gone.errors)) == ({}, {}, {})
