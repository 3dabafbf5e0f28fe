"""What a member of KIP-848 tells, and what each answer does to it."""

from typing import Any

import pytest

from ottla.client.errors import BrokerError, Fenced, UnsupportedByBroker
from ottla.client.membership.answers import Next
from ottla.client.membership.epochs import EpochMember, Wish
from ottla.client.membership.interface import Generation
from ottla.client.membership.settings import GroupSettings
from ottla.client.types import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

A = b"a" * 16
B = b"b" * 16
WISH = Wish(names=frozenset({"a"}))


def new_member(**settings: Any) -> EpochMember:
    return EpochMember(GroupSettings(group_id="g", **settings), "m")


def answered(epoch: int, *partitions: int, topic_id: bytes = A) -> ConsumerGroupHeartbeatResponse:
    found = [TopicPartitions(topic_id=topic_id, partitions=list(partitions))] if partitions else []
    return ConsumerGroupHeartbeatResponse(
        member_id="m", member_epoch=epoch, heartbeat_interval_ms=700, assignment=Assignment(topic_partitions=found)
    )


def joined(**settings: Any) -> EpochMember:
    """A member of epoch 1 with partitions 0 and 1 of `a`, which it has told."""
    member = new_member(**settings)
    member.heartbeat_request(WISH)
    member.heartbeat_answered(answered(1, 0, 1), member.generation)
    reconcile(member)
    member.heartbeat_request(WISH)
    answer = ConsumerGroupHeartbeatResponse(member_id="m", member_epoch=1, heartbeat_interval_ms=700)
    assert member.heartbeat_answered(answer, member.generation) is Next.GO_ON
    return member


def reconcile(member: EpochMember, names: dict[bytes, str] | None = None) -> tuple[set[int], set[int]]:
    """The numbers of the partitions that were revoked and added."""
    change = member.reconciliation(names or {A: "a"})
    assert change is not None
    member.gave_back(change.revoked)
    member.took(change)
    member.acknowledge()
    return {part.partition for part in change.revoked}, {part.partition for part in change.added}


def test_joining_tells_everything_and_later_only_what_changed() -> None:
    member = new_member(remote_assignor="uniform", client_rack="east", group_instance_id="one")
    request = member.heartbeat_request(WISH)
    assert (request.member_epoch, request.member_id, request.instance_id) == (0, "m", "one")
    assert (request.subscribed_topic_names, request.subscribed_topic_regex) == (["a"], None)
    assert (request.rebalance_timeout_ms, request.server_assignor, request.rack_id) == (300_000, "uniform", "east")
    assert request.topic_partitions == []
    member.heartbeat_answered(answered(1), member.generation)
    assert member.heartbeat_interval_ms == 700
    assert not member.has_news(WISH)
    request = member.heartbeat_request(WISH)
    assert (request.subscribed_topic_names, request.server_assignor, request.rack_id) == (None, None, None)
    assert (request.topic_partitions, request.rebalance_timeout_ms, request.instance_id) == (None, -1, "one")


def test_an_answer_that_was_lost_makes_it_tell_everything_once_more() -> None:
    member = joined()
    member.heartbeat_request(WISH)
    member.unanswered()
    request = member.heartbeat_request(WISH)
    assert request.subscribed_topic_names == ["a"]
    assert request.topic_partitions == [TopicPartitions(topic_id=A, partitions=[0, 1])]


def test_what_is_revoked_is_told_when_it_is_gone() -> None:
    member = joined()
    member.heartbeat_answered(answered(1, 1, 2), member.generation)
    assert not member.has_news(WISH)
    assert reconcile(member) == ({0}, {2})
    assert member.has_news(WISH)
    assert member.heartbeat_request(WISH).topic_partitions == [TopicPartitions(topic_id=A, partitions=[1, 2])]
    assert member.owned == {TopicPartition("a", 1), TopicPartition("a", 2)}


def test_topics_without_a_name_wait_for_it() -> None:
    member = joined()
    mixed = answered(2, 0, 1)
    assert mixed.assignment is not None
    mixed.assignment.topic_partitions.append(TopicPartitions(topic_id=B, partitions=[7]))
    member.heartbeat_answered(mixed, member.generation)
    assert member.unknown_ids({A: "a"}) == [B]
    assert member.reconciliation({A: "a"}) is None
    assert reconcile(member, {A: "a", B: "b"}) == (set(), {7})


def test_a_topic_that_was_made_again_is_another_topic() -> None:
    member = joined()
    member.heartbeat_answered(answered(2, 0, topic_id=B), member.generation)
    assert reconcile(member, {A: "a", B: "a"}) == ({0, 1}, {0})


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH])
def test_who_is_thrown_out_joins_again_with_nothing(code: ErrorCode) -> None:
    member = joined()
    answer = ConsumerGroupHeartbeatResponse(error_code=code)
    assert member.heartbeat_answered(answer, member.generation) is Next.AGAIN
    assert member.generation == Generation("m", -1)
    assert member.reconciliation({A: "a"}) is None
    member.gave_back(member.owned)
    request = member.heartbeat_request(WISH)
    assert (request.member_epoch, request.topic_partitions) == (0, [])


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (ErrorCode.NOT_COORDINATOR, Next.ELSEWHERE),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, Next.ELSEWHERE),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, Next.LATER),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, Next.LATER),
    ],
)
def test_what_passes_is_tried_again(code: ErrorCode, outcome: Next) -> None:
    member = joined()
    assert member.heartbeat_answered(ConsumerGroupHeartbeatResponse(error_code=code), member.generation) is outcome
    assert member.generation.is_member


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.FENCED_INSTANCE_ID, Fenced),
        (ErrorCode.UNRELEASED_INSTANCE_ID, BrokerError),
        (ErrorCode.UNSUPPORTED_ASSIGNOR, BrokerError),
        (ErrorCode.GROUP_MAX_SIZE_REACHED, BrokerError),
        (ErrorCode.INVALID_REQUEST, BrokerError),
        (ErrorCode.UNSUPPORTED_VERSION, UnsupportedByBroker),
    ],
)
def test_what_is_final_is_raised_with_what_the_broker_said(code: ErrorCode, kind: type[BrokerError]) -> None:
    member = joined()
    answer = ConsumerGroupHeartbeatResponse(error_code=code, error_message="as it was told")
    with pytest.raises(kind, match="as it was told"):
        member.heartbeat_answered(answer, member.generation)


def test_an_answer_from_before_it_left_changes_nothing() -> None:
    member = joined()
    sent = member.generation
    member.leave()
    member.heartbeat_answered(answered(5, 0), sent)
    assert member.generation == Generation("m", -1)


def test_leaving_says_for_how_long() -> None:
    assert new_member().leave_request() is None
    request = joined().leave_request()
    assert request is not None
    assert request.member_epoch == -1
    static = joined(group_instance_id="one").leave_request()
    assert static is not None
    assert (static.member_epoch, static.instance_id) == (-2, "one")


def test_who_asked_to_join_and_got_no_answer_leaves_as_well() -> None:
    member = new_member()
    member.heartbeat_request(WISH)
    assert member.leave_request() is not None


def test_an_expression_is_taken_back_by_an_empty_one() -> None:
    member = new_member()
    request = member.heartbeat_request(Wish(expression="a.*"))
    assert (request.subscribed_topic_names, request.subscribed_topic_regex) == ([], "a.*")
    member.heartbeat_answered(answered(1), member.generation)
    request = member.heartbeat_request(WISH)
    assert (request.subscribed_topic_names, request.subscribed_topic_regex) == (["a"], "")
