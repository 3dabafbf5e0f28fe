"""Who reads what: balanced, and with as few moves as possible. Beside Kafka's own in tests/compat."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.groups.consumer.assignors import ASSIGNORS, Assignment, GroupSpec, MemberSpec

A, B = bytes(15) + b"\x01", bytes(15) + b"\x02"


def members(*subscriptions: set[bytes], assigned: dict[int, Assignment] | None = None) -> tuple[MemberSpec, ...]:
    return tuple(
        MemberSpec(f"m{number}", frozenset(topics), (assigned or {}).get(number, {}))
        for number, topics in enumerate(subscriptions)
    )


def test_uniform_leaves_everybody_what_fits() -> None:
    spec = GroupSpec(members({A}, {A}, assigned={0: {A: frozenset({0, 1, 2, 3})}}), True, {A: 4})
    assert ASSIGNORS["uniform"](spec) == {"m0": {A: frozenset({0, 1})}, "m1": {A: frozenset({2, 3})}}


def test_the_one_with_one_more_keeps_it() -> None:
    had: dict[int, Assignment] = {0: {A: frozenset({0})}, 1: {A: frozenset({1, 2})}}
    spec = GroupSpec(members({A}, {A}, assigned=had), True, {A: 3})
    assert ASSIGNORS["uniform"](spec) == {"m0": had[0], "m1": had[1]}


def test_range_gives_the_same_numbers_of_both_topics() -> None:
    spec = GroupSpec(members({A, B}, {A, B}), True, {A: 3, B: 3})
    first, second = frozenset({0, 1}), frozenset({2})
    assert ASSIGNORS["range"](spec) == {"m0": {A: first, B: first}, "m1": {A: second, B: second}}


def test_static_members_have_their_place_in_a_range_whatever_their_id() -> None:
    topics = frozenset({A})
    specs = (MemberSpec("a", topics), MemberSpec("z", topics, instance_id="i"))
    assert ASSIGNORS["range"](GroupSpec(specs, True, {A: 2}))["z"] == {A: frozenset({0})}


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    counts=st.lists(st.integers(1, 40), min_size=2, max_size=2),
    subscriptions=st.lists(st.sets(st.sampled_from([A, B]), min_size=1), min_size=1, max_size=12),
    assignor=st.sampled_from(sorted(ASSIGNORS)),
)
def test_every_partition_has_one_owner_that_wants_it(
    counts: list[int], subscriptions: list[set[bytes]], assignor: str
) -> None:
    is_homogeneous = all(topics == subscriptions[0] for topics in subscriptions)
    wanted = {
        topic_id: count
        for topic_id, count in zip((A, B), counts, strict=True)
        if topic_id in set().union(*subscriptions)
    }
    spec = GroupSpec(members(*subscriptions), is_homogeneous, wanted)
    found = ASSIGNORS[assignor](spec)
    owned = sorted((topic_id, index) for one in found.values() for topic_id, got in one.items() for index in got)
    assert owned == [(topic_id, index) for topic_id in sorted(wanted) for index in range(wanted[topic_id])]
    for member in spec.members:
        assert found[member.member_id].keys() <= member.topic_ids
    if assignor == "uniform" and is_homogeneous:
        loads = [sum(map(len, one.values())) for one in found.values()]
        assert max(loads) - min(loads) <= 1
