"""Assignors beside those of Kafka's own consumer, over the lives of groups.

Kafka's sticky assignors follow the order of Java's hash tables where several members have more than their share: the
ids of members here are such that this is their natural order, which is the one that is always followed here.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.compat.client.membership.oracle import KafkaAssignors
from tests.property.examples import examples

from ottla.client.membership.assignors import GroupView, MemberAssignment, MemberSubscription, assignors_of
from ottla.client.membership.assignors.sticky import StickyAssignor, read_claim
from ottla.client.membership.embedded import read_subscription, write_subscription
from ottla.client.types import TopicPartition

BESIDE_KAFKA = settings(
    max_examples=examples(30),
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
TOPICS = ["a", "b", "c", "d"]
RACKS = ["r1", "r2", "r3"]
MEMBERS = [f"m{number}" for number in range(8)]
Given = dict[str, list[TopicPartition]]


@st.composite
def topics_with_racks(draw: st.DrawFn, have_racks: bool) -> dict[str, tuple[frozenset[str], ...]]:
    racks = st.frozensets(st.sampled_from(RACKS), min_size=1, max_size=2) if have_racks else st.just(frozenset[str]())
    names = sorted(draw(st.sets(st.sampled_from(TOPICS), min_size=1)))
    counts = st.one_of(st.integers(1, 9), st.just(4))
    return {name: tuple(draw(racks) for _ in range(draw(counts))) for name in names}


@st.composite
def lives(draw: st.DrawFn) -> list[GroupView]:
    """What a group looks like in several rebalances: members come, go and change their minds, topics grow."""
    have_racks = draw(st.booleans())
    is_uniform = draw(st.booleans())
    topics = draw(topics_with_racks(have_racks))
    wishes = st.sets(st.sampled_from(sorted(topics)), min_size=1).map(lambda names: tuple(sorted(names)))
    everything = tuple(sorted(topics))
    views = []
    for _ in range(draw(st.integers(1, 4))):
        members = {
            member: MemberSubscription(
                everything if is_uniform else draw(wishes),
                instance_id=f"i{9 - number}" if number % 3 == 1 else None,
                rack=draw(st.sampled_from([*RACKS, None])) if have_racks else None,
            )
            for number, member in enumerate(MEMBERS)
            if draw(st.booleans())
        }
        members = members or {"m0": MemberSubscription(everything)}
        views.append(GroupView(members, topics))
        grown = draw(st.sampled_from(everything))
        topics = topics | {grown: topics[grown] + topics[grown][:2]}
    return views


def as_sets(given: Given) -> dict[str, frozenset[TopicPartition]]:
    return {member: frozenset(partitions) for member, partitions in given.items()}


def ours(name: str, group: GroupView) -> Given:
    (assignor,) = assignors_of([name])
    return {member: list(assignment.partitions) for member, assignment in assignor.assign(group).items()}


def after(name: str, view: GroupView, before: Given, generation: int) -> GroupView:
    """The next rebalance, in which members tell what they had before."""
    members = {}
    for member_id, member in view.members.items():
        had = before.get(member_id)
        if had is None:
            members[member_id] = member
        elif name == "sticky":
            assignor = StickyAssignor()
            assignor.assigned(MemberAssignment(had), generation)
            members[member_id] = replace(member, user_data=assignor.user_data(frozenset()), generation=generation)
        else:
            members[member_id] = replace(member, owned=tuple(had), generation=generation)
    return GroupView(members, view.topics)


@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_a_group_is_assigned_as_kafka_does_it(kafka_assignors: KafkaAssignors, name: str) -> None:
    @BESIDE_KAFKA
    @given(views=lives())
    def property_holds(views: list[GroupView]) -> None:
        before: Given = {}
        for generation, planned in enumerate(views):
            view = after(name, planned, before, generation) if generation else planned
            mine = ours(name, view)
            assert as_sets(mine) == as_sets(kafka_assignors.assign(name, view))
            before = mine

    property_holds()


@st.composite
def claims(draw: st.DrawFn) -> GroupView:
    """A group in which members claim what they like, in generations of their own."""
    topics = draw(topics_with_racks(have_racks=False))
    everything = [TopicPartition(topic, number) for topic in topics for number in range(len(topics[topic]))]
    claimed = st.lists(st.sampled_from(everything), unique=True, max_size=5).map(tuple)
    members = {
        member: MemberSubscription(tuple(sorted(topics)), owned=draw(claimed), generation=draw(st.integers(0, 3)))
        for member in MEMBERS[: draw(st.integers(2, 6))]
    }
    return GroupView(members, topics)


@BESIDE_KAFKA
@given(view=claims())
def test_what_several_claim_goes_to_whom_kafka_gives_it(kafka_assignors: KafkaAssignors, view: GroupView) -> None:
    assert as_sets(ours("cooperative-sticky", view)) == as_sets(kafka_assignors.assign("cooperative-sticky", view))


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
@pytest.mark.parametrize("topics", [(), ("a",), ("a", "bb")])
def test_members_tell_what_they_had_as_kafkas_do(
    kafka_assignors: KafkaAssignors, name: str, topics: tuple[str, ...]
) -> None:
    partitions = [TopicPartition(topic, number) for topic in topics for number in range(3)]
    (assignor,) = assignors_of([name])
    assignor.assigned(MemberAssignment(partitions), 7)
    told = assignor.user_data(frozenset())
    theirs = kafka_assignors.user_data(name, partitions, 7)
    assert told is not None
    assert len(told) == len(theirs)
    assert (
        name != "sticky" or sorted(read_claim(told).partitions) == sorted(read_claim(theirs).partitions) == partitions
    )
    assert told[-4:] == theirs[-4:]


@BESIDE_KAFKA
@given(view=lives())
def test_subscriptions_are_written_and_read_as_kafka_does_it(
    kafka_assignors: KafkaAssignors, view: list[GroupView]
) -> None:
    for number, member in enumerate(view[0].members.values()):
        owned = tuple(TopicPartition(topic, 3 - number % 4) for topic in member.topics)
        told = replace(
            member, owned=owned, generation=number or None, instance_id=None, user_data=bytes(number) or None
        )
        data = write_subscription(told)
        assert data == kafka_assignors.write(told)
        assert read_subscription(data) == kafka_assignors.read(data) == told
