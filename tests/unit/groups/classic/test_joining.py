"""JoinGroup: who is let in, who waits for whom, and what they are told."""

import pytest
from tests.unit.groups.classic.desk import DELAY_MS, GROUP, REBALANCE_MS, SESSION_MS, Desk, code_of, refusal_of

from ottla.groups.classic import ClassicMember, members
from ottla.groups.classic.sessions import NEW_MEMBER_JOIN_TIMEOUT_MS
from ottla.protocol.errors import ErrorCode

STICKY_FIRST = {"sticky": b"s", "range": b"r"}
RANGE_FIRST = {"range": b"r", "sticky": b"s"}


def test_a_new_member_is_given_an_id_and_has_to_come_back_with_it() -> None:
    desk = Desk()
    answer = desk.join(client_id="app").result()
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert answer.member_id.startswith("app-")
    assert len(answer.member_id) == len("app-") + 36
    assert desk.state == "Empty"
    waiting = desk.join(answer.member_id)
    assert desk.state == "PreparingRebalance"
    assert not waiting.done()
    desk.advance(DELAY_MS)
    joined = waiting.result()
    assert joined.error_code == ErrorCode.NONE
    assert (joined.member_id, joined.leader, joined.generation_id) == (answer.member_id, answer.member_id, 1)
    assert (joined.protocol_type, joined.protocol_name) == ("consumer", "range")
    assert [(member.member_id, member.metadata) for member in joined.members] == [(answer.member_id, b"topics")]


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_before_version_4_a_new_member_is_added_at_once(version: int) -> None:
    desk = Desk()
    waiting = desk.join(version=version)
    desk.advance(DELAY_MS)
    assert code_of(waiting) == ErrorCode.NONE
    assert waiting.result().member_id.startswith("client-")


def test_version_0_has_its_session_as_its_patience() -> None:
    desk = Desk()
    desk.join(version=0, session_ms=7_000, rebalance_ms=-1)
    assert desk.group().members.rebalance_timeout_ms == 7_000


def test_an_id_that_was_given_out_is_void_after_a_session() -> None:
    desk = Desk()
    given = desk.new_id()
    desk.advance(SESSION_MS)
    assert code_of(desk.join(given)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_those_who_were_given_an_id() -> None:
    desk = Desk()
    [leader] = desk.stable()
    desk.new_id()
    waiting = desk.join(leader)
    assert not waiting.done()
    desk.advance(SESSION_MS)
    assert code_of(waiting) == ErrorCode.NONE


def test_ids_that_are_given_out_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "PENDING_LIMIT", 3)
    desk = Desk()
    given = [desk.new_id() for _ in range(5)]
    assert list(desk.group().members.pending) == given[2:]
    assert len(desk.timers) == 3
    assert code_of(desk.join(given[0])) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_of_a_group_that_is_not_there_is_unknown() -> None:
    desk = Desk()
    answer = desk.join("who").result()
    assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "who")
    assert desk.groups == {}
    assert desk.records == []


def test_a_member_that_an_empty_group_does_not_know() -> None:
    desk = Desk()
    desk.new_id()
    assert code_of(desk.join("who")) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_given_id_does_not_fit_a_static_member() -> None:
    desk = Desk()
    given = desk.new_id()
    assert refusal_of(lambda: desk.join(given, instance="one")) == ErrorCode.UNKNOWN_SERVER_ERROR


# Protocols


@pytest.mark.parametrize(("protocol_type", "protocols"), [("", {"range": b""}), ("consumer", {})])
def test_a_first_member_has_a_protocol_and_its_type(protocol_type: str, protocols: dict[str, bytes]) -> None:
    desk = Desk()
    answer = desk.join(protocol_type=protocol_type, protocols=protocols)
    assert code_of(answer) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert desk.state == "Empty", "the group is there all the same, as in Kafka"


@pytest.mark.parametrize(
    ("protocol_type", "protocols"), [("connect", {"range": b""}), ("consumer", {"other": b""}), ("consumer", {})]
)
def test_members_have_to_agree(protocol_type: str, protocols: dict[str, bytes]) -> None:
    desk = Desk()
    [leader] = desk.stable()
    for member_id in ("", leader):
        answer = desk.join(member_id, protocol_type=protocol_type, protocols=protocols).result()
        assert (answer.error_code, answer.member_id) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id)
    assert desk.state == "Stable"


def test_the_protocol_that_most_members_prefer_is_taken() -> None:
    desk = Desk()
    waiting = [desk.join(protocols=offered, version=3) for offered in (RANGE_FIRST, STICKY_FIRST, STICKY_FIRST)]
    desk.advance(REBALANCE_MS)
    assert [promise.result().protocol_name for promise in waiting] == ["sticky"] * 3
    assert [member.metadata for member in waiting[0].result().members] == [b"s"] * 3


def test_only_a_protocol_that_all_members_know_is_taken() -> None:
    desk = Desk()
    waiting = [desk.join(protocols=offered, version=3) for offered in (STICKY_FIRST, STICKY_FIRST, {"range": b""})]
    desk.advance(REBALANCE_MS)
    assert [promise.result().protocol_name for promise in waiting] == ["range"] * 3


def test_a_protocol_that_is_named_twice_counts_once() -> None:
    member = ClassicMember("one", None, "", "", 1, 1, (("range", b"1"), ("range", b"2")))
    known = members.Members()
    known.add(member)
    assert known.elected_protocol() == "range"
    assert known.agree_with((("range", b""),))


# The first rebalance


def test_the_first_members_wait_for_more_to_come() -> None:
    desk = Desk()
    first = desk.join(version=3)
    desk.advance(DELAY_MS - 1)
    second = desk.join(version=3)
    desk.advance(1)
    assert not first.done()
    desk.advance(DELAY_MS)
    assert first.result().leader == second.result().leader == first.result().member_id
    assert len(first.result().members) == 2
    assert second.result().members == []


def test_the_wait_for_more_ends_with_the_members_patience() -> None:
    desk = Desk()
    first = desk.join(version=3, rebalance_ms=2 * DELAY_MS + 500)
    for _ in range(2):
        desk.advance(DELAY_MS - 100)
        desk.join(version=3, rebalance_ms=500)
        desk.advance(100)
        assert not first.done()
    desk.join(version=3, rebalance_ms=500)
    desk.advance(500)
    assert first.done()


def test_without_a_delay_the_first_generation_begins_at_once() -> None:
    desk = Desk(group_initial_rebalance_delay_ms=0)
    waiting = desk.join(version=3)
    desk.advance(0)
    assert waiting.result().generation_id == 1


def test_a_new_member_is_given_up_after_five_minutes() -> None:
    desk = Desk(group_initial_rebalance_delay_ms=2 * NEW_MEMBER_JOIN_TIMEOUT_MS)
    waiting = desk.join(version=3)
    desk.advance(NEW_MEMBER_JOIN_TIMEOUT_MS)
    assert code_of(waiting) == ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.group().members.by_id == {}


# Joining again


def test_a_new_member_has_everybody_join_again() -> None:
    desk = Desk()
    [leader] = desk.stable()
    newcomer = desk.join(desk.new_id())
    assert desk.state == "PreparingRebalance"
    assert desk.heartbeat(leader, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    again = desk.join(leader)
    assert again.result().generation_id == newcomer.result().generation_id == 2
    assert again.result().leader == leader
    assert newcomer.result().members == []


def test_who_does_not_join_in_time_is_out() -> None:
    desk = Desk()
    leader, other = desk.stable(2)
    newcomer = desk.join(desk.new_id())
    for _ in range(5):
        desk.advance(REBALANCE_MS // 5)
        desk.heartbeat(leader, 1)
        desk.heartbeat(other, 1)
    joined = newcomer.result()
    assert joined.leader == joined.member_id
    assert [member.member_id for member in joined.members] == [joined.member_id]
    assert desk.heartbeat(leader, 2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_takes_as_long_as_the_most_patient_member_allows() -> None:
    desk = Desk()
    waiting = [desk.join(version=3, rebalance_ms=patience) for patience in (5_000, 60_000)]
    desk.advance(2 * DELAY_MS)
    ids = desk.sync_all([promise.result() for promise in waiting])
    joined = desk.join(desk.new_id(), rebalance_ms=1_000)
    for _ in range(11):
        desk.advance(5_000)
        assert [desk.heartbeat(member_id, 1) for member_id in ids] == [ErrorCode.REBALANCE_IN_PROGRESS] * 2
    assert not joined.done()
    desk.advance(5_000)
    assert joined.done()


def test_a_member_with_nothing_new_is_told_again_of_the_generation() -> None:
    desk = Desk()
    leader, other = desk.stable(2)
    answer = desk.join(other).result()
    assert (answer.error_code, answer.generation_id, answer.leader) == (ErrorCode.NONE, 1, leader)
    assert answer.members == []
    assert desk.state == "Stable"


def test_a_member_with_something_new_begins_a_rebalance() -> None:
    desk = Desk()
    _, other = desk.stable(2)
    assert not desk.join(other, protocols={"range": b"other topics"}).done()
    assert desk.state == "PreparingRebalance"


def test_the_leader_may_ask_for_a_rebalance_at_any_time() -> None:
    desk = Desk()
    leader, other = desk.stable(2)
    waiting = desk.join(leader)
    assert desk.state == "PreparingRebalance"
    assert desk.join(other).result().generation_id == waiting.result().generation_id == 2


def test_a_lost_answer_is_given_again_while_the_assignment_is_awaited() -> None:
    desk = Desk()
    waiting = [desk.join(version=3) for _ in range(2)]
    desk.advance(2 * DELAY_MS)
    for promise in waiting:
        joined = promise.result()
        assert desk.join(joined.member_id).result() == joined
    assert desk.state == "CompletingRebalance"


def test_something_new_during_a_sync_begins_another_rebalance() -> None:
    desk = Desk()
    waiting = [desk.join(version=3) for _ in range(2)]
    desk.advance(2 * DELAY_MS)
    leader, other = (promise.result().member_id for promise in waiting)
    syncing = desk.sync(other, 1)
    assert not desk.join(leader, protocols={"range": b"more"}).done()
    assert code_of(syncing) == ErrorCode.REBALANCE_IN_PROGRESS
    assert desk.state == "PreparingRebalance"


def test_a_client_that_came_back_on_another_connection_is_answered_on_both() -> None:
    desk = Desk()
    given = desk.new_id()
    first, second = desk.join(given), desk.join(given)
    desk.advance(DELAY_MS)
    assert first.result() == second.result()
    assert first.result() is not second.result()


def test_a_client_that_hung_up_still_counts_as_one_that_joined() -> None:
    desk = Desk()
    [leader] = desk.stable()
    given = desk.new_id()
    desk.join(given).cancel()
    joined = desk.join(leader).result()
    assert [member.member_id for member in joined.members] == [leader, given]
    desk.sync(leader, 2)
    for _ in range(SESSION_MS // 1_000):
        desk.advance(1_000)
        desk.heartbeat(leader, 2)
    assert list(desk.group().members.by_id) == [leader]


# Groups that are full


def test_a_full_group_takes_no_more() -> None:
    desk = Desk(group_max_size=2)
    ids = desk.stable(2)
    answer = desk.join().result()
    assert (answer.error_code, answer.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert desk.heartbeat(ids[0], 1) == ErrorCode.NONE


def test_a_group_that_became_too_large_turns_its_last_members_away() -> None:
    desk = Desk()
    ids = desk.stable(3)
    desk.set(group_max_size=2)
    desk.crash()
    assert desk.state == "PreparingRebalance"
    waiting = [desk.join(member_id) for member_id in ids]
    assert [code_of(promise) for promise in waiting] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
    ]
    assert len(waiting[0].result().members) == 2


def test_many_members_are_answered_piece_by_piece() -> None:
    desk = Desk()
    waiting = [desk.join(version=3) for _ in range(100)]
    while desk.state == "PreparingRebalance":
        desk.fire_next()
    assert 0 < sum(promise.done() for promise in waiting) < 100
    desk.advance(0)
    assert all(code_of(promise) == ErrorCode.NONE for promise in waiting)


def test_two_groups_do_not_know_of_each_other() -> None:
    desk = Desk()
    [member] = desk.stable()
    assert code_of(desk.join(member, group_id="others")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.join(group_id="others", version=3).done() is False
    assert desk.group(GROUP).state_name == "Stable"
