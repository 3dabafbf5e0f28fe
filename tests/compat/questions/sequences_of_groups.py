"""Questions about groups whose answers depend on what was asked before: each about one group of its own."""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.compat.questions.about_groups import (
    CHOSEN,
    FETCH_BY_NAME,
    GROUP,
    KNOWN_ID_SINCE,
    OWN_ID_SINCE,
    commit,
    delete_offsets,
    heartbeat,
    join,
    leave,
    new_heartbeat,
    offsets,
    sync,
)
from tests.compat.questions.question import FRESH, FRESH_ID, Ask, Case, Topic, member

from ottla.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.join_group import JoinGroupRequest
from ottla.protocol.messages.list_groups import ListGroupsRequest

ONE, TWO = member(1), member(2)
FOUR = Topic(partitions=4)
Owned = list[tuple[bytes, tuple[int, ...]]]


@dataclass(frozen=True)
class Versions:
    """Those that a client of one age sends."""

    join: int
    sync: int
    heartbeat: int
    leave: int
    commit: int
    fetch: int

    @property
    def static(self) -> bool:
        return self.join >= 5


AGES = (
    Versions(0, 0, 0, 0, 2, 1),
    Versions(1, 0, 0, 1, 3, 2),
    Versions(2, 1, 1, 1, 4, 3),
    Versions(3, 2, 2, 2, 5, 4),
    Versions(4, 2, 2, 2, 6, 5),
    Versions(5, 3, 3, 3, 7, 5),
    Versions(6, 4, 4, 4, 8, 6),
    Versions(7, 5, 4, 4, 8, 7),
    Versions(8, 5, 4, 5, 9, 8),
    Versions(9, 5, 4, 5, 9, 9),
    Versions(9, 5, 4, 5, 10, 10),
)

DESCRIBE = Ask(DescribeGroupsRequest(groups=[GROUP]), 6, settles=True)
DESCRIBE_NEW = Ask(ConsumerGroupDescribeRequest(group_ids=[GROUP]), 1)
LIST = Ask(ListGroupsRequest(), 5, settles=True, only=GROUP)
DELETE = Ask(DeleteGroupsRequest(groups_names=[GROUP]), 2)
FETCH = Ask(offsets(FETCH_BY_NAME), FETCH_BY_NAME)


def group_sequences() -> Iterator[Case]:
    for age in AGES:
        yield from _classic(age)
        if age.static:
            yield from _static(age)
    yield from _offsets()
    for version in (0, 1):
        yield from _new(version)
        yield from _new_together(version)
        yield from _new_static(version)
    yield from _both_kinds()


def _case(label: str, asks: list[Ask], *topics: Topic) -> Case:
    return Case(asks[0].api, asks[0].version, f"group: {label}", tuple(asks), topics or (Topic(),), late=True)


# Classic groups


def _joined(age: Versions, request: JoinGroupRequest | None = None) -> list[Ask]:
    """A first member, known and with its assignment, in generation 1."""
    first = join() if request is None else request
    asks = [Ask(first, age.join)]
    if age.join >= KNOWN_ID_SINCE and first.group_instance_id is None:
        again = join(ONE, protocols=tuple(one.name for one in first.protocols), kind=first.protocol_type)
        again.rebalance_timeout_ms = first.rebalance_timeout_ms
        asks.append(Ask(again, age.join))
    given = sync(ONE, 1, ONE, instance=first.group_instance_id, kind=first.protocol_type)
    return [*asks, Ask(given, age.sync)]


def _classic(age: Versions) -> Iterator[Case]:
    beat = Ask(heartbeat(ONE, 1), age.heartbeat)
    yield _case(
        "life",
        [
            *_joined(age),
            beat,
            Ask(sync(ONE, 1), age.sync),
            Ask(commit(7, generation=1, member_id=ONE), age.commit),
            Ask(offsets(age.fetch, 0, 1), age.fetch),
            DESCRIBE,
            LIST,
            DELETE,
            Ask(delete_offsets(0), 0),
            Ask(leave(age.leave, ONE), age.leave),
            beat,
            DESCRIBE,
            LIST,
            FETCH,
        ],
    )
    yield _case(
        "what does not fit",
        [
            *_joined(age),
            Ask(heartbeat(ONE, 2), age.heartbeat),
            Ask(heartbeat(ONE, 0), age.heartbeat),
            Ask(heartbeat("x", 1), age.heartbeat),
            Ask(sync(ONE, 2, ONE), age.sync),
            Ask(sync("x", 1), age.sync),
            Ask(commit(7, generation=2, member_id=ONE), age.commit),
            Ask(commit(7, generation=0, member_id=ONE), age.commit),
            Ask(commit(7, generation=1, member_id="x"), age.commit),
            Ask(commit(7), age.commit),
            Ask(commit(7, generation=-1, member_id=ONE), age.commit),
            Ask(leave(age.leave, "x"), age.leave),
            Ask(join(kind="connect"), age.join),
            Ask(join(protocols=("other",)), age.join),
            Ask(join("x"), age.join),
            DESCRIBE,
        ],
    )
    yield _case(
        "joins again",
        [
            *_joined(age),
            Ask(join(ONE, topics=(FRESH, "another")), age.join),
            Ask(heartbeat(ONE, 1), age.heartbeat),
            Ask(heartbeat(ONE, 2), age.heartbeat),
            Ask(commit(1, generation=2, member_id=ONE), age.commit),
            Ask(sync(ONE, 2, ONE), age.sync),
            Ask(commit(1, generation=2, member_id=ONE), age.commit),
            DESCRIBE,
        ],
    )
    if age.join > 0:
        yield _case("a second one pushes the first out", _pushed_out(age))


def _pushed_out(age: Versions) -> list[Ask]:
    """The first does not come back within its rebalance timeout."""
    asks = [*_joined(age), Ask(join(), age.join)]
    if age.join >= KNOWN_ID_SINCE:
        asks.append(Ask(join(TWO), age.join))
    return [
        *asks,
        Ask(heartbeat(ONE, 1), age.heartbeat),
        Ask(sync(TWO, 2, TWO), age.sync),
        Ask(heartbeat(TWO, 2), age.heartbeat),
        Ask(commit(3, generation=1, member_id=ONE), age.commit),
        Ask(commit(4, generation=2, member_id=TWO), age.commit),
        DESCRIBE,
        FETCH,
    ]


def _static(age: Versions) -> Iterator[Case]:
    first = _joined(age, join(instance="i"))
    yield _case(
        "static",
        [
            *first,
            Ask(join(instance="i"), age.join),
            Ask(heartbeat(ONE, 1, "i"), age.heartbeat),
            Ask(heartbeat(TWO, 1, "i"), age.heartbeat),
            Ask(heartbeat("", 1, "i"), age.heartbeat),
            Ask(sync(TWO, 1, instance="i"), age.sync),
            Ask(sync(ONE, 1, instance="i"), age.sync),
            Ask(commit(3, generation=1, member_id=ONE, instance="i"), age.commit),
            Ask(commit(4, generation=1, member_id=TWO, instance="i"), age.commit),
            Ask(commit(5, generation=1, member_id=TWO, instance="other"), age.commit),
            DESCRIBE,
            Ask(leave(age.leave, ONE, "i"), age.leave),
            Ask(leave(age.leave, "", "other"), age.leave),
            Ask(leave(age.leave, "", "i"), age.leave),
            DESCRIBE,
            FETCH,
        ],
    )
    changed = join(instance="i", topics=(FRESH, "another"))
    yield _case(
        "static, with another subscription",
        [*first, Ask(changed, age.join), Ask(heartbeat(TWO, 2, "i"), age.heartbeat), DESCRIBE],
    )


# Offsets


def _offsets() -> Iterator[Case]:
    for version in range(2, 11):
        yield _case(
            "offsets without members",
            [
                Ask(commit(5), version),
                Ask(commit(3, metadata=""), version),
                *(Ask(offsets(one, 0, 1), one) for one in range(1, 11)),
                *(Ask(offsets(one), one) for one in (2, 5, 7, 8, 9, 10)),
                DESCRIBE,
                DESCRIBE_NEW,
                LIST,
                Ask(delete_offsets(0, 1), 0),
                FETCH,
                Ask(commit(9), version),
                DELETE,
                FETCH,
                DELETE,
                LIST,
            ],
        )


# The next generation of groups


@dataclass(frozen=True)
class NewMembers:
    """What two members of the next generation ask, in one version: from 1 on they choose their ids themselves."""

    version: int

    @property
    def names(self) -> tuple[str, str]:
        return (CHOSEN, "the-other") if self.version >= OWN_ID_SINCE else (ONE, TWO)

    def begin(self, member_id: str) -> Ask:
        return Ask(new_heartbeat(member_id if self.version >= OWN_ID_SINCE else "", 0), self.version)

    def beat(self, member_id: str, epoch: int, owned: Owned | None = None) -> Ask:
        return Ask(new_heartbeat(member_id, epoch, topics=None, owned=owned, rebalance_ms=-1), self.version)


ALL_FOUR: Owned = [(FRESH_ID, (0, 1, 2, 3))]
TWO_OF_FOUR: Owned = [(FRESH_ID, (0, 1))]


def _new(version: int) -> Iterator[Case]:
    """The first epoch of a group is 1; its first member makes it 2."""
    members = NewMembers(version)
    first, _ = members.names
    begin, beat = members.begin, members.beat
    yield _case(
        "new: life",
        [
            begin(first),
            beat(first, 2),
            beat(first, 2, ALL_FOUR),
            DESCRIBE_NEW,
            DESCRIBE,
            LIST,
            *(Ask(commit(6, generation=2, member_id=first), one) for one in (9, 10)),
            Ask(offsets(10, 0, member_id=first, epoch=2), 10),
            Ask(offsets(9, 0, member_id=first, epoch=3), 9),
            Ask(offsets(9, 0, member_id="x", epoch=2), 9),
            DELETE,
            Ask(delete_offsets(0), 0),
            beat(first, -1),
            beat(first, 2),
            DESCRIBE_NEW,
            FETCH,
            DELETE,
            LIST,
        ],
        FOUR,
    )
    yield _case(
        "new: what does not fit",
        [
            begin(first),
            beat(first, 3),
            beat(first, -2),
            beat("x", 2),
            Ask(commit(6, generation=1, member_id=first), 9),
            Ask(commit(6, generation=3, member_id=first), 9),
            Ask(commit(6, generation=2, member_id="x"), 9),
            Ask(commit(6), 9),
            Ask(commit(6, generation=2, member_id=first), 8),
            Ask(heartbeat(first, 2), 4),
            Ask(join(first), 9),
            Ask(join(kind="connect"), 9),
            Ask(sync(first, 1), 5),
            Ask(leave(5, first), 5),
            DESCRIBE_NEW,
        ],
        FOUR,
    )


def _new_together(version: int) -> Iterator[Case]:
    members = NewMembers(version)
    first, second = members.names
    begin, beat = members.begin, members.beat
    yield _case(
        "new: two members",
        [
            begin(first),
            beat(first, 2, ALL_FOUR),
            begin(second),
            beat(second, 3, []),
            beat(first, 2),
            beat(second, 3),
            beat(first, 2, TWO_OF_FOUR),
            beat(second, 3),
            DESCRIBE_NEW,
            beat(second, -1),
            beat(first, 3),
            beat(first, 3, TWO_OF_FOUR),
            beat(first, 4),
            DESCRIBE_NEW,
        ],
        FOUR,
    )
    yield _case(
        "new: other topics",
        [
            begin(first),
            Ask(new_heartbeat(first, 2, topics=()), version),
            beat(first, 2, []),
            beat(first, 3, []),
            Ask(new_heartbeat(first, 3, topics=(FRESH, "no-such-topic"), assignor="range"), version),
            beat(first, 4, ALL_FOUR),
            DESCRIBE_NEW,
        ],
        FOUR,
    )


def _new_static(version: int) -> Iterator[Case]:
    first = CHOSEN if version >= OWN_ID_SINCE else ONE
    chosen = CHOSEN if version >= OWN_ID_SINCE else ""
    other = "the-other" if version >= OWN_ID_SINCE else ""

    def away(member_id: str, epoch: int, instance: str = "i") -> Ask:
        return Ask(new_heartbeat(member_id, epoch, topics=None, instance=instance, rebalance_ms=-1), version)

    yield _case(
        "new: static",
        [
            Ask(new_heartbeat(chosen, 0, instance="i"), version),
            Ask(new_heartbeat(other, 0, instance="i"), version),
            away(first, 2),
            away("x", 2),
            away(first, -2),
            DESCRIBE_NEW,
            Ask(commit(1, generation=2, member_id=first, instance="i"), 9),
            Ask(new_heartbeat(other, 0, instance="i"), version),
            DESCRIBE_NEW,
            away(first, 2),
        ],
        FOUR,
    )


# From one kind to the other


def _both_kinds() -> Iterator[Case]:
    age = AGES[-1]
    yield _case(
        "a new member in a classic group",
        [
            *_joined(age),
            Ask(commit(5, generation=1, member_id=ONE), 9),
            Ask(new_heartbeat(CHOSEN, 0), 1),
            Ask(heartbeat(ONE, 1), age.heartbeat),
            LIST,
            DESCRIBE_NEW,
            Ask(new_heartbeat(CHOSEN, -1, topics=None), 1),
            LIST,
            FETCH,
        ],
    )
    yield _case(
        "a new member among connectors",
        [*_joined(age, join(kind="connect")), Ask(new_heartbeat(CHOSEN, 0), 1), LIST, DESCRIBE],
    )
    empty = [Ask(commit(5), 9), Ask(new_heartbeat(CHOSEN, 0), 1), LIST, DESCRIBE, DESCRIBE_NEW, FETCH]
    yield _case("a new member where only offsets are", empty)
    emptied = [Ask(new_heartbeat(CHOSEN, 0), 1), Ask(new_heartbeat(CHOSEN, -1, topics=None), 1)]
    yield _case("a classic member in an empty new group", [*emptied, Ask(join(), 9), Ask(join(ONE), 9), LIST, DESCRIBE])
