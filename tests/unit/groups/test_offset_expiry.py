"""What is forgotten of groups, and when."""

from tests.unit.groups.offset_rig import GroupRig, Members, offset, run
from tests.unit.replication.rig import turns

from ottla.groups.offsets import FetchedOffset
from ottla.protocol.errors import ErrorCode

DAY_MS = 86_400_000
NOTHING = FetchedOffset(0)


def test_offsets_of_a_simple_group_expire_one_by_one_and_then_the_group() -> None:
    async def scenario(rig: GroupRig) -> None:
        rig.commit("g", offset("t", 0, 1))
        rig.clock.advance(DAY_MS)
        rig.commit("g", offset("t", 1, 1))
        await turns(50)
        assert rig.fetch("g", "t", 0).offset == 1
        rig.clock.advance(DAY_MS)
        await turns(50)
        assert rig.fetch("g", "t", 0) == NOTHING
        assert rig.fetch("g", "t", 1).offset == 1
        rig.clock.advance(DAY_MS)
        await turns(50)
        assert rig.group_ids() == []
        assert rig.context.counts.offset_expirations == 2
        await rig.restart()
        assert rig.group_ids() == []

    run(scenario, offsets_retention_ms=2 * DAY_MS, offsets_retention_check_interval_ms=0)


def test_a_client_may_ask_for_more_time_than_there_is() -> None:
    async def scenario(rig: GroupRig) -> None:
        assert rig.commit("g", offset("t", 0, 1), retention_ms=2**63 - 1, api_version=4) == [ErrorCode.NONE]
        assert rig.commit("g", offset("t", 1, 1), retention_ms=-(2**63), api_version=4) == [ErrorCode.NONE]
        await rig.restart()
        rig.clock.advance(1_000_000 * DAY_MS)
        await turns(50)
        assert rig.fetch("g", "t", 0).offset == 1
        assert rig.fetch("g", "t", 1) == FetchedOffset(1)

    run(scenario, offsets_retention_check_interval_ms=0)


def test_more_offsets_than_a_batch_can_hold_expire() -> None:
    async def scenario(rig: GroupRig) -> None:
        for first in range(0, 40_000, 4_000):
            rig.commit("g", *(offset("t", partition, 1) for partition in range(first, first + 4_000)))
        rig.clock.advance(DAY_MS)
        await turns(50)
        assert rig.group_ids() == []
        assert rig.context.counts.offset_expirations == 40_000

    run(scenario, offsets_retention_ms=DAY_MS, offsets_retention_check_interval_ms=0)


def test_a_client_may_choose_when_its_offsets_expire() -> None:
    async def scenario(rig: GroupRig) -> None:
        rig.commit("g", offset("t", 0, 1), retention_ms=1_000, api_version=4)
        rig.commit("g", offset("t", 1, 1))
        await rig.restart()
        rig.clock.advance(1_000)
        await turns(50)
        assert rig.fetch("g", "t", 0) == NOTHING
        assert rig.fetch("g", "t", 1).offset == 1

    run(scenario, offsets_retention_ms=2 * DAY_MS, offsets_retention_check_interval_ms=0)


def test_offsets_of_a_group_in_use_expire_only_where_it_stopped_reading() -> None:
    async def scenario(rig: GroupRig) -> None:
        group = rig.machine.groups["g"] = Members("g")
        rig.commit("g", offset("read", 0, 1), offset("left", 0, 2))
        rig.clock.advance(3 * DAY_MS)
        await turns(50)
        assert rig.fetch("g", "left", 0).offset == 2, "nobody knows what it reads"
        group.topics = {"read"}
        await turns(50)
        assert rig.fetch("g", "left", 0) == NOTHING
        assert rig.fetch("g", "read", 0).offset == 1
        group.is_empty, group.topics, group.emptied_ms = True, set(), rig.clock.now_ms()
        rig.clock.advance(DAY_MS)
        await turns(50)
        assert rig.fetch("g", "read", 0).offset == 1
        rig.clock.advance(DAY_MS)
        await turns(50)
        assert rig.fetch("g", "read", 0) == NOTHING

    run(scenario, offsets_retention_ms=2 * DAY_MS, offsets_retention_check_interval_ms=0)


def test_offsets_that_a_transaction_is_about_to_change_do_not_expire() -> None:
    async def scenario(rig: GroupRig) -> None:
        rig.commit("g", offset("t", 0, 1), offset("t", 1, 1))
        rig.commit_in_transaction("g", 5, offset("t", 0, 2))
        rig.clock.advance(DAY_MS)
        await turns(50)
        assert rig.fetch("g", "t", 0).offset == 1
        assert rig.fetch("g", "t", 1) == FetchedOffset(1)
        assert rig.group_ids() == ["g"]

    run(scenario, offsets_retention_ms=DAY_MS, offsets_retention_check_interval_ms=0)
