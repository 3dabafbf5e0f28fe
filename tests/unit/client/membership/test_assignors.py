"""Who reads what: the rules that users know, and groups that are odd. Elsewhere Kafka's own are asked the same."""

import pytest

from ottla.client.errors import ConfigError
from ottla.client.membership.assignors import (
    Assignor,
    GroupView,
    MemberAssignment,
    MemberSubscription,
    RebalanceProtocol,
    assignors_of,
    common_protocol,
)
from ottla.client.membership.assignors.sticky import NO_GENERATION, Claim, read_claim, write_claim
from ottla.client.types import TopicPartition

NO_RACK = frozenset[str]()


def group(members: dict[str, MemberSubscription], **counts: int) -> GroupView:
    return GroupView(members, {topic: (NO_RACK,) * count for topic, count in counts.items()})


def shares(name: str, view: GroupView) -> dict[str, str]:
    (assignor,) = assignors_of([name])
    return {
        member: " ".join(f"{topic}{number}" for topic, number in sorted(assignment.partitions))
        for member, assignment in assignor.assign(view).items()
    }


def test_range_gives_neighbours_and_the_first_members_one_more() -> None:
    members = {name: MemberSubscription(("a", "b")) for name in ("m1", "m2", "m3")}
    assert shares("range", group(members, a=4, b=5)) == {"m1": "a0 a1 b0 b1", "m2": "a2 b2 b3", "m3": "a3 b4"}


def test_static_members_come_first_in_the_order_of_their_instances() -> None:
    members = {
        "m1": MemberSubscription(("a",)),
        "m2": MemberSubscription(("a",), instance_id="z"),
        "m3": MemberSubscription(("a",), instance_id="b"),
    }
    assert shares("range", group(members, a=3)) == {"m1": "a2", "m2": "a1", "m3": "a0"}
    assert shares("roundrobin", group(members, a=3)) == {"m1": "a2", "m2": "a1", "m3": "a0"}


def test_round_robin_passes_over_who_did_not_subscribe() -> None:
    members = {"m1": MemberSubscription(("a",)), "m2": MemberSubscription(("a", "b"))}
    assert shares("roundrobin", group(members, a=2, b=2)) == {"m1": "a0", "m2": "a1 b0 b1"}


def test_racks_decide_where_a_range_is_read() -> None:
    members = {"m1": MemberSubscription(("a",), rack="east"), "m2": MemberSubscription(("a",), rack="west")}
    view = GroupView(
        members, {"a": (frozenset({"west"}), frozenset({"west"}), frozenset({"east"}), frozenset({"east"}))}
    )
    assert shares("range", view) == {"m1": "a2 a3", "m2": "a0 a1"}


@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_topics_that_do_not_exist_are_passed_over(name: str) -> None:
    members = {"m1": MemberSubscription(("a", "gone")), "m2": MemberSubscription(("gone",))}
    assert shares(name, group(members, a=2)) == {"m1": "a0 a1", "m2": ""}


def test_sticky_members_keep_what_they_had() -> None:
    had = tuple(TopicPartition("a", number) for number in (0, 3))
    members = {
        "m1": MemberSubscription(("a",), user_data=write_claim(had, 4)),
        "m2": MemberSubscription(("a",)),
    }
    assert shares("sticky", group(members, a=4)) == {"m1": "a0 a3", "m2": "a1 a2"}


def test_cooperative_members_wait_for_what_another_still_has() -> None:
    owned = tuple(TopicPartition("a", number) for number in range(4))
    members = {"m1": MemberSubscription(("a",), owned=owned, generation=3), "m2": MemberSubscription(("a",))}
    assert shares("cooperative-sticky", group(members, a=4)) == {"m1": "a0 a1", "m2": ""}
    members["m1"] = MemberSubscription(("a",), owned=owned[:2], generation=4)
    assert shares("cooperative-sticky", group(members, a=4)) == {"m1": "a0 a1", "m2": "a2 a3"}


def test_what_two_claim_belongs_to_the_newer_generation() -> None:
    owned = (TopicPartition("a", 0),)
    members = {
        "m1": MemberSubscription(("a",), owned=owned, generation=2),
        "m2": MemberSubscription(("a",), owned=owned, generation=5),
    }
    assert shares("cooperative-sticky", group(members, a=2)) == {"m1": "a1", "m2": "a0"}


def test_partitions_that_no_longer_exist_are_nobodys() -> None:
    owned = tuple(TopicPartition("a", number) for number in range(6))
    members = {"m1": MemberSubscription(("a",), owned=owned, generation=2), "m2": MemberSubscription(("a",))}
    assert shares("cooperative-sticky", group(members, a=2)) == {"m1": "a0", "m2": ""}


def test_claims_of_both_versions_are_read() -> None:
    had = (TopicPartition("a", 1), TopicPartition("a", 2), TopicPartition("b", 0))
    data = write_claim(had, 9)
    assert read_claim(data) == Claim(had, 9)
    assert read_claim(data[:-4]) == Claim(had, None)
    assert read_claim(b"\x00\x00\x00\x01\x00\x09short") == Claim((), NO_GENERATION)


def test_names_and_classes_of_kafka_are_known() -> None:
    names = ["range", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"]
    assert [assignor.name for assignor in assignors_of(names)] == ["range", "cooperative-sticky"]
    assert common_protocol(assignors_of(names)) is RebalanceProtocol.EAGER
    assert common_protocol(assignors_of(names[1:])) is RebalanceProtocol.COOPERATIVE


class Everything(Assignor):
    """One that a user wrote."""

    name = "everything-to-one"
    protocols = frozenset({RebalanceProtocol.COOPERATIVE})

    def assign(self, group: GroupView) -> dict[str, MemberAssignment]:
        return {member: MemberAssignment([]) for member in group.members}


def test_assignors_of_ones_own_are_taken_as_classes_and_as_objects() -> None:
    assert [assignor.name for assignor in assignors_of([Everything])] == ["everything-to-one"]
    assert [assignor.name for assignor in assignors_of([Everything()])] == ["everything-to-one"]


@pytest.mark.parametrize(
    ("strategy", "text"),
    [
        ([], "at least one"),
        (["rnage"], "there are range, roundrobin, sticky, cooperative-sticky"),
        (["range", "range"], "twice"),
        (["range", Everything()], "different ways"),
    ],
)
def test_strategies_that_cannot_be_are_refused(strategy: list[str | Assignor], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        assignors_of(strategy)
