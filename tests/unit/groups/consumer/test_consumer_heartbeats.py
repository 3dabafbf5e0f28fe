"""Members come, go and hang: what each is told, and when a partition changes hands."""

import pytest
from tests.unit.groups.consumer.rig import GROUP, NO_WAIT, Rig, assigned, code_of

from ottla.groups.settings import GroupSettings
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

ALL = {"a": {0, 1, 2, 3}}


def rig_with(**topics: int) -> Rig:
    rig = Rig()
    rig.set_topics(**topics)
    return rig


def test_the_first_member_gets_everything_at_once() -> None:
    rig = rig_with(a=4)
    answer = rig.join("m1", "a")
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("m1", 2, 5_000)
    assert assigned(rig, answer) == ALL
    again = rig.heartbeat("m1", 2, ALL)
    assert (again.member_epoch, again.assignment) == (2, None)
    assert rig.consumer.find(GROUP).state_name == "Stable"


def test_a_partition_changes_hands_when_it_was_given_back_and_not_before() -> None:
    rig = rig_with(a=4)
    rig.join("m1", "a")
    second = rig.join("m2", "a")
    assert (second.member_epoch, assigned(rig, second)) == (3, {})
    assert rig.consumer.find(GROUP).state_name == "Reconciling"
    told = rig.heartbeat("m1", 2, ALL)
    assert (told.member_epoch, assigned(rig, told)) == (2, {"a": {0, 1}})
    assert rig.heartbeat("m2", 3, {}).assignment is None
    assert rig.heartbeat("m1", 2, ALL).assignment is None, "it has not given them back"
    moved = rig.heartbeat("m1", 2, {"a": {0, 1}})
    assert (moved.member_epoch, moved.assignment) == (3, None)
    assert assigned(rig, rig.heartbeat("m2", 3, {})) == {"a": {2, 3}}
    assert rig.consumer.find(GROUP).state_name == "Stable"


def test_a_member_that_does_not_say_what_it_has_is_not_believed_to_have_given_anything_back() -> None:
    rig = rig_with(a=2)
    rig.join("m1", "a")
    rig.join("m2", "a")
    rig.heartbeat("m1", 2, {"a": {0, 1}})
    assert rig.heartbeat("m1", 2).member_epoch == 2
    assert rig.heartbeat("m1", 2, {"a": {0}}).member_epoch == 3


def test_who_leaves_leaves_its_partitions_to_the_others() -> None:
    rig = rig_with(a=2)
    rig.join("m1", "a")
    rig.join("m2", "a")
    rig.heartbeat("m1", 2, {"a": {0}})
    rig.heartbeat("m2", 3, {})
    answer = rig.leave("m1")
    assert (answer.member_id, answer.member_epoch) == ("m1", -1)
    assert assigned(rig, rig.heartbeat("m2", 3, {"a": {1}})) == {"a": {0, 1}}
    assert code_of(lambda: rig.heartbeat("m1", 3)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_who_is_silent_for_a_session_is_out() -> None:
    rig = rig_with(a=2)
    rig.join("m1", "a")
    rig.join("m2", "a")
    rig.pass_time(30_000)
    rig.heartbeat("m2", 3, {})
    rig.pass_time(20_000)
    assert sorted(rig.consumer.find(GROUP).members) == ["m2"]
    assert assigned(rig, rig.heartbeat("m2", 3, {})) == {"a": {0, 1}}


def test_who_does_not_give_back_in_time_is_out_though_it_is_alive() -> None:
    rig = rig_with(a=2)
    rig.join("m1", "a", rebalance_timeout_ms=10_000)
    rig.join("m2", "a")
    for _ in range(6):
        if "m1" in rig.consumer.find(GROUP).members:
            rig.heartbeat("m1", 2, {"a": {0, 1}})
        rig.heartbeat("m2", rig.member("m2").member_epoch, {})
        rig.pass_time(2_000)
    assert sorted(rig.consumer.find(GROUP).members) == ["m2"]


def test_a_session_goes_on_after_a_load_and_so_does_the_time_to_give_back() -> None:
    rig = rig_with(a=2)
    rig.join("m1", "a", rebalance_timeout_ms=20_000)
    rig.join("m2", "a")
    rig.heartbeat("m1", 2, {"a": {0, 1}})
    rig.reload()
    rig.pass_time(19_000)
    assert sorted(rig.consumer.find(GROUP).members) == ["m1", "m2"]
    rig.pass_time(2_000)
    assert sorted(rig.consumer.find(GROUP).members) == ["m2"]
    rig.pass_time(30_000)
    assert rig.consumer.find(GROUP).is_empty


def test_new_partitions_and_new_topics_are_handed_out() -> None:
    rig = rig_with(a=1)
    assert assigned(rig, rig.join("m1", "a", "b")) == {"a": {0}}
    rig.set_topics(a=2)
    answer = rig.heartbeat("m1", 2, {"a": {0}})
    assert (answer.member_epoch, assigned(rig, answer)) == (3, {"a": {0, 1}})
    rig.set_topics(a=2, b=1, c=9)
    assert assigned(rig, rig.heartbeat("m1", 3, {"a": {0, 1}})) == {"a": {0, 1}, "b": {0}}
    rig.set_topics(a=2, b=1, c=10)
    assert rig.heartbeat("m1", 4, {"a": {0, 1}, "b": {0}}).member_epoch == 4, "c is nobody's business"


def test_a_topic_that_is_deleted_is_taken_away() -> None:
    rig = rig_with(a=1, b=1)
    rig.join("m1", "a", "b")
    rig.set_topics(a=1)
    answer = rig.heartbeat("m1", 2)
    assert (answer.member_epoch, assigned(rig, answer)) == (2, {"a": {0}})
    assert rig.heartbeat("m1", 2, {"a": {0}}).member_epoch == 3


def test_a_change_of_subscription_takes_topics_away_at_once() -> None:
    rig = Rig(GroupSettings(group_consumer_assignment_interval_ms=60_000))
    rig.set_topics(a=1, b=1)
    rig.join("m1", "a", "b")
    answer = rig.heartbeat("m1", 2, {"a": {0}, "b": {0}}, subscribed_topic_names=["b"])
    assert (answer.member_epoch, assigned(rig, answer)) == (2, {"b": {0}})
    assert rig.heartbeat("m1", 2, {"b": {0}}).member_epoch == 2
    rig.settings = NO_WAIT
    assert rig.heartbeat("m1", 2, {"b": {0}}).member_epoch == 3


def test_targets_are_not_worked_out_more_often_than_the_interval_says() -> None:
    rig = Rig(GroupSettings(group_consumer_assignment_interval_ms=1_000))
    rig.set_topics(a=4)
    assert assigned(rig, rig.join("m1", "a")) == ALL
    second = rig.join("m2", "a")
    assert (second.member_epoch, assigned(rig, second)) == (2, {})
    assert rig.consumer.find(GROUP).state_name == "Assigning"
    assert rig.heartbeat("m1", 2, ALL).assignment is None
    rig.pass_time(1_000)
    assert assigned(rig, rig.heartbeat("m1", 2, ALL)) == {"a": {0, 1}}


def test_a_lost_answer_is_made_up_for() -> None:
    rig = rig_with(a=2)
    rig.join("m1", "a")
    rig.set_topics(a=2, b=1)
    rig.heartbeat("m1", 2, {"a": {0, 1}}, subscribed_topic_names=["a", "b"])
    assert rig.heartbeat("m1", 2, {"a": {0, 1}}).member_epoch == 3
    assert code_of(lambda: rig.heartbeat("m1", 2)) is ErrorCode.FENCED_MEMBER_EPOCH
    assert code_of(lambda: rig.heartbeat("m1", 2, {"a": {7}})) is ErrorCode.FENCED_MEMBER_EPOCH
    assert code_of(lambda: rig.heartbeat("m1", 4, {})) is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_full_request_gets_a_full_answer() -> None:
    rig = rig_with(a=1)
    rig.join("m1", "a")
    answer = rig.heartbeat("m1", 2, {"a": {0}}, rebalance_timeout_ms=60_000, subscribed_topic_names=["a"])
    assert assigned(rig, answer) == {"a": {0}}


def test_starting_over_with_the_same_id_gives_what_the_member_has() -> None:
    rig = rig_with(a=1)
    rig.join("m1", "a")
    answer = rig.join("m1", "a")
    assert (answer.member_epoch, assigned(rig, answer)) == (2, {"a": {0}})


def test_a_group_that_is_full_turns_others_away() -> None:
    rig = Rig(GroupSettings(group_consumer_max_size=1))
    rig.set_topics(a=1)
    rig.join("m1", "a")
    assert code_of(lambda: rig.join("m2", "a")) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert rig.heartbeat("m1", 2).member_epoch == 2


def test_the_assignor_that_most_members_ask_for_is_used() -> None:
    rig = rig_with(a=2, b=2)
    rig.join("m1", "a", "b", server_assignor="range")
    rig.join("m2", "a", "b", server_assignor="range")
    rig.heartbeat("m1", 2, {"a": {0}, "b": {0}})
    assert assigned(rig, rig.heartbeat("m2", 3, {})) == {"a": {1}, "b": {1}}
    assert rig.consumer.describe(GROUP).assignor_name == "range"


def test_old_clients_get_their_id_from_the_broker() -> None:
    rig = rig_with(a=1)
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP, rebalance_timeout_ms=1, subscribed_topic_names=["a"], topic_partitions=[]
    )
    member_id = rig.send(request, api_version=0).member_id
    assert list(rig.consumer.find(GROUP).members) == [member_id]
    assert member_id


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"group_id": " "}, ErrorCode.INVALID_REQUEST),
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"instance_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rack_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST),
        ({"topic_partitions": None}, ErrorCode.INVALID_REQUEST),
        ({"subscribed_topic_names": None}, ErrorCode.INVALID_REQUEST),
        ({"server_assignor": "best"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ({"subscribed_topic_regex": "("}, ErrorCode.INVALID_REGULAR_EXPRESSION),
        ({"member_epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -3}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": 1}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"member_epoch": -1}, ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_requests_that_make_no_sense(fields: dict[str, object], code: ErrorCode) -> None:
    rig = rig_with(a=1)
    assert code_of(lambda: rig.join("m1", "a", **fields)) is code
    assert rig.log == []


def test_nothing_happened_if_it_could_not_be_written() -> None:
    rig = rig_with(a=1)
    rig.join("m1", "a")
    rig.set_topics(a=2)
    rig.refuses = True
    assert code_of(lambda: rig.heartbeat("m1", 2, {"a": {0}})) is ErrorCode.NOT_ENOUGH_REPLICAS
    rig.refuses = False
    assert assigned(rig, rig.heartbeat("m1", 2, {"a": {0}})) == {"a": {0, 1}}
