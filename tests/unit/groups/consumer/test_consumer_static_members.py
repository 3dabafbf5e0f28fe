"""Members with an instance id: they come back to what they had."""

from tests.unit.groups.consumer.rig import GROUP, Rig, assigned, code_of

from ottla.protocol.errors import ErrorCode


def rig_with_two() -> Rig:
    rig = Rig()
    rig.set_topics(a=4)
    rig.join("m1", "a", instance_id="i1")
    rig.join("m2", "a", instance_id="i2")
    rig.heartbeat("m1", 2, {"a": {0, 1}}, instance_id="i1")
    rig.heartbeat("m2", 3, {}, instance_id="i2")
    return rig


def test_one_that_left_for_a_while_gets_back_what_it_had_and_nobody_else_notices() -> None:
    rig = rig_with_two()
    answer = rig.leave("m1", -2, instance_id="i1")
    assert answer.member_epoch == -2
    assert rig.heartbeat("m2", 3, {"a": {2, 3}}, instance_id="i2").assignment is None
    back = rig.join("m3", "a", instance_id="i1")
    assert (back.member_epoch, assigned(rig, back)) == (3, {"a": {0, 1}})
    assert rig.heartbeat("m2", 3, {"a": {2, 3}}, instance_id="i2").assignment is None
    assert sorted(rig.consumer.find(GROUP).members) == ["m2", "m3"]


def test_the_way_back_is_open_after_a_load_too() -> None:
    rig = rig_with_two()
    rig.leave("m1", -2, instance_id="i1")
    rig.reload()
    assert assigned(rig, rig.join("m3", "a", instance_id="i1")) == {"a": {0, 1}}


def test_one_that_does_not_come_back_in_time_is_out() -> None:
    rig = rig_with_two()
    rig.leave("m1", -2, instance_id="i1")
    rig.pass_time(30_000)
    rig.heartbeat("m2", 3, {"a": {2, 3}}, instance_id="i2")
    rig.pass_time(20_000)
    answer = rig.heartbeat("m2", 3, {"a": {2, 3}}, instance_id="i2")
    assert assigned(rig, answer) == {"a": {0, 1, 2, 3}}


def test_an_instance_is_taken_until_its_member_leaves() -> None:
    rig = rig_with_two()
    assert code_of(lambda: rig.join("m3", "a", instance_id="i1")) is ErrorCode.UNRELEASED_INSTANCE_ID
    assert code_of(lambda: rig.heartbeat("m3", 3, instance_id="i1")) is ErrorCode.FENCED_INSTANCE_ID
    assert code_of(lambda: rig.heartbeat("m1", 3, instance_id="i9")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert code_of(lambda: rig.leave("m3", -2, instance_id="i1")) is ErrorCode.FENCED_INSTANCE_ID


def test_one_that_left_and_is_still_running_is_fenced() -> None:
    rig = rig_with_two()
    rig.leave("m1", -2, instance_id="i1")
    assert code_of(lambda: rig.heartbeat("m1", 3, instance_id="i1")) is ErrorCode.FENCED_MEMBER_EPOCH
    rig.join("m3", "a", instance_id="i1")
    assert code_of(lambda: rig.heartbeat("m1", 3, instance_id="i1")) is ErrorCode.FENCED_INSTANCE_ID


def test_one_that_leaves_for_good_is_like_any_other() -> None:
    rig = rig_with_two()
    rig.leave("m1", -1, instance_id="i1")
    answer = rig.heartbeat("m2", 3, {"a": {2, 3}}, instance_id="i2")
    assert assigned(rig, answer) == {"a": {0, 1, 2, 3}}
    assert rig.join("m4", "a", instance_id="i1").member_epoch == 5
