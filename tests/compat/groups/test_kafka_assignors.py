"""Assignors, hashes and expressions beside Kafka's own.

Kafka's assignors follow the order of Java's hash tables in places; topic ids and partitions here are such that this is
their natural order, which is the one that is always followed here.
"""

from __future__ import annotations

import base64
import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.compat.groups.oracle import KafkaGroups

from ottla.cluster.image import BrokerRegistration, ClusterImage, PartitionImage, TopicImage
from ottla.groups.consumer.assignors import ASSIGNORS, Assignment, GroupSpec, MemberSpec
from ottla.groups.consumer.metadata_hash import topic_hash
from ottla.groups.consumer.xxh3 import xxh3_64
from ottla.protocol.uuids import uuid_to_text
from ottla.regex import RegexError, compile_regex

BESIDE_KAFKA = settings(
    max_examples=80,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
TOPICS = [number.to_bytes(16, "big") for number in range(1, 6)]


@st.composite
def group_specs(draw: st.DrawFn) -> tuple[str, GroupSpec, list[frozenset[bytes]]]:
    """A group, and the subscriptions with which its members go on."""
    counts = {topic_id: draw(st.integers(1, 12)) for topic_id in draw(st.sets(st.sampled_from(TOPICS), min_size=1))}
    subscriptions = st.sets(st.sampled_from(sorted(counts)), max_size=5).map(frozenset)
    member_count = draw(st.integers(1, 8))
    is_homogeneous = draw(st.booleans())
    chosen = [draw(subscriptions)] * member_count if is_homogeneous else []
    while len(chosen) < member_count:
        chosen.append(draw(subscriptions))
    members = tuple(
        MemberSpec(f"m{number}", topics, {}, draw(st.sampled_from([None, f"i{9 - number}"])))
        for number, topics in enumerate(chosen)
    )
    later = [draw(subscriptions)] * 8 if is_homogeneous else draw(st.lists(subscriptions, min_size=8, max_size=8))
    return draw(st.sampled_from(sorted(ASSIGNORS))), GroupSpec(members, is_homogeneous, counts), later


def complete(assignments: dict[str, Assignment], spec: GroupSpec) -> dict[str, Assignment]:
    return {member.member_id: assignments.get(member.member_id, {}) for member in spec.members}


@BESIDE_KAFKA
@given(case=group_specs(), gone=st.sets(st.integers(0, 7)), come=st.integers(0, 3), grown=st.integers(0, 4))
def test_assignments_are_kafkas_when_a_group_begins_and_when_it_changes(
    kafka_groups: KafkaGroups,
    case: tuple[str, GroupSpec, list[frozenset[bytes]]],
    gone: set[int],
    come: int,
    grown: int,
) -> None:
    assignor, spec, later = case
    first = complete(ASSIGNORS[assignor](spec), spec)
    assert first == complete(kafka_groups.assign(assignor, spec), spec)
    members = [
        MemberSpec(member.member_id, later[number], first[member.member_id], member.instance_id)
        for number, member in enumerate(spec.members)
        if number not in gone
    ] + [MemberSpec(f"n{number}", later[number]) for number in range(come)]
    counts = {topic_id: min(count + grown, 14) for topic_id, count in spec.partition_counts.items()}
    changed = GroupSpec(tuple(members), spec.is_homogeneous, counts)
    if members:
        again = complete(ASSIGNORS[assignor](changed), changed)
        assert again == complete(kafka_groups.assign(assignor, changed), changed)


@BESIDE_KAFKA
@given(data=st.one_of(st.binary(max_size=20), st.binary(max_size=300), st.binary(min_size=900, max_size=2_500)))
def test_the_hash_is_kafkas(kafka_groups: KafkaGroups, data: bytes) -> None:
    assert xxh3_64(data) == int(kafka_groups.ask("hash", base64.b64encode(data).decode()))


@BESIDE_KAFKA
@given(
    name=st.text("abcXYZ019._-", min_size=1, max_size=40),
    topic_id=st.binary(min_size=16, max_size=16),
    racks=st.lists(st.lists(st.sampled_from(["r1", "rack-2", "ü"]), max_size=3, unique=True), min_size=1, max_size=30),
)
def test_the_hash_of_a_topic_is_kafkas(
    kafka_groups: KafkaGroups, name: str, topic_id: bytes, racks: list[list[str]]
) -> None:
    brokers = {
        node_id: BrokerRegistration(node_id, (), rack, 0, b"") for node_id, rack in enumerate(["r1", "rack-2", "ü"])
    }
    nodes = {registration.rack: node_id for node_id, registration in brokers.items()}
    partitions = tuple(
        PartitionImage(index, 0, 0, tuple(nodes[rack] for rack in of_partition), (), 0)
        for index, of_partition in enumerate(racks)
    )
    topic = TopicImage(name, topic_id, partitions)
    expected = kafka_groups.ask("topic", name, uuid_to_text(topic_id), json.dumps(racks))
    assert topic_hash(topic, ClusterImage(brokers=brokers)) == int(expected)


SYNTAX = [
    r"\.",
    "[ab]",
    "[^a]",
    "[a-c_-]",
    r"\d",
    r"\w",
    r"\W",
    r"\b",
    r"\B",
    "[[:alpha:]]",
    "[^[:digit:]]",
    "[]a]",
    "x{",
]
ESCAPES = [
    "(?i)",
    "(?s)",
    "(?m)",
    "(?-s)",
    "(?i:A)",
    r"\s",
    r"\S",
    "[[:space:]]",
    "[^[:word:]]",
    "ü",
    r"\Qa.b\E",
    r"\x61",
    r"\x{62}",
    r"\pL",
    r"\P{Lu}",
    r"\141",
    r"\z",
    r"\A",
    r"\1",
    r"\y",
]
GROUPS = ["{2}", "{1,}", "{0,2}", "{3,1}", "(?=a)", "(?P<n>a)", "(?:b)"]
ATOMS = st.sampled_from([*"ab-_.^$,{}])([*+?|\\", *SYNTAX, *ESCAPES, *GROUPS])
PATTERNS = st.recursive(
    st.lists(ATOMS, max_size=4).map("".join),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "*?"])).map(lambda two: f"({two[0]}){two[1]}"),
    ),
    max_leaves=4,
)
NAMES = ["a", "b", "ab", "a.b", "abab", "A", "B-b", "a_b", "a-b-", "x", "9", "aaa", "..", "_", "ba", "c9", "{", "a]"]
OTHER_NAMES = ["", "a b", "a\nb", "\n", "a\n", "ü", "Ü", "aü", "{", "a]", "x{", "\t", "ä-b", "ж", "漢"]


@settings(BESIDE_KAFKA, max_examples=200)
@given(pattern=PATTERNS)
def test_expressions_mean_what_they_mean_to_kafka(kafka_groups: KafkaGroups, pattern: str) -> None:
    names = [*NAMES, *OTHER_NAMES]
    expected = kafka_groups.matches(pattern, names)
    try:
        matcher = compile_regex(pattern)
    except RegexError:
        assert expected is None, f"{pattern!r} is an expression to Kafka"
        return
    assert expected is not None, f"{pattern!r} is no expression to Kafka"
    assert [matcher.matches(name) for name in names] == expected
