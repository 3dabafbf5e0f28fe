"""A classic group, as commits, listings, deletions and the expiry of offsets see it."""

import struct

import pytest
from tests.unit.groups.classic.desk import DELAY_MS, GROUP, HOST, SESSION_MS, Desk, refusal_of

from ottla.groups.group import Committer, Group
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription, TopicPartition
from ottla.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember

NOBODY = Committer()


def subscription(*topics: str, version: int = 3) -> bytes:
    message = ConsumerProtocolSubscription(
        topics=list(topics), owned_partitions=[TopicPartition(topic="owned", partitions=[1])]
    )
    return struct.pack(">h", version) + message.encode(min(version, 3))


def commit_refusal(group: Group, committer: Committer, *, is_transactional: bool = False) -> ErrorCode:
    return refusal_of(lambda: group.check_commit(committer, is_transactional=is_transactional, api_version=9))


def commit(group: Group, committer: Committer, *, is_transactional: bool = False) -> None:
    group.check_commit(committer, is_transactional=is_transactional, api_version=9)


def test_members_of_the_generation_may_commit() -> None:
    desk = Desk()
    [leader] = desk.stable()
    group = desk.group()
    commit(group, Committer(leader, None, 1))
    assert commit_refusal(group, Committer(leader, None, 0)) == ErrorCode.ILLEGAL_GENERATION
    assert commit_refusal(group, Committer(leader, None, -1)) == ErrorCode.ILLEGAL_GENERATION
    assert commit_refusal(group, Committer("who", None, 1)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_refusal(group, Committer("", None, 1)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_refusal(group, Committer(leader, "i", 1)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_refusal(group, NOBODY) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_fenced_instance_may_not_commit() -> None:
    desk = Desk()
    _, other = desk.stable(instances=("one", "two"))
    commit(desk.group(), Committer(other, "two", 1))
    desk.join(instance="two")
    assert commit_refusal(desk.group(), Committer(other, "two", 1)) == ErrorCode.FENCED_INSTANCE_ID
    assert commit_refusal(desk.group(), Committer(other, None, 1)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_members_may_commit_before_they_join_again_and_not_before_they_are_assigned() -> None:
    desk = Desk()
    leader, other = desk.stable(2)
    waiting = desk.join(leader)
    commit(desk.group(), Committer(other, None, 1))
    desk.join(other)
    assert waiting.done()
    assert commit_refusal(desk.group(), Committer(other, None, 2)) == ErrorCode.REBALANCE_IN_PROGRESS
    commit(desk.group(), Committer(other, None, 2), is_transactional=True)


def test_an_empty_group_takes_commits_of_those_who_need_no_members() -> None:
    desk = Desk()
    desk.new_id()
    commit(desk.group(), NOBODY)
    commit(desk.group(), Committer("any", None, -1))
    assert commit_refusal(desk.group(), Committer("any", None, 0)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_transactions_of_old_clients_do_not_say_who_they_are() -> None:
    desk = Desk()
    desk.stable()
    commit(desk.group(), NOBODY, is_transactional=True)


def test_a_commit_is_a_sign_of_life() -> None:
    desk = Desk()
    [leader] = desk.stable()
    for _ in range(3):
        desk.advance(SESSION_MS - 1)
        desk.group().commit_happened(Committer(leader, None, 1), desk.clock.now_ms())
        desk.group().commit_happened(NOBODY, desk.clock.now_ms())
    assert desk.heartbeat(leader, 1) == ErrorCode.NONE


def test_a_group_that_is_no_more_refuses_everything() -> None:
    desk = Desk()
    [leader] = desk.stable()
    group = desk.group()
    desk.leave((leader, None))
    desk.delete()
    assert commit_refusal(group, NOBODY) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert refusal_of(lambda: group.check_fetch(NOBODY)) == ErrorCode.GROUP_ID_NOT_FOUND
    assert refusal_of(group.check_delete) == ErrorCode.GROUP_ID_NOT_FOUND


# Topics


@pytest.mark.parametrize("version", [0, 1, 3, 9])
def test_topics_that_members_read(version: int) -> None:
    desk = Desk()
    for topics in (("a", "b"), ("b", "c")):
        desk.join(version=3, protocols={"range": subscription(*topics, version=version)})
    desk.advance(2 * DELAY_MS)
    group = desk.group()
    assert [group.is_subscribed(topic) for topic in ("a", "b", "c", "owned")] == [True, True, True, False]


@pytest.mark.parametrize("garbage", [b"", b"\0", b"\0\0\0\0\0\5", struct.pack(">h", -1), b"topics"])
def test_of_members_that_cannot_be_understood_any_topic_may_be_read(garbage: bytes) -> None:
    desk = Desk()
    desk.join(version=3, protocols={"range": garbage})
    desk.advance(DELAY_MS)
    assert desk.group().is_subscribed("any")


def test_topics_are_known_after_a_load() -> None:
    desk = Desk()
    waiting = desk.join(version=3, protocols={"range": subscription("a")})
    desk.advance(DELAY_MS)
    desk.sync_all([waiting.result()])
    desk.crash()
    assert desk.group().is_subscribed("a")
    assert not desk.group().is_subscribed("b")


def test_others_than_consumers_read_no_topics() -> None:
    desk = Desk()
    desk.join(version=3, protocol_type="connect", protocols={"default": subscription("a")})
    desk.advance(DELAY_MS)
    assert not desk.group().is_subscribed("a")
    assert desk.group().protocol_type == "connect"


# Offsets


def test_offsets_age_from_when_the_group_became_empty() -> None:
    desk = Desk()
    waiting = desk.join(version=3, protocols={"range": subscription("a")})
    assert desk.group().offset_expiry_base_ms(5) is None
    desk.advance(DELAY_MS)
    [leader] = desk.sync_all([waiting.result()])
    assert desk.group().offset_expiry_base_ms(5) == 5, "those of topics that it does not read"
    desk.leave((leader, None))
    emptied_ms = desk.clock.now_ms()
    desk.advance(1_000)
    assert desk.group().offset_expiry_base_ms(5) == emptied_ms


def test_offsets_of_a_group_that_is_not_understood_do_not_age() -> None:
    desk = Desk()
    desk.stable()
    assert desk.group().offset_expiry_base_ms(5) is None


def test_offsets_of_a_group_that_never_had_members_age_from_their_commit() -> None:
    desk = Desk()
    desk.new_id()
    assert desk.group().offset_expiry_base_ms(5) == 5


# Listing and describing


def test_what_is_shown_of_a_group() -> None:
    desk = Desk()
    waiting = desk.join(instance="one", client_id="app")
    group = desk.group()
    assert (group.group_id, group.kind, group.protocol_type) == (GROUP, "classic", "consumer")
    desk.advance(DELAY_MS)
    member_id = waiting.result().member_id
    assert group.describe().group_state == "CompletingRebalance"
    assert group.describe().members[0].member_metadata == b""
    desk.sync_all([waiting.result()])
    assert group.describe() == DescribedGroup(
        group_id=GROUP,
        group_state="Stable",
        protocol_type="consumer",
        protocol_data="range",
        members=[
            DescribedGroupMember(
                member_id=member_id,
                group_instance_id="one",
                client_id="app",
                client_host=HOST,
                member_metadata=b"topics",
                member_assignment=b"part of " + member_id.encode(),
            )
        ],
    )
    desk.leave((member_id, "one"))
    assert group.is_empty
    assert group.describe() == DescribedGroup(group_id=GROUP, group_state="Empty", protocol_type="consumer", members=[])
