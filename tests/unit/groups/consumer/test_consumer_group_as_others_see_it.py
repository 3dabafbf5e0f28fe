"""What commits, fetches, listings and deletions ask of a consumer group."""

from tests.unit.groups.consumer.rig import GROUP, Rig, code_of, topic_id

from ottla.groups.group import Committer
from ottla.protocol.errors import ErrorCode


def commit(rig: Rig, member_id: str, epoch: int, version: int = 9, *, is_transactional: bool = False) -> ErrorCode:
    group = rig.consumer.find(GROUP)
    committer = Committer(member_id, None, epoch)
    return code_of(lambda: group.check_commit(committer, is_transactional=is_transactional, api_version=version))


def commit_of(rig: Rig, member_id: str, epoch: int, topic: str, index: int) -> ErrorCode:
    group = rig.consumer.find(GROUP)
    check = group.check_commit(Committer(member_id, None, epoch), is_transactional=False, api_version=9)
    return ErrorCode.NONE if check is None else code_of(lambda: check(topic, topic_id(topic), index))


def rig_with_member() -> Rig:
    rig = Rig()
    rig.set_topics(a=2)
    rig.join("m1", "a")
    return rig


def test_members_commit_with_their_epoch() -> None:
    rig = rig_with_member()
    assert commit(rig, "m1", 2) is ErrorCode.NONE
    assert commit(rig, "m1", 3) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(rig, "m2", 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(rig, "", -1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(rig, "m1", 2, version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert commit(rig, "m1", 2, version=3, is_transactional=True) is ErrorCode.NONE
    assert commit(rig, "", -1, is_transactional=True) is ErrorCode.NONE


def test_an_older_epoch_is_good_for_what_the_member_had_in_it() -> None:
    rig = rig_with_member()
    rig.set_topics(a=3, b=1)
    rig.heartbeat("m1", 2, {"a": {0, 1}}, subscribed_topic_names=["a", "b"])
    assert rig.member("m1").member_epoch == 3
    assert commit(rig, "m1", 2) is ErrorCode.NONE
    assert commit_of(rig, "m1", 2, "a", 0) is ErrorCode.NONE
    assert commit_of(rig, "m1", 2, "a", 2) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit_of(rig, "m1", 3, "a", 2) is ErrorCode.NONE
    assert commit_of(rig, "m1", 2, "c", 0) is ErrorCode.STALE_MEMBER_EPOCH


def test_what_is_being_given_back_may_still_be_committed() -> None:
    rig = rig_with_member()
    rig.join("m2", "a")
    rig.heartbeat("m1", 2, {"a": {0, 1}})
    assert commit_of(rig, "m1", 2, "a", 1) is ErrorCode.NONE


def test_anybody_commits_to_an_empty_group() -> None:
    rig = rig_with_member()
    rig.leave("m1")
    assert commit(rig, "", -1) is ErrorCode.NONE


def test_members_that_say_who_they_are_fetch_with_their_epoch() -> None:
    rig = rig_with_member()
    group = rig.consumer.find(GROUP)
    assert code_of(lambda: group.check_fetch(Committer("m1", None, 2))) is ErrorCode.NONE
    assert code_of(lambda: group.check_fetch(Committer())) is ErrorCode.NONE
    assert code_of(lambda: group.check_fetch(Committer("m1", None, 0))) is ErrorCode.STALE_MEMBER_EPOCH
    assert code_of(lambda: group.check_fetch(Committer("m2", None, 2))) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_is_deleted_when_it_is_empty_and_then_all_of_it() -> None:
    rig = rig_with_member()
    group = rig.consumer.find(GROUP)
    assert code_of(group.check_delete) is ErrorCode.NON_EMPTY_GROUP
    rig.leave("m1")
    assert code_of(group.check_delete) is ErrorCode.NONE
    from ottla.ledger.machine import Decision

    rig.write(lambda: Decision(None, group.tombstones()))
    assert rig.groups == {}
    rig.reload()
    assert rig.groups == {}


def test_topics_that_members_read_are_known() -> None:
    group = rig_with_member().consumer.find(GROUP)
    assert (group.is_subscribed("a"), group.is_subscribed("b")) == (True, False)


def test_a_description_shows_what_members_have_and_are_to_have() -> None:
    rig = rig_with_member()
    rig.join("m2", "a", rack_id="r")
    rig.heartbeat("m1", 2, {"a": {0, 1}})
    described = rig.consumer.describe(GROUP)
    assert (described.group_state, described.group_epoch, described.assignment_epoch) == ("Reconciling", 3, 3)
    first, second = described.members
    assert [topic.partitions for topic in first.assignment.topic_partitions] == [[0, 1]], "one is to be given back"
    assert [topic.partitions for topic in first.target_assignment.topic_partitions] == [[0]]
    assert (second.member_id, second.rack_id, second.member_type, second.client_host) == ("m2", "r", 1, "/127.0.0.1")
    assert second.assignment.topic_partitions == []
    assert [topic.topic_name for topic in second.target_assignment.topic_partitions] == ["a"]
