"""Offsets of groups: who may commit, what is kept, and what is forgotten when."""

import pytest
from tests.unit.groups.offset_rig import GroupRig, Members, code_of, offset, run
from tests.unit.replication.rig import turns

from ottla.groups.entries import LegacyOffsetCommitKey, LegacyOffsetCommitValue, OffsetCommitKey
from ottla.groups.group import CONSUMER, Committer
from ottla.groups.offsets import FetchedOffset
from ottla.ledger import Decision, Entry
from ottla.protocol.errors import ErrorCode, KafkaError

NOTHING = FetchedOffset(0)
OLD_ID, NEW_ID = bytes(range(1, 17)), bytes(range(2, 18))


def test_a_commit_outside_of_groups_is_kept_and_makes_a_group() -> None:
    async def scenario(rig: GroupRig) -> None:
        assert rig.fetch("g", "t", 0) == NOTHING
        codes = rig.commit("g", offset("t", 0, 7, 3, "here"), offset("t", 1, 8, metadata=None))
        assert codes == [ErrorCode.NONE, ErrorCode.NONE]
        for _ in range(2):
            assert rig.fetch("g", "t", 0) == FetchedOffset(0, 7, 3, "here")
            assert rig.fetch("g", "t", 1) == FetchedOffset(1, 8, -1, "")
            assert rig.fetch("g", "t", 2) == FetchedOffset(2)
            assert rig.fetch("other", "t", 0) == NOTHING
            assert rig.group_ids() == ["g"]
            await rig.restart()

    run(scenario)


def test_the_last_commit_counts_also_when_it_goes_back() -> None:
    async def scenario(rig: GroupRig) -> None:
        for number in (5, 9, 2):
            rig.commit("g", offset("t", 0, number))
        assert rig.fetch("g", "t", 0).offset == 2
        assert rig.machine.offsets.table.size == 1

    run(scenario)


@pytest.mark.parametrize(
    ("api_version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_a_member_of_no_group_cannot_commit(api_version: int, code: ErrorCode) -> None:
    async def scenario(rig: GroupRig) -> None:
        with pytest.raises(KafkaError) as raised:
            rig.commit("g", offset("t", 0, 7), committer=Committer("m", None, 3), api_version=api_version)
        assert raised.value.code is code
        with pytest.raises(KafkaError) as in_transaction:
            rig.commit_in_transaction("g", 1, offset("t", 0, 7), committer=Committer("m", None, 3))
        assert in_transaction.value.code is ErrorCode.ILLEGAL_GENERATION
        assert rig.group_ids() == []

    run(scenario)


def test_a_simple_group_has_no_members_to_commit_for() -> None:
    async def scenario(rig: GroupRig) -> None:
        rig.commit("g", offset("t", 0, 7))
        with pytest.raises(KafkaError) as raised:
            rig.commit("g", offset("t", 0, 8), committer=Committer("m", None, 0))
        assert raised.value.code is ErrorCode.UNKNOWN_MEMBER_ID
        rig.commit("g", offset("t", 0, 9), committer=Committer("whoever", None, -1))
        assert rig.fetch("g", "t", 0).offset == 9

    run(scenario)


def test_a_group_with_members_decides_who_commits() -> None:
    async def scenario(rig: GroupRig) -> None:
        group = rig.machine.groups["g"] = Members("g")
        member = Committer("m", "instance", 4)
        rig.commit("g", offset("t", 0, 7), committer=member)
        assert group.committed == [member]
        group.refusal = KafkaError(ErrorCode.STALE_MEMBER_EPOCH)
        with pytest.raises(KafkaError) as raised:
            rig.commit("g", offset("t", 0, 8), committer=member)
        assert code_of(raised.value) is ErrorCode.STALE_MEMBER_EPOCH
        with pytest.raises(KafkaError) as in_transaction:
            rig.commit_in_transaction("g", 1, offset("t", 0, 8), committer=member)
        assert in_transaction.value.code is ErrorCode.ILLEGAL_GENERATION
        assert rig.fetch("g", "t", 0).offset == 7

    run(scenario)


def test_long_metadata_is_refused_partition_by_partition() -> None:
    async def scenario(rig: GroupRig) -> None:
        fits, long = "x" * 8, "x" * 9
        wide, too_wide = "\N{GRINNING FACE}" * 4, "\N{GRINNING FACE}" * 5
        codes = rig.commit(
            "g", *(offset("t", index, 1, metadata=text) for index, text in enumerate((fits, long, wide, too_wide)))
        )
        too_large = ErrorCode.OFFSET_METADATA_TOO_LARGE
        assert codes == [ErrorCode.NONE, too_large, ErrorCode.NONE, too_large]
        assert rig.fetch("g", "t", 2).metadata == wide
        assert rig.fetch("g", "t", 1).offset == -1

    run(scenario, offset_metadata_max_bytes=8)


def test_all_offsets_of_a_group_come_in_order() -> None:
    async def scenario(rig: GroupRig) -> None:
        rig.commit("g", offset("b", 1, 4), offset("a", 0, 1), offset("b", 0, 3))
        found = rig.machine.offsets.fetch("g", None, None, is_stable=True)
        assert found == [
            ("a", [FetchedOffset(0, 1)]),
            ("b", [FetchedOffset(0, 3), FetchedOffset(1, 4)]),
        ]
        assert rig.machine.offsets.fetch("unknown", None, None, is_stable=False) == []

    run(scenario)


def test_a_member_that_says_who_it_is_is_checked() -> None:
    async def scenario(rig: GroupRig) -> None:
        group = rig.machine.groups["g"] = Members("g", CONSUMER)
        group.refusal = KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        with pytest.raises(KafkaError):
            rig.machine.offsets.fetch("g", Committer("m", None, 1), None, is_stable=False)
        assert rig.machine.offsets.fetch("g", None, None, is_stable=False) == []

    run(scenario)


# Transactions


def test_offsets_of_a_transaction_count_when_it_is_committed() -> None:
    async def scenario(rig: GroupRig) -> None:
        rig.commit("g", offset("t", 0, 1))
        rig.commit_in_transaction("g", 5, offset("t", 0, 2), offset("t", 1, 3))
        for _ in range(2):
            assert rig.fetch("g", "t", 0).offset == 1
            assert rig.fetch("g", "t", 0, is_stable=True).error is ErrorCode.UNSTABLE_OFFSET_COMMIT
            assert rig.fetch("g", "t", 1, is_stable=True).error is ErrorCode.UNSTABLE_OFFSET_COMMIT
            assert rig.fetch("g", "t", 2, is_stable=True).error is ErrorCode.NONE
            await rig.restart()
        rig.end(5, is_commit=True)
        for _ in range(2):
            assert rig.fetch("g", "t", 0, is_stable=True).offset == 2
            assert rig.fetch("g", "t", 1, is_stable=True).offset == 3
            await rig.restart()

    run(scenario)


def test_offsets_of_an_aborted_transaction_never_count() -> None:
    async def scenario(rig: GroupRig) -> None:
        rig.commit_in_transaction("g", 5, offset("t", 0, 2))
        assert rig.group_ids() == ["g"]
        rig.end(5, is_commit=False)
        for _ in range(2):
            assert rig.fetch("g", "t", 0, is_stable=True) == NOTHING
            await rig.restart()

    run(scenario)


def test_a_commit_during_a_transaction_is_newer_than_what_the_transaction_brings() -> None:
    async def scenario(rig: GroupRig) -> None:
        rig.commit_in_transaction("g", 5, offset("t", 0, 2))
        rig.commit("g", offset("t", 0, 9))
        rig.end(5, is_commit=True)
        for _ in range(2):
            assert rig.fetch("g", "t", 0, is_stable=True).offset == 9
            await rig.restart()

    run(scenario)


def test_a_deleted_offset_is_not_brought_back_by_its_transaction() -> None:
    async def scenario(rig: GroupRig) -> None:
        rig.commit_in_transaction("g", 5, offset("t", 0, 2), offset("t", 1, 2))
        assert rig.delete("g", ("t", 0)) == [ErrorCode.NONE]
        rig.end(5, is_commit=True)
        for _ in range(2):
            assert rig.fetch("g", "t", 0) == NOTHING
            assert rig.fetch("g", "t", 1).offset == 2
            await rig.restart()

    run(scenario)


# Deleting


def test_deleting_offsets() -> None:
    async def scenario(rig: GroupRig) -> None:
        with pytest.raises(KafkaError) as raised:
            rig.delete("g", ("t", 0))
        assert raised.value.code is ErrorCode.GROUP_ID_NOT_FOUND
        rig.commit("g", offset("t", 0, 1), offset("t", 1, 2))
        assert rig.delete("g", ("t", 0), ("t", 9)) == [ErrorCode.NONE, ErrorCode.NONE]
        assert rig.fetch("g", "t", 0) == NOTHING
        assert rig.fetch("g", "t", 1).offset == 2
        assert rig.context.counts.offset_deletions == 1

    run(scenario)


def test_offsets_that_members_use_are_not_deleted() -> None:
    async def scenario(rig: GroupRig) -> None:
        group = rig.machine.groups["g"] = Members("g")
        group.topics = {"read"}
        rig.commit("g", offset("read", 0, 1), offset("left", 0, 2))
        codes = rig.delete("g", ("read", 0), ("left", 0))
        assert codes == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE]
        assert rig.fetch("g", "read", 0).offset == 1
        group.protocol_type = "connect"
        with pytest.raises(KafkaError) as raised:
            rig.delete("g", ("left", 0))
        assert raised.value.code is ErrorCode.NON_EMPTY_GROUP

    run(scenario)


def test_deleting_a_group_takes_its_offsets() -> None:
    async def scenario(rig: GroupRig) -> None:
        rig.commit("g", offset("t", 0, 1))
        rig.commit("other", offset("t", 0, 1))
        rig.commit_in_transaction("g", 5, offset("t", 1, 2))
        rig.delete_group("g")
        rig.end(5, is_commit=True)
        for _ in range(2):
            assert rig.group_ids() == ["other"]
            assert rig.fetch("g", "t", 0) == rig.fetch("unknown", "t", 0)
            assert rig.fetch("g", "t", 1) == FetchedOffset(1)
            await rig.restart()
        with pytest.raises(KafkaError) as raised:
            rig.delete_group("g")
        assert raised.value.code is ErrorCode.GROUP_ID_NOT_FOUND

    run(scenario)


def test_a_group_with_more_offsets_than_a_batch_can_hold_is_deleted() -> None:
    async def scenario(rig: GroupRig) -> None:
        for first in range(0, 40_000, 4_000):
            rig.commit("g", *(offset("t", partition, 1) for partition in range(first, first + 4_000)))
        rig.delete_group("g")
        assert rig.group_ids() == []
        assert rig.fetch("g", "t", 39_999) == FetchedOffset(39_999)
        await rig.restart()
        assert rig.group_ids() == []

    run(scenario)


def test_a_group_stays_after_its_last_offset_was_deleted() -> None:
    async def scenario(rig: GroupRig) -> None:
        rig.commit("g", offset("t", 0, 1))
        rig.delete("g", ("t", 0))
        assert rig.group_ids() == ["g"]
        rig.delete_group("g")
        assert rig.group_ids() == []

    run(scenario)


def test_offsets_of_deleted_topics_go() -> None:
    async def scenario(rig: GroupRig) -> None:
        for group_id in ("g", "h"):
            rig.commit(group_id, offset("gone", 0, 1), offset("stays", 0, 2))
        rig.commit_in_transaction("g", 5, offset("gone", 1, 2))
        rig.machine.topics_changed({"gone": frozenset((OLD_ID,))})
        await turns()
        rig.end(5, is_commit=True)
        for _ in range(2):
            for group_id in ("g", "h"):
                assert rig.fetch(group_id, "gone", 0) == NOTHING
                assert rig.fetch(group_id, "gone", 1) == FetchedOffset(1)
                assert rig.fetch(group_id, "stays", 0).offset == 2
            await rig.restart()

    run(scenario)


def test_very_many_offsets_of_deleted_topics_go_in_several_batches() -> None:
    async def scenario(rig: GroupRig) -> None:
        rig.commit("g", *(offset("gone", index, 1) for index in range(2_500)))
        batches_before = rig.held.log.log_end_offset
        rig.machine.topics_changed({"gone": frozenset((OLD_ID,))})
        await turns(50)
        assert rig.machine.offsets.table.size == 0
        assert rig.held.log.log_end_offset == batches_before + 2_500

    run(scenario)


def test_an_offset_belongs_to_a_topic_and_not_only_to_its_name() -> None:
    async def scenario(rig: GroupRig) -> None:
        rig.commit("g", offset("again", 0, 1, topic_id=OLD_ID), offset("again", 1, 2, topic_id=NEW_ID))
        rig.commit("g", offset("again", 2, 3))
        for _ in range(2):
            seen = rig.machine.offsets.fetch(
                "g", None, [("again", [0, 1, 2])], is_stable=False, topic_ids={"again": NEW_ID}
            )
            assert [part.offset for part in seen[0][1]] == [-1, 2, 3]
            await rig.restart()
        rig.machine.topics_changed({"again": frozenset((OLD_ID,))})
        await turns()
        assert rig.fetch("g", "again", 0) == NOTHING
        assert rig.fetch("g", "again", 1).offset == 2
        assert rig.fetch("g", "again", 2) == FetchedOffset(2), "nobody said of which topic it was"

    run(scenario)


def test_a_group_may_allow_some_partitions_only() -> None:
    async def scenario(rig: GroupRig) -> None:
        group = rig.machine.groups["g"] = Members("g")
        group.refused_partition = 1
        rig.commit("g", offset("t", 0, 7))
        with pytest.raises(KafkaError) as raised:
            rig.commit("g", offset("t", 0, 8), offset("t", 1, 8))
        assert raised.value.code is ErrorCode.STALE_MEMBER_EPOCH
        with pytest.raises(KafkaError) as in_transaction:
            rig.commit_in_transaction("g", 5, offset("t", 1, 8))
        assert in_transaction.value.code is ErrorCode.ILLEGAL_GENERATION
        assert rig.fetch("g", "t", 0).offset == 7

    run(scenario)


# Records of others


def test_records_of_very_old_brokers_are_understood() -> None:
    async def scenario(rig: GroupRig) -> None:
        key = LegacyOffsetCommitKey(group="old", topic="t", partition=0)
        value = LegacyOffsetCommitValue(offset=4, metadata="m", commit_timestamp=rig.clock.now_ms())
        rig.ledger.write(lambda: Decision(None, [Entry(key, value)]))
        for _ in range(2):
            assert rig.fetch("old", "t", 0) == FetchedOffset(0, 4, -1, "m")
            await rig.restart()
        rig.ledger.write(lambda: Decision(None, [Entry(OffsetCommitKey(group="old", topic="t", partition=0))]))
        assert rig.fetch("old", "t", 0) == NOTHING

    run(scenario)
