"""SyncGroup and Heartbeat: each gets its part once, and learns when it is no longer its own."""

from typing import NamedTuple

import pytest
from tests.unit.groups.classic.desk import DELAY_MS, REBALANCE_MS, SESSION_MS, Desk, code_of, refusal_of

from ottla.protocol.errors import ErrorCode


class Pair(NamedTuple):
    desk: Desk
    leader: str
    other: str


@pytest.fixture
def joined() -> Pair:
    """Two members of generation 1, neither of which has asked for its part."""
    desk = Desk()
    waiting = [desk.join(version=3) for _ in range(2)]
    desk.advance(2 * DELAY_MS)
    leader, other = (promise.result().member_id for promise in waiting)
    assert desk.state == "CompletingRebalance"
    return Pair(desk, leader, other)


def test_everybody_waits_for_the_leader(joined: Pair) -> None:
    desk, leader, other = joined
    waiting = desk.sync(other, 1, {other: b"what it would like"})
    assert not waiting.done()
    mine = desk.sync(leader, 1, {leader: b"a", other: b"b", "stranger": b"c"})
    assert (mine.result().assignment, waiting.result().assignment) == (b"a", b"b")
    assert (mine.result().protocol_type, mine.result().protocol_name) == ("consumer", "range")
    assert desk.state == "Stable"
    assert desk.counts.completed_rebalances == 1


def test_who_comes_after_the_leader_is_answered_at_once(joined: Pair) -> None:
    desk, leader, other = joined
    desk.sync(leader, 1, {other: b"b"})
    for _ in range(2):
        assert desk.sync(other, 1).result().assignment == b"b"
    assert desk.sync(leader, 1, {leader: b"too late"}).result().assignment == b""


def test_a_member_that_asks_twice_is_answered_twice(joined: Pair) -> None:
    desk, leader, other = joined
    first, second = desk.sync(other, 1), desk.sync(other, 1)
    desk.sync(leader, 1, {other: b"b"})
    assert first.result().assignment == second.result().assignment == b"b"


@pytest.mark.parametrize("generation", [0, 2, -1])
def test_another_generation_is_refused(joined: Pair, generation: int) -> None:
    desk, leader, _ = joined
    assert refusal_of(lambda: desk.sync(leader, generation)) == ErrorCode.ILLEGAL_GENERATION
    assert desk.heartbeat(leader, generation) == ErrorCode.ILLEGAL_GENERATION


def test_strangers_are_refused(joined: Pair) -> None:
    desk, leader, _ = joined
    assert refusal_of(lambda: desk.sync("who", 1)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert refusal_of(lambda: desk.sync(leader, 1, instance="i")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.heartbeat("who", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert code_of(desk.sync("who", 1, group_id="nothing")) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_heartbeat_to_a_group_that_is_not_there() -> None:
    assert Desk().heartbeat("who", 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_empty_group_has_nothing_to_sync() -> None:
    desk = Desk()
    given = desk.new_id()
    assert code_of(desk.sync(given, 0)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.heartbeat(given, 0) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(("protocol_type", "protocol"), [("connect", "range"), ("consumer", "sticky")])
def test_another_protocol_is_noticed(joined: Pair, protocol_type: str, protocol: str) -> None:
    desk, leader, _ = joined
    code = refusal_of(lambda: desk.sync(leader, 1, protocol_type=protocol_type, protocol=protocol))
    assert code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_older_versions_do_not_say_which_protocol_they_mean(joined: Pair) -> None:
    desk, leader, _ = joined
    assert code_of(desk.sync(leader, 1, protocol_type=None, protocol=None)) == ErrorCode.NONE


def test_a_sync_during_a_rebalance_sends_the_member_back() -> None:
    desk = Desk()
    leader, other = desk.stable(2)
    desk.join(leader)
    assert refusal_of(lambda: desk.sync(other, 1)) == ErrorCode.REBALANCE_IN_PROGRESS


def test_those_who_wait_learn_of_a_rebalance(joined: Pair) -> None:
    desk, _, other = joined
    waiting = desk.sync(other, 1)
    desk.join(version=3)
    assert code_of(waiting) == ErrorCode.REBALANCE_IN_PROGRESS


def test_heartbeats_count_while_the_assignment_is_awaited(joined: Pair) -> None:
    desk, leader, other = joined
    for _ in range(3):
        desk.advance(SESSION_MS // 2)
        assert desk.heartbeat(leader, 1) == desk.heartbeat(other, 1) == ErrorCode.NONE


def test_members_that_never_ask_are_out_when_the_rebalance_should_be_over(joined: Pair) -> None:
    desk, leader, other = joined
    waiting = desk.sync(other, 1)
    for _ in range(REBALANCE_MS // 5_000):
        desk.advance(5_000)
        desk.heartbeat(leader, 1)
    assert code_of(waiting) == ErrorCode.REBALANCE_IN_PROGRESS
    assert list(desk.group().members.by_id) == [other]
    assert desk.join(other).result().leader == other


def test_a_member_that_never_asks_goes_even_if_the_others_are_stable(joined: Pair) -> None:
    desk, leader, other = joined
    desk.sync(leader, 1, {leader: b"all"})
    for _ in range(REBALANCE_MS // 5_000):
        desk.advance(5_000)
        desk.heartbeat(leader, 1)
        desk.heartbeat(other, 1)
    assert desk.state == "PreparingRebalance"
    assert list(desk.group().members.by_id) == [leader]


def test_nobody_goes_when_all_have_asked(joined: Pair) -> None:
    desk, leader, other = joined
    desk.sync(leader, 1)
    desk.sync(other, 1)
    for _ in range(2 * REBALANCE_MS // 5_000):
        desk.advance(5_000)
        assert desk.heartbeat(leader, 1) == desk.heartbeat(other, 1) == ErrorCode.NONE


def test_a_member_that_is_not_heard_of_is_out() -> None:
    desk = Desk()
    leader, other = desk.stable(2)
    desk.advance(SESSION_MS // 2)
    desk.heartbeat(leader, 1)
    desk.advance(SESSION_MS // 2)
    assert desk.heartbeat(other, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.heartbeat(leader, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert desk.join(leader).result().generation_id == 2


def test_who_waits_for_the_assignment_needs_no_heartbeats(joined: Pair) -> None:
    desk, leader, other = joined
    waiting = desk.sync(other, 1)
    for _ in range(2):
        desk.advance(SESSION_MS - 1)
        desk.heartbeat(leader, 1)
    desk.sync(leader, 1, {other: b"b"})
    assert waiting.result().assignment == b"b"
    desk.advance(SESSION_MS - 1)
    assert desk.heartbeat(other, 1) == ErrorCode.NONE


def test_when_the_leader_dies_the_next_one_leads(joined: Pair) -> None:
    desk, leader, other = joined
    waiting = desk.sync(other, 1)
    desk.advance(SESSION_MS)
    assert code_of(waiting) == ErrorCode.REBALANCE_IN_PROGRESS
    assert desk.join(other).result().leader == other
    assert desk.heartbeat(leader, 2) == ErrorCode.UNKNOWN_MEMBER_ID
