"""What is kept of a group: its records, and the group that a load makes of them."""

from tests.unit.groups.classic.desk import (
    DELAY_MS,
    HOST,
    REBALANCE_MS,
    SESSION_MS,
    Desk,
    code_of,
    refusal_of,
)

from ottla.groups.entries import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from ottla.ledger import Entry, Replayed
from ottla.protocol.errors import ErrorCode, KafkaError

FULL = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the disk is full")


def test_a_new_group_leaves_an_empty_record() -> None:
    desk = Desk()
    desk.new_id()
    entry, value = desk.last_record()
    assert len(desk.records) == 1
    assert value == GroupMetadataValue(
        protocol_type="",
        generation=0,
        protocol=None,
        leader=None,
        current_state_timestamp=desk.clock.now_ms(),
        members=[],
    )
    assert entry.version == 3


def test_a_generation_is_written_when_the_leader_has_assigned_it() -> None:
    desk = Desk()
    waiting = desk.join(instance="one", version=5, client_id="app")
    desk.advance(DELAY_MS)
    began_ms = desk.clock.now_ms()
    desk.advance(10)
    assert len(desk.records) == 1
    member_id = waiting.result().member_id
    desk.sync(member_id, 1, {member_id: b"all"}, instance="one")
    _, value = desk.last_record()
    assert value == GroupMetadataValue(
        protocol_type="consumer",
        generation=1,
        protocol="range",
        leader=member_id,
        current_state_timestamp=began_ms,
        members=[
            MemberMetadata(
                member_id=member_id,
                group_instance_id="one",
                client_id="app",
                client_host=HOST,
                rebalance_timeout=REBALANCE_MS,
                session_timeout=SESSION_MS,
                subscription=b"topics",
                assignment=b"all",
            )
        ],
    )


def test_a_load_makes_the_group_of_the_last_record() -> None:
    desk = Desk()
    leader, other = desk.stable(2)
    described = desk.group().describe()
    desk.crash()
    assert desk.group().describe() == described
    assert desk.heartbeat(leader, 1) == desk.heartbeat(other, 1) == ErrorCode.NONE
    assert desk.sync(other, 1).result().assignment == b"part of " + other.encode()
    assert desk.join(leader).done() is False
    assert desk.group().members.leader == leader


def test_members_get_a_whole_session_after_a_load() -> None:
    desk = Desk()
    [leader] = desk.stable()
    desk.advance(SESSION_MS - 1)
    desk.crash()
    desk.advance(SESSION_MS - 1)
    assert desk.heartbeat(leader, 1) == ErrorCode.NONE
    desk.crash()
    desk.advance(SESSION_MS)
    assert desk.state == "Empty"


def test_a_generation_that_was_not_assigned_is_forgotten() -> None:
    desk = Desk()
    [leader] = desk.stable()
    assert desk.join(leader).result().generation_id == 2
    desk.crash()
    assert desk.heartbeat(leader, 2) == ErrorCode.ILLEGAL_GENERATION
    assert desk.join(leader).result().generation_id == 2


def test_after_a_load_only_the_agreed_protocol_is_known() -> None:
    desk = Desk()
    both = {"range": b"r", "sticky": b"s"}
    waiting = [desk.join(version=3, protocols=both) for _ in range(2)]
    desk.advance(2 * DELAY_MS)
    _, other = desk.sync_all([promise.result() for promise in waiting])
    desk.crash()
    assert not desk.join(other, protocols=both).done(), "it says something new"


def test_an_empty_group_stays_empty() -> None:
    desk = Desk()
    [leader] = desk.stable()
    desk.leave((leader, None))
    since_ms = desk.group().state_since_ms
    desk.advance(1_000)
    desk.crash()
    assert (desk.state, desk.group().generation, desk.group().state_since_ms) == ("Empty", 2, since_ms)
    assert desk.group().protocol_type == "consumer"
    waiting = desk.join(version=3)
    desk.advance(DELAY_MS)
    assert waiting.result().generation_id == 3


def test_a_deleted_group_is_gone_for_good() -> None:
    desk = Desk()
    [leader] = desk.stable()
    assert refusal_of(desk.delete) == ErrorCode.NON_EMPTY_GROUP
    desk.leave((leader, None))
    desk.delete()
    assert desk.groups == {}
    assert len(desk.timers) == 0
    desk.crash()
    assert desk.groups == {}
    assert code_of(desk.join(leader)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_record_of_an_older_version_is_understood() -> None:
    desk = Desk()
    member = MemberMetadata(
        member_id="m", client_id="c", client_host=HOST, session_timeout=9_000, subscription=b"", assignment=b"a"
    )
    value = GroupMetadataValue(
        protocol_type="consumer", generation=4, protocol="range", leader="gone", members=[member]
    )
    desk.records.append(Entry(GroupMetadataKey(group="readers"), value, 0).encode())
    desk.crash()
    assert desk.group().members.by_id["m"].rebalance_timeout_ms == 9_000
    assert desk.group().members.leader == "m"
    assert desk.group().state_since_ms is None
    assert desk.heartbeat("m", 4) == ErrorCode.NONE


def test_a_group_that_others_write_while_it_runs_has_sessions_too() -> None:
    desk = Desk()
    [leader] = desk.stable()
    entry, _ = desk.last_record()
    del desk.groups["readers"]
    desk.classic.replay(Replayed(9, 0, entry))
    assert desk.heartbeat(leader, 1) == ErrorCode.NONE
    desk.advance(SESSION_MS)
    assert desk.state == "Empty"


# Failures


def test_a_group_that_cannot_be_written_is_not_there() -> None:
    desk = Desk()
    desk.failure = FULL
    assert refusal_of(desk.join) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert refusal_of(lambda: desk.join(version=3)) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert desk.groups == {}
    assert len(desk.timers) == 0
    desk.failure = None
    desk.stable()


def test_an_assignment_that_cannot_be_written_is_given_to_nobody() -> None:
    desk = Desk()
    joined = [desk.join(version=3) for _ in range(2)]
    desk.advance(2 * DELAY_MS)
    leader, other = (promise.result().member_id for promise in joined)
    waiting = desk.sync(other, 1)
    desk.failure = FULL
    assert refusal_of(lambda: desk.sync(leader, 1, {other: b"b"})) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert code_of(waiting) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert desk.state == "PreparingRebalance"
    desk.failure = None
    again = [desk.join(member_id) for member_id in (leader, other)]
    desk.sync_all([promise.result() for promise in again])
    assert desk.group().generation == 2


def test_a_group_becomes_empty_even_if_that_cannot_be_written() -> None:
    desk = Desk()
    desk.stable()
    desk.failure = FULL
    desk.advance(SESSION_MS)
    assert desk.state == "Empty"


def test_those_who_wait_are_told_to_look_for_another_coordinator() -> None:
    desk = Desk()
    joining = desk.join(version=3)
    desk.unload()
    answer = joining.result()
    assert answer.error_code == ErrorCode.NOT_COORDINATOR
    assert answer.member_id.startswith("client-")
    waiting = [desk.join(version=3) for _ in range(2)]
    desk.advance(2 * DELAY_MS)
    syncing = desk.sync(waiting[1].result().member_id, 1)
    desk.unload()
    assert code_of(syncing) == ErrorCode.NOT_COORDINATOR


def test_answers_that_are_on_their_way_are_given_before_the_end() -> None:
    desk = Desk()
    waiting = [desk.join(version=3) for _ in range(100)]
    while desk.state == "PreparingRebalance":
        desk.fire_next()
    desk.unload()
    assert all(code_of(promise) == ErrorCode.NONE for promise in waiting)
