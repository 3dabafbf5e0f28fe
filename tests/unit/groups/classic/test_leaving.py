"""LeaveGroup: members go one by one or many at once, and the rest goes on without them."""

from tests.unit.groups.classic.desk import DELAY_MS, SESSION_MS, Desk, code_of

from ottla.groups.classic import Client
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.leave_group import LeaveGroupRequest


def test_the_rest_is_rebalanced() -> None:
    desk = Desk()
    leader, other = desk.stable(2)
    assert desk.leave((leader, None)) == [ErrorCode.NONE]
    assert desk.heartbeat(other, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert desk.join(other).result().leader == other
    assert desk.heartbeat(leader, 2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_each_is_answered_for_itself() -> None:
    desk = Desk()
    one, two, three = desk.stable(instances=("1", "2", None))
    given = desk.new_id()
    instances = {member.member_id: member.instance_id for member in desk.group().members.by_id.values()}
    dynamic = next(member_id for member_id, instance in instances.items() if instance is None)
    assert {one, two, three} == set(instances)
    codes = desk.leave(
        ("", "1"), ("stale", "2"), ("", "unknown"), ("", None), ("who", None), (dynamic, None), (given, None)
    )
    assert codes == [
        ErrorCode.NONE,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
        ErrorCode.NONE,
    ]
    assert [member.instance_id for member in desk.group().members.by_id.values()] == ["2"]
    assert not desk.group().members.pending


def test_nobody_leaves_a_group_that_is_not_there() -> None:
    assert Desk().leave(("who", None), ("", "i")) == [ErrorCode.UNKNOWN_MEMBER_ID] * 2


def test_refusals_change_nothing() -> None:
    desk = Desk()
    [leader] = desk.stable()
    desk.leave(("who", None))
    assert desk.state == "Stable"
    assert desk.heartbeat(leader, 1) == ErrorCode.NONE


def test_before_version_3_one_member_leaves() -> None:
    desk = Desk()
    [leader] = desk.stable()
    request = LeaveGroupRequest(group_id="readers", member_id=leader, members=[])
    answer = desk.perform(lambda: desk.classic.leave(Client("", "", 2), request))
    assert [member.error_code for member in answer.members] == [ErrorCode.NONE]
    assert desk.state == "Empty"


def test_when_the_last_one_has_left_the_group_is_empty() -> None:
    desk = Desk()
    [leader] = desk.stable()
    desk.leave((leader, None))
    assert desk.state == "Empty"
    _, value = desk.last_record()
    assert value is not None
    assert (value.generation, value.members, value.leader, value.protocol) == (2, [], None, None)
    assert value.protocol_type == "consumer"


def test_one_who_waits_for_the_others_is_told_that_it_is_out() -> None:
    desk = Desk()
    _, other = desk.stable(2)
    waiting = desk.join(other, protocols={"range": b"new"})
    desk.leave((other, None))
    assert code_of(waiting) == ErrorCode.UNKNOWN_MEMBER_ID


def test_one_who_waits_for_its_part_is_told_that_it_is_out() -> None:
    desk = Desk()
    joined = [desk.join(version=3) for _ in range(2)]
    desk.advance(2 * DELAY_MS)
    other = joined[1].result().member_id
    waiting = desk.sync(other, 1)
    desk.leave((other, None))
    assert code_of(waiting) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_ends_when_the_one_it_waited_for_leaves() -> None:
    desk = Desk()
    leader, other = desk.stable(2)
    waiting = desk.join(leader)
    desk.leave((other, None))
    assert len(waiting.result().members) == 1


def test_the_first_rebalance_takes_its_time_whoever_leaves() -> None:
    desk = Desk()
    given = desk.new_id()
    waiting = desk.join(given)
    other = desk.join(version=3)
    desk.leave((given, None))
    assert code_of(waiting) == ErrorCode.UNKNOWN_MEMBER_ID
    assert not other.done()
    desk.advance(2 * DELAY_MS)
    assert len(other.result().members) == 1


def test_a_group_that_all_left_during_its_first_rebalance_is_empty_after_it() -> None:
    desk = Desk()
    given = desk.new_id()
    desk.join(given)
    desk.leave((given, None))
    desk.advance(DELAY_MS)
    assert desk.state == "Empty"
    assert desk.group().generation == 1


def test_one_who_left_without_joining_is_not_waited_for() -> None:
    desk = Desk()
    [leader] = desk.stable()
    given = desk.new_id()
    waiting = desk.join(leader)
    desk.leave((given, None))
    assert waiting.done()
    desk.sync(leader, 2)
    desk.advance(SESSION_MS - 1)
    assert desk.heartbeat(leader, 2) == ErrorCode.NONE
