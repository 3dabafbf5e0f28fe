"""What each answer of a coordinator does to a member of a classic group."""

from typing import Any

import pytest

from ottla.client.errors import BrokerError, ConsumerError, Fenced
from ottla.client.membership.answers import Next
from ottla.client.membership.assignors import Assignor, GroupView, MemberAssignment, RebalanceProtocol, assignors_of
from ottla.client.membership.classic import ClassicMember, State
from ottla.client.membership.embedded import read_assignment, write_assignment
from ottla.client.membership.interface import NO_GENERATION, Generation
from ottla.client.membership.settings import GroupSettings
from ottla.client.types import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from ottla.protocol.messages.sync_group import SyncGroupResponse

TOPICS = frozenset({"a"})
RACKLESS = (frozenset[str](),) * 2
OWNED = frozenset(TopicPartition("a", number) for number in range(2))
FINAL = [
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ErrorCode.INVALID_SESSION_TIMEOUT,
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_MAX_SIZE_REACHED,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.UNKNOWN_SERVER_ERROR,
]


def new_member(strategy: str | Assignor = "cooperative-sticky", **settings: Any) -> ClassicMember:
    return ClassicMember(GroupSettings(group_id="g", assignors=assignors_of([strategy]), **settings))


def join(member: ClassicMember, generation: int = 1) -> None:
    request = member.join_request(TOPICS)
    (protocol,) = request.protocols
    answer = JoinGroupResponse(
        generation_id=generation,
        protocol_type="consumer",
        protocol_name=protocol.name,
        leader="m",
        member_id="m",
        members=[JoinGroupResponseMember(member_id="m", metadata=protocol.metadata)],
    )
    assert member.join_answered(answer) is Next.GO_ON


def sync(member: ClassicMember, assigned: frozenset[TopicPartition] = OWNED) -> None:
    data = write_assignment(MemberAssignment(sorted(assigned)))
    assert member.sync_answered(SyncGroupResponse(assignment=data), member.generation) is Next.GO_ON
    offer = member.offer(lambda name: name in TOPICS)
    assert offer is not None
    member.gave_back(offer.revoked)
    assert member.took(offer)


def stable(strategy: str = "cooperative-sticky", **settings: Any) -> ClassicMember:
    member = new_member(strategy, **settings)
    join(member)
    sync(member)
    assert (member.state, member.needs_rejoin, member.owned) == (State.STABLE, False, OWNED)
    return member


def test_a_new_member_comes_back_with_the_id_it_was_given() -> None:
    member = new_member()
    assert member.join_request(TOPICS).member_id == ""
    refused = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m-1")
    assert member.join_answered(refused) is Next.AGAIN
    assert member.needs_rejoin
    assert member.join_request(TOPICS).member_id == "m-1"


def test_a_leader_assigns_with_the_assignor_that_all_have() -> None:
    member = new_member("range")
    member.join_request(TOPICS)
    metadata = member.join_request(TOPICS).protocols[0].metadata
    members = [JoinGroupResponseMember(member_id=name, metadata=metadata) for name in ("m", "n")]
    answer = JoinGroupResponse(generation_id=1, protocol_name="range", leader="m", member_id="m", members=members)
    member.join_answered(answer)
    assert member.is_leader
    assert member.topics_of_group(members) == TOPICS
    given = member.lead(members, {"a": RACKLESS}.get, is_kept=False)
    assert {one.member_id: list(read_assignment(one.assignment).partitions) for one in given} == {
        "m": [TopicPartition("a", 0)],
        "n": [TopicPartition("a", 1)],
    }
    assert member.lead(members, {"a": RACKLESS}.get, is_kept=True) == []


def test_a_leader_calls_for_a_rebalance_when_a_topic_grows() -> None:
    member = new_member()
    join(member)
    metadata = [JoinGroupResponseMember(member_id="m", metadata=member.join_request(TOPICS).protocols[0].metadata)]
    join(member)
    member.lead(metadata, {"a": RACKLESS}.get, is_kept=False)
    sync(member)
    member.metadata_changed({"a": RACKLESS}.get)
    assert not member.needs_rejoin
    member.metadata_changed({"a": RACKLESS * 2}.get)
    assert member.needs_rejoin


@pytest.mark.parametrize("code", FINAL)
def test_what_is_final_for_a_join_is_raised_and_says_what_to_do(code: ErrorCode) -> None:
    member = new_member()
    member.join_request(TOPICS)
    with pytest.raises(BrokerError, match=r"g") as raised:
        member.join_answered(JoinGroupResponse(error_code=code))
    assert raised.value.code is code


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, Next.LATER),
        (ErrorCode.REBALANCE_IN_PROGRESS, Next.LATER),
        (ErrorCode.NOT_COORDINATOR, Next.ELSEWHERE),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, Next.ELSEWHERE),
        (ErrorCode.UNKNOWN_MEMBER_ID, Next.AGAIN),
    ],
)
def test_other_answers_to_a_join_mean_to_try_again(code: ErrorCode, outcome: Next) -> None:
    member = stable()
    member.join_request(TOPICS)
    assert member.join_answered(JoinGroupResponse(error_code=code)) is outcome
    assert member.needs_rejoin
    assert member.generation.is_member is (code is not ErrorCode.UNKNOWN_MEMBER_ID)


def test_who_is_not_known_any_more_has_lost_everything() -> None:
    member = stable()
    member.heartbeat_answered(ErrorCode.UNKNOWN_MEMBER_ID, member.generation)
    assert member.generation == Generation()
    parting = member.before_join(TOPICS)
    assert (parting.partitions, parting.is_lost) == (OWNED, True)


def test_an_old_generation_keeps_the_id() -> None:
    member = stable()
    member.heartbeat_answered(ErrorCode.ILLEGAL_GENERATION, member.generation)
    assert member.generation == Generation("m", NO_GENERATION)
    assert member.before_join(TOPICS).is_lost


def test_an_answer_to_an_old_heartbeat_changes_nothing() -> None:
    member = stable()
    old = member.generation
    join(member, 2)
    sync(member)
    assert member.heartbeat_answered(ErrorCode.UNKNOWN_MEMBER_ID, old) is Next.GO_ON
    assert member.generation == Generation("m", 2)


def test_a_rebalance_of_others_is_joined_once() -> None:
    member = stable()
    assert member.heartbeat_answered(ErrorCode.REBALANCE_IN_PROGRESS, member.generation) is Next.GO_ON
    assert member.needs_rejoin
    member.join_request(TOPICS)
    member.heartbeat_answered(ErrorCode.REBALANCE_IN_PROGRESS, member.generation)
    assert not member.needs_rejoin


def test_another_with_the_same_instance_id_is_final() -> None:
    member = stable(group_instance_id="one")
    with pytest.raises(Fenced, match=r"group\.instance\.id of its own"):
        member.heartbeat_answered(ErrorCode.FENCED_INSTANCE_ID, member.generation)


def test_eager_members_give_back_everything_and_cooperative_ones_what_they_no_longer_want() -> None:
    assert stable("range").before_join(TOPICS).partitions == OWNED
    assert stable().before_join(TOPICS).partitions == frozenset()
    parting = stable().before_join(frozenset({"b"}))
    assert (parting.partitions, parting.is_lost) == (OWNED, False)


def test_a_cooperative_member_that_gives_back_joins_again() -> None:
    member = stable()
    join(member, 2)
    sync(member, frozenset({TopicPartition("a", 0)}))
    assert member.needs_rejoin
    assert member.owned == {TopicPartition("a", 0)}
    assert "given back" in (member.join_request(TOPICS).reason or "")


def test_a_subscription_that_changes_while_joining_is_joined_with_afterwards() -> None:
    member = new_member()
    request = member.join_request(TOPICS)
    member.topics_changed(frozenset({"a", "b"}))
    metadata = request.protocols[0].metadata
    members = [JoinGroupResponseMember(member_id="m", metadata=metadata)]
    name = request.protocols[0].name
    member.join_answered(
        JoinGroupResponse(generation_id=1, protocol_name=name, leader="m", member_id="m", members=members)
    )
    assert member.needs_rejoin


def test_what_is_not_subscribed_is_not_taken() -> None:
    member = new_member()
    join(member)
    data = write_assignment(MemberAssignment([TopicPartition("b", 0)]))
    member.sync_answered(SyncGroupResponse(assignment=data), member.generation)
    assert member.offer(lambda name: name in TOPICS) is None
    assert member.needs_rejoin


def test_a_leader_that_forgets_a_member_is_named() -> None:
    member = new_member()
    join(member)
    member.sync_answered(SyncGroupResponse(assignment=b""), member.generation)
    with pytest.raises(ConsumerError, match="gave this member no assignment"):
        member.offer(lambda _name: True)


@pytest.mark.parametrize(
    ("code", "outcome", "has_id"),
    [
        (ErrorCode.REBALANCE_IN_PROGRESS, Next.AGAIN, True),
        (ErrorCode.UNKNOWN_MEMBER_ID, Next.AGAIN, False),
        (ErrorCode.ILLEGAL_GENERATION, Next.AGAIN, True),
        (ErrorCode.NOT_COORDINATOR, Next.ELSEWHERE, True),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, Next.LATER, True),
    ],
)
def test_a_sync_that_is_refused_is_a_reason_to_join(code: ErrorCode, outcome: Next, has_id: bool) -> None:
    member = new_member()
    join(member)
    assert member.sync_answered(SyncGroupResponse(error_code=code), member.generation) is outcome
    assert member.needs_rejoin
    assert bool(member.generation.member_id) is has_id


def test_another_protocol_in_the_answer_is_final() -> None:
    member = new_member()
    join(member)
    with pytest.raises(BrokerError, match=r"partition\.assignment\.strategy"):
        member.sync_answered(SyncGroupResponse(protocol_type="connect"), member.generation)


@pytest.mark.parametrize(
    ("code", "needs_rejoin", "is_member"),
    [
        (ErrorCode.OFFSET_METADATA_TOO_LARGE, False, True),
        (ErrorCode.REBALANCE_IN_PROGRESS, True, True),
        (ErrorCode.UNKNOWN_MEMBER_ID, True, False),
        (ErrorCode.ILLEGAL_GENERATION, True, False),
    ],
)
def test_commits_that_are_refused_tell_of_the_membership(code: ErrorCode, needs_rejoin: bool, is_member: bool) -> None:
    member = stable()
    member.commit_refused(code, Generation("m", 0))
    assert not member.needs_rejoin
    member.commit_refused(code, member.generation)
    assert (member.needs_rejoin, member.generation.is_member) == (needs_rejoin, is_member)


def test_static_members_and_those_that_never_joined_do_not_leave() -> None:
    assert new_member().leave_request("over") is None
    assert stable(group_instance_id="one").leave_request("over") is None
    request = stable().leave_request("over")
    assert request is not None
    assert [(one.member_id, one.reason) for one in request.members] == [("m", "over")]


class Greedy(Assignor):
    """Gives away at once what others own, which cooperative assignors must not."""

    name = "greedy"
    protocols = frozenset({RebalanceProtocol.COOPERATIVE})

    def assign(self, group: GroupView) -> dict[str, MemberAssignment]:
        first, *others = sorted(group.members)
        everything = [partition for topic in group.topics for partition in group.partitions_of(topic)]
        return {first: MemberAssignment(everything)} | {other: MemberAssignment([]) for other in others}


def test_an_assignor_that_gives_away_what_is_owned_is_stopped() -> None:
    member = new_member(Greedy())
    join(member)
    sync(member)
    metadata = member.join_request(TOPICS).protocols[0].metadata
    empty = new_member(Greedy()).join_request(TOPICS).protocols[0].metadata
    members = [JoinGroupResponseMember(member_id="m", metadata=metadata)]
    members.append(JoinGroupResponseMember(member_id="l", metadata=empty))
    answer = JoinGroupResponse(generation_id=2, protocol_name="greedy", leader="m", member_id="m", members=members)
    member.join_answered(answer)
    with pytest.raises(ConsumerError, match="a-0, a-1"):
        member.lead(members, {"a": RACKLESS}.get, is_kept=False)


class Broken(Assignor):
    name = "broken"

    def assign(self, group: GroupView) -> dict[str, MemberAssignment]:
        raise KeyError("nothing")


class Forgetful(Broken):
    def assign(self, group: GroupView) -> dict[str, MemberAssignment]:
        return {}


def test_an_assignor_that_raises_is_named_and_one_that_forgets_a_member_gives_it_nothing() -> None:
    member = new_member(Broken())
    metadata = member.join_request(TOPICS).protocols[0].metadata
    join(member)
    members = [JoinGroupResponseMember(member_id="m", metadata=metadata)]
    with pytest.raises(ConsumerError, match="the assignor broken raised KeyError"):
        member.lead(members, {"a": RACKLESS}.get, is_kept=False)
    member = new_member(Forgetful())
    join(member)
    (given,) = member.lead(members, {"a": RACKLESS}.get, is_kept=False)
    assert read_assignment(given.assignment) == MemberAssignment(())
