"""Subscriptions by regular expression: looked up beside the heartbeats, and again when topics come."""

from functools import partial

from tests.unit.groups.consumer.rig import GROUP, Rig, assigned, code_of

from ottla.protocol.errors import ErrorCode


def joined(regex: str = "a.*", **topics: int) -> Rig:
    """A member that has what its expression stands for."""
    rig = Rig()
    rig.set_topics(**topics)
    assert rig.join("m1", subscribed_topic_regex=regex).member_epoch == 1
    rig.pass_time(1)
    assert rig.heartbeat("m1", 1, {}).member_epoch == 2
    return rig


def test_the_topics_are_there_with_the_heartbeat_after_the_look_up() -> None:
    rig = Rig()
    rig.set_topics(a1=1, a2=2, b=1)
    first = rig.join("m1", subscribed_topic_regex="a.*")
    assert (first.member_epoch, assigned(rig, first)) == (1, {})
    rig.pass_time(1)
    answer = rig.heartbeat("m1", 1, {})
    assert (answer.member_epoch, assigned(rig, answer)) == (2, {"a1": {0}, "a2": {0, 1}})


def test_many_topics_take_many_turns_and_come_out_the_same() -> None:
    rig = joined("t[0-9]*7", **{f"t{number}": 1 for number in range(1_000)})
    assert len(rig.consumer.find(GROUP).resolved["t[0-9]*7"].topics) == 100


def test_a_new_topic_that_matches_is_found_but_not_at_once() -> None:
    rig = joined(a1=1)
    rig.set_topics(a1=1, a2=1)
    rig.heartbeat("m1", 2, {"a1": {0}})
    rig.pass_time(5_000)
    assert rig.heartbeat("m1", 2, {"a1": {0}}).assignment is None
    rig.pass_time(6_000)
    rig.heartbeat("m1", 2, {"a1": {0}})
    rig.pass_time(1)
    assert assigned(rig, rig.heartbeat("m1", 2, {"a1": {0}})) == {"a1": {0}, "a2": {0}}


def test_nothing_is_looked_up_while_no_topic_comes() -> None:
    rig = joined(a1=1)
    written = len(rig.log)
    for _ in range(10):
        rig.pass_time(11_000)
        rig.heartbeat("m1", 2, {"a1": {0}})
    assert len(rig.log) == written
    for _ in range(60):
        rig.pass_time(11_000)
        rig.heartbeat("m1", 2, {"a1": {0}})
    assert rig.types(written) == [(16, True)], "the refresh interval"


def test_a_member_that_takes_up_a_known_expression_has_its_topics_at_once() -> None:
    rig = joined(a1=2)
    rig.join("m2", subscribed_topic_regex="a.*")
    assert assigned(rig, rig.heartbeat("m1", 2, {"a1": {0, 1}})) == {"a1": {0}}


def test_an_expression_goes_with_the_last_who_uses_it() -> None:
    rig = joined(a1=1)
    rig.leave("m1")
    assert rig.consumer.find(GROUP).resolved == {}
    assert not rig.consumer.find(GROUP).is_subscribed("a1")


def test_an_expression_that_is_dropped_takes_its_topics_along() -> None:
    rig = joined(a1=1, b=1)
    answer = rig.heartbeat("m1", 2, {"a1": {0}}, subscribed_topic_regex="", subscribed_topic_names=["b"])
    assert assigned(rig, answer) == {}
    assert assigned(rig, rig.heartbeat("m1", 2, {})) == {"b": {0}}


def test_an_expression_that_stands_for_nothing_leaves_what_it_had_to_others() -> None:
    rig = joined(a1=2)
    rig.join("m2", "a1")
    rig.heartbeat("m1", 2, {"a1": {0}})
    rig.heartbeat("m1", 3, {}, subscribed_topic_regex="nothing")
    rig.pass_time(11_000)
    rig.heartbeat("m1", 3, {})
    rig.heartbeat("m2", 3, rig.has("m2"))
    rig.pass_time(1)
    for _ in range(2):
        rig.heartbeat("m2", rig.member("m2").member_epoch, rig.has("m2"))
    assert rig.has("m2") == {"a1": {0, 1}}


def test_names_and_expressions_go_together() -> None:
    rig = Rig()
    rig.set_topics(a1=1, b=1)
    rig.join("m1", "b", subscribed_topic_regex="a.*")
    rig.pass_time(1)
    assert assigned(rig, rig.heartbeat("m1", 2, {"b": {0}})) == {"a1": {0}, "b": {0}}


def test_what_is_no_expression_is_refused_and_changes_nothing() -> None:
    rig = joined(a1=1)
    for regex in ("(", "a**", r"\1", "(?=a)", "(((a{500}){500}){500})"):
        change = partial(rig.heartbeat, "m1", 2, {"a1": {0}}, subscribed_topic_regex=regex)
        assert code_of(change) is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert rig.member("m1").topic_regex == "a.*"


def test_a_look_up_whose_group_is_gone_comes_to_nothing() -> None:
    rig = Rig()
    rig.set_topics(a1=1)
    rig.join("m1", subscribed_topic_regex="a.*")
    rig.write(lambda: rig.consumer.expire(GROUP, "m1", "test"))
    rig.pass_time(1)
    assert rig.consumer.find(GROUP).resolved == {}


def test_after_a_load_expressions_stand_for_what_they_stood_for() -> None:
    rig = joined(a1=1)
    rig.reload()
    assert rig.consumer.find(GROUP).is_subscribed("a1")
    assert rig.heartbeat("m1", 2, {"a1": {0}}).assignment is None
