"""A group moves from the classic protocol to the new one while it runs, and back."""

import pytest
from tests.unit.groups.consumer.classic_consumer import ClassicConsumer, stable_group
from tests.unit.groups.consumer.rig import GROUP, Rig, assigned, code_of

from ottla.groups.classic import ClassicGroup
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.settings import GroupSettings
from ottla.protocol.errors import ErrorCode


def rig_with_classic(count: int = 2, **settings: object) -> tuple[Rig, list[ClassicConsumer]]:
    rig = Rig(GroupSettings(group_consumer_assignment_interval_ms=0, **settings))  # type: ignore[arg-type]  # by name
    rig.set_topics(a=4)
    consumers = [ClassicConsumer(rig, ["a"]) for _ in range(count)]
    stable_group(rig, *consumers)
    return rig, consumers


def test_the_first_new_member_makes_a_consumer_group_of_it_and_nobody_loses_anything_by_that() -> None:
    rig, (one, _) = rig_with_classic()
    generation = one.generation
    new = rig.join("new", "a")
    group = rig.groups[GROUP]
    assert isinstance(group, ConsumerGroup)
    assert (new.member_epoch, assigned(rig, new)) == (generation + 1, {})
    assert rig.member(one.member_id).assigned
    assert one.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    described = rig.consumer.describe(GROUP)
    assert sorted(member.member_type for member in described.members) == [0, 0, 1]


def test_members_of_both_protocols_share_the_partitions() -> None:
    rig, (one, two) = rig_with_classic()
    epoch = rig.join("new", "a").member_epoch
    for _ in range(4):
        for consumer in (one, two):
            if consumer.beat() is ErrorCode.REBALANCE_IN_PROGRESS:
                consumer.join()
                assert consumer.sync() is ErrorCode.NONE
        rig.heartbeat("new", epoch, rig.has("new"))
    assert sorted([*one.owned["a"], *two.owned["a"], *rig.has("new")["a"]]) == [0, 1, 2, 3]
    assert (one.beat(), two.beat()) == (ErrorCode.NONE, ErrorCode.NONE)
    assert rig.consumer.find(GROUP).state_name == "Stable"
    rig.reload()
    assert (one.beat(), two.beat()) == (ErrorCode.NONE, ErrorCode.NONE)


def test_a_classic_member_gives_back_by_joining_again_without_the_partition() -> None:
    rig, (one,) = rig_with_classic(1)
    rig.join("new", "a")
    assert one.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    before = one.generation
    one.join()
    assert one.generation == before, "it is to give partitions back first"
    assert one.sync() is ErrorCode.NONE
    assert len(one.owned["a"]) == 2
    assert one.beat() is ErrorCode.REBALANCE_IN_PROGRESS, "it has not said yet that it did"
    one.join()
    assert one.generation == before + 1
    assert len(assigned(rig, rig.heartbeat("new", before + 1, {})) or {}) == 1


def test_when_the_last_new_member_leaves_it_is_a_classic_group_again() -> None:
    rig, (one, two) = rig_with_classic()
    rig.join("new", "a")
    for consumer in (one, two):
        consumer.join()
        consumer.sync()
    rig.leave("new")
    group = rig.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    assert group.state_name == "PreparingRebalance"
    assert one.beat() is ErrorCode.ILLEGAL_GENERATION, "it had not come to the group's epoch"
    promises = [one.ask_to_join(), two.ask_to_join()]
    answers = [one.hear(promises[0]), two.hear(promises[1])]
    assert sum(1 for answer in answers if answer.members) == 1
    assert group.state_name == "CompletingRebalance"


def test_the_same_happens_when_it_dies() -> None:
    rig, (one,) = rig_with_classic(1)
    rig.join("new", "a")
    one.join()
    one.sync()
    for _ in range(6):
        rig.pass_time(10_000)
        if isinstance(rig.groups[GROUP], ConsumerGroup) and one.beat() is ErrorCode.REBALANCE_IN_PROGRESS:
            one.join()
            one.sync()
    assert isinstance(rig.groups[GROUP], ClassicGroup)
    rig.reload()
    assert isinstance(rig.groups[GROUP], ClassicGroup)


def test_those_in_the_middle_of_a_round_are_told_to_begin_anew() -> None:
    rig, (one, two) = rig_with_classic()
    three = ClassicConsumer(rig, ["a"])
    waiting = three.ask_to_join()
    assert not waiting.done()
    rig.join("new", "a")
    rig.pass_time(1)
    assert waiting.result().error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert rig.consumer.find(GROUP).members.keys() >= {one.member_id, two.member_id, three.member_id}


def test_classic_members_join_a_group_that_is_new() -> None:
    rig = Rig()
    rig.set_topics(a=2)
    rig.join("new", "a")
    classic = ClassicConsumer(rig, ["a"])
    answer = classic.join()
    assert (answer.leader, answer.members, answer.protocol_name) == ("", [], "cooperative-sticky")
    assert classic.sync() is ErrorCode.NONE
    assert classic.owned == {}
    rig.heartbeat("new", 2, {"a": {0, 1}})
    rig.heartbeat("new", 2, rig.has("new"))
    assert classic.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    classic.join()
    classic.sync()
    assert len(classic.owned["a"]) == 1
    other = ClassicConsumer(rig, ["a"], protocol="range")
    assert code_of(other.join) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_classic_members_are_checked() -> None:
    rig = Rig()
    rig.set_topics(a=2)
    rig.join("new", "a")
    classic = ClassicConsumer(rig, ["a"])
    classic.join()
    generation, classic.generation = classic.generation, 99
    assert (classic.beat(), classic.sync()) == (ErrorCode.ILLEGAL_GENERATION, ErrorCode.ILLEGAL_GENERATION)
    classic.generation = generation
    classic.protocol = "range"
    assert classic.sync() is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    stranger = ClassicConsumer(rig, ["a"], member_id="new")
    stranger.generation = 1
    assert stranger.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    assert classic.leave() is ErrorCode.NONE
    assert classic.leave() is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_classic_member_that_does_not_fetch_its_assignment_is_out() -> None:
    rig = Rig()
    rig.set_topics(a=2)
    rig.join("new", "a")
    classic = ClassicConsumer(rig, ["a"])
    classic.join()
    for _ in range(7):
        rig.heartbeat("new", rig.member("new").member_epoch, rig.has("new"))
        if classic.member_id in rig.consumer.find(GROUP).members:
            classic.beat()
        rig.pass_time(10_000)
    assert sorted(rig.consumer.find(GROUP).members) == ["new"]


@pytest.mark.parametrize(("policy", "may_upgrade"), [("disabled", False), ("downgrade", False), ("upgrade", True)])
def test_the_policy_decides_on_upgrades(policy: str, may_upgrade: bool) -> None:
    rig, _ = rig_with_classic(group_consumer_migration_policy=policy)
    expected = ErrorCode.NONE if may_upgrade else ErrorCode.GROUP_ID_NOT_FOUND
    assert code_of(lambda: rig.join("new", "a")) is expected


@pytest.mark.parametrize(("policy", "may_downgrade"), [("upgrade", False), ("bidirectional", True)])
def test_the_policy_decides_on_downgrades(policy: str, may_downgrade: bool) -> None:
    rig, _ = rig_with_classic(group_consumer_migration_policy=policy)
    rig.join("new", "a")
    rig.leave("new")
    assert isinstance(rig.groups[GROUP], ClassicGroup) == may_downgrade


def test_no_classic_member_joins_where_nobody_may_migrate() -> None:
    rig = Rig(GroupSettings(group_consumer_migration_policy="disabled"))
    rig.set_topics(a=1)
    rig.join("new", "a")
    assert code_of(ClassicConsumer(rig, ["a"]).join) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_an_empty_group_changes_its_kind_whatever_the_policy() -> None:
    rig, (one, two) = rig_with_classic(group_consumer_migration_policy="disabled")
    one.leave()
    two.leave()
    rig.pass_time(10_000)
    rig.join("new", "a")
    assert isinstance(rig.groups[GROUP], ConsumerGroup)
    rig.leave("new")
    promise = ClassicConsumer(rig, ["a"]).ask_to_join()
    rig.pass_time(10_000)
    assert promise.result().error_code == ErrorCode.NONE
    assert isinstance(rig.groups[GROUP], ClassicGroup)
    rig.reload()
    assert isinstance(rig.groups[GROUP], ClassicGroup)


def test_a_static_member_changes_its_protocol_and_keeps_its_partitions() -> None:
    rig = Rig(GroupSettings(group_consumer_assignment_interval_ms=0))
    rig.set_topics(a=2)
    static = ClassicConsumer(rig, ["a"], instance_id="i")
    stable_group(rig, static)
    answer = rig.join("new", "a", instance_id="i")
    assert assigned(rig, answer) == {"a": {0, 1}}
    assert static.beat() is ErrorCode.FENCED_INSTANCE_ID
    back = ClassicConsumer(rig, ["a"], instance_id="i")
    back.join()
    assert back.sync() is ErrorCode.NONE
    assert back.owned == {"a": {0, 1}}
