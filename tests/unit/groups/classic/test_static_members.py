"""Static members: an instance that comes back is who it was, and whoever it was before is fenced off."""

import pytest
from tests.unit.groups.classic.desk import DELAY_MS, REBALANCE_MS, SESSION_MS, Desk, code_of, refusal_of

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.join_group import JoinGroupResponse


def back(desk: Desk, instance: str, version: int = 9) -> JoinGroupResponse:
    return desk.join(instance=instance, version=version).result()


def test_a_new_instance_needs_no_id_to_come_back_with() -> None:
    desk = Desk()
    waiting = desk.join(instance="one")
    desk.advance(DELAY_MS)
    assert waiting.result().member_id.startswith("one-")
    assert waiting.result().members[0].group_instance_id == "one"


def test_an_instance_that_comes_back_has_its_part_without_a_rebalance() -> None:
    desk = Desk()
    leader, other = desk.stable(instances=("one", "two"))
    answer = back(desk, "two")
    assert (answer.error_code, answer.generation_id, answer.leader) == (ErrorCode.NONE, 1, leader)
    assert answer.member_id not in (leader, other)
    assert not answer.skip_assignment
    assert desk.state == "Stable"
    assert desk.sync(answer.member_id, 1, instance="two").result().assignment == b"part of " + other.encode()
    assert desk.heartbeat(leader, 1, "one") == ErrorCode.NONE


def test_the_one_before_is_fenced_off() -> None:
    desk = Desk()
    _, other = desk.stable(instances=("one", "two"))
    back(desk, "two")
    assert desk.heartbeat(other, 1, "two") == ErrorCode.FENCED_INSTANCE_ID
    assert refusal_of(lambda: desk.sync(other, 1, instance="two")) == ErrorCode.FENCED_INSTANCE_ID
    answer = desk.join(other, instance="two").result()
    assert (answer.error_code, answer.member_id) == (ErrorCode.FENCED_INSTANCE_ID, other)
    assert desk.leave((other, "two")) == [ErrorCode.FENCED_INSTANCE_ID]
    assert desk.heartbeat(other, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.heartbeat(other, 1, "three") == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_leader_that_comes_back_skips_the_assignment() -> None:
    desk = Desk()
    _, other = desk.stable(instances=("one", "two"))
    answer = back(desk, "one")
    assert answer.skip_assignment
    assert answer.leader == answer.member_id
    assert {member.member_id for member in answer.members} == {answer.member_id, other}


def test_a_leader_that_cannot_be_told_to_skip_is_told_that_another_leads() -> None:
    desk = Desk()
    leader, _ = desk.stable(instances=("one", "two"))
    answer = back(desk, "one", version=8)
    assert (answer.leader, answer.skip_assignment, answer.members) == (leader, False, [])
    assert answer.member_id != leader


def test_an_instance_that_changes_what_is_agreed_on_begins_a_rebalance() -> None:
    desk = Desk()
    both = {"range": b"r", "sticky": b"s"}
    waiting = [desk.join(instance=name, protocols=both) for name in ("one", "two")]
    desk.advance(2 * DELAY_MS)
    desk.sync_all([promise.result() for promise in waiting])
    assert not desk.join(instance="two", protocols={"sticky": b"s"}).done()
    assert desk.state == "PreparingRebalance"


def test_what_an_instance_says_anew_is_kept_without_a_rebalance() -> None:
    desk = Desk()
    desk.stable(instances=("one", "two"))
    assert desk.join(instance="two", protocols={"range": b"other topics"}).done()
    desk.crash()
    told = {member.instance_id: member.metadata("range") for member in desk.group().members.by_id.values()}
    assert told == {"one": b"topics", "two": b"other topics"}


def test_coming_back_while_the_assignment_is_awaited_begins_another_rebalance() -> None:
    desk = Desk()
    waiting = [desk.join(instance=name) for name in ("one", "two")]
    desk.advance(2 * DELAY_MS)
    other = waiting[1].result().member_id
    syncing = desk.sync(other, 1, instance="two")
    again = desk.join(instance="two")
    assert code_of(syncing) == ErrorCode.FENCED_INSTANCE_ID
    assert desk.state == "PreparingRebalance"
    leader = desk.join(waiting[0].result().member_id, instance="one")
    assert leader.result().generation_id == again.result().generation_id == 2


def test_coming_back_during_a_rebalance_fences_the_one_that_waits() -> None:
    desk = Desk()
    leader, other = desk.stable(instances=("one", "two"))
    desk.join(desk.new_id())
    before = desk.join(other, instance="two")
    again = desk.join(instance="two")
    assert (code_of(before), before.result().member_id) == (ErrorCode.FENCED_INSTANCE_ID, other)
    joined = desk.join(leader, instance="one")
    assert joined.result().generation_id == again.result().generation_id == 2
    assert len(joined.result().members) == 3


def test_an_instance_that_does_not_join_in_time_stays_for_its_session() -> None:
    desk = Desk()
    waiting = [desk.join(instance=name, rebalance_ms=4_000) for name in ("one", "two")]
    desk.advance(DELAY_MS + 1_000)
    ids = desk.sync_all([promise.result() for promise in waiting])
    again = desk.join(ids[0], instance="one", rebalance_ms=4_000)
    desk.advance(4_000)
    assert len(again.result().members) == 2


def test_a_rebalance_that_no_instance_joins_goes_on_until_their_sessions_are_over() -> None:
    desk = Desk()
    ids = desk.stable(instances=("one", "two"), rebalance_ms=4_000)
    newcomer = desk.new_id()
    desk.join(newcomer, rebalance_ms=4_000)
    desk.leave((newcomer, None))
    for _ in range(4):
        desk.advance(4_000)
        assert [desk.heartbeat(member_id, 1) for member_id in ids] == [ErrorCode.REBALANCE_IN_PROGRESS] * 2
    desk.advance(REBALANCE_MS)
    assert desk.state == "Empty"


def test_when_the_leader_does_not_join_another_one_leads() -> None:
    desk = Desk()
    _, other = desk.stable(instances=("one", "two"), rebalance_ms=4_000)
    again = desk.join(other, instance="two", rebalance_ms=4_000, protocols={"range": b"new"})
    desk.advance(4_000)
    assert again.result().leader == other
    assert len(again.result().members) == 2


def test_an_instance_that_is_gone_for_too_long_is_out() -> None:
    desk = Desk()
    desk.stable(instances=("one",))
    desk.advance(SESSION_MS)
    assert desk.state == "Empty"
    assert not back_at_once(desk)


def back_at_once(desk: Desk) -> bool:
    return desk.join(instance="one").done()


def test_instances_are_known_after_a_restart() -> None:
    desk = Desk()
    _, other = desk.stable(instances=("one", "two"))
    desk.crash()
    answer = back(desk, "two")
    assert answer.generation_id == 1
    assert desk.heartbeat(other, 1, "two") == ErrorCode.FENCED_INSTANCE_ID
    desk.crash()
    assert desk.heartbeat(answer.member_id, 1, "two") == ErrorCode.NONE


@pytest.mark.parametrize("instance", ["one", "two"])
def test_an_instance_stays_who_it_was_if_that_it_came_back_cannot_be_written(instance: str) -> None:
    desk = Desk()
    ids = desk.stable(instances=("one", "two"))
    before = {member.instance_id: member.member_id for member in desk.group().members.by_id.values()}
    leader = desk.group().members.leader
    desk.failure = KafkaError(ErrorCode.NOT_COORDINATOR)
    assert refusal_of(lambda: desk.join(instance=instance)) == ErrorCode.NOT_COORDINATOR
    after = {member.instance_id: member.member_id for member in desk.group().members.by_id.values()}
    assert (after, desk.group().members.leader, desk.state) == (before, leader, "Stable")
    assert {desk.heartbeat(member_id, 1) for member_id in ids} == {ErrorCode.NONE}
    assert desk.group().members.joining_count == 0
