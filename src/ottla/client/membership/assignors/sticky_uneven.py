"""The sticky assignment of a group whose members want different topics.

First everybody keeps what it has and still wants, and what is free goes to the member with the least. Then partitions
move, one at a time, from a member to one that has at least two fewer and wants the topic, until nobody has. What was
free is tried before what somebody had; and if that did not make it more even, nothing moves at all.
"""

from bisect import bisect_left, insort
from collections import Counter

from ottla.client.membership.assignors.model import GroupView, java_hash, java_order
from ottla.client.membership.assignors.racks import RackInfo
from ottla.client.membership.assignors.sticky_even import Owned
from ottla.client.types import TopicPartition

SMALLEST_TABLE = 16
_Ranked = tuple[int, bytes, str]


class UnevenAssignment:
    """`older_owners` are those that had a partition in an earlier generation."""

    def __init__(
        self, group: GroupView, owned: Owned, older_owners: dict[TopicPartition, str], racks: RackInfo
    ) -> None:
        self._group = group
        self._racks = racks
        self._older_owners = older_owners
        self._wanted = {
            member: dict.fromkeys(topic for topic in subscription.topics if topic in group.topics)
            for member, subscription in group.members.items()
        }
        self._readers: dict[str, list[str]] = {topic: [] for topic in group.topics}
        for member, topics in self._wanted.items():
            for topic in topics:
                self._readers[topic].append(member)
        self._given = owned
        self._reader_of: dict[TopicPartition, str] = {}
        self._held: dict[str, Counter[str]] = {topic: Counter() for topic in group.topics}
        """How many partitions of a topic each member has."""
        self._ranking: list[_Ranked] = []
        self._movements = _Movements()

    def build(self) -> Owned:
        somebody_gives_up = self._drop_unwanted()
        topics = sorted(self._readers, key=lambda topic: (len(self._readers[topic]), java_order(topic)))
        everything = [partition for topic in topics for partition in self._group.partitions_of(topic)]
        free = [partition for partition in everything if partition not in self._reader_of]
        self._ranking = sorted(map(self._rank, self._given))
        is_new = not self._given[self._ranking[-1][2]]
        self._place(free)
        fixed = self._set_aside_fixed()
        before = {member: list(partitions) for member, partitions in self._given.items()}
        movable = [partition for partition in everything if self._is_shared(partition.topic)]
        if not somebody_gives_up:
            self._even_out([partition for partition in free if self._is_shared(partition.topic)])
        has_moved = self._even_out(movable)
        if has_moved and not is_new and _unevenness(self._given) >= _unevenness(before):
            self._given = before
        return {**self._given, **fixed}

    def _drop_unwanted(self) -> bool:
        """Whether somebody has to give back what exists still."""
        somebody_gives_up = False
        for member, partitions in self._given.items():
            wanted = self._wanted[member]
            kept = [part for part in partitions if part.topic in wanted and not self._racks.mismatch(member, part)]
            somebody_gives_up |= len(kept) < len(partitions)
            partitions[:] = kept
            self._reader_of.update(dict.fromkeys(kept, member))
            for partition in kept:
                self._held[partition.topic][member] += 1
        return somebody_gives_up

    def _place(self, free: list[TopicPartition]) -> None:
        if self._racks.is_used:
            free = [partition for partition in free if not self._place_one(partition, nearby=True)]
        for partition in free:
            self._place_one(partition, nearby=False)

    def _place_one(self, partition: TopicPartition, *, nearby: bool) -> bool:
        for _count, _order, member in self._ranking:
            if partition.topic in self._wanted[member] and not (nearby and self._racks.mismatch(member, partition)):
                self._give(partition, member)
                return True
        return False

    def _set_aside_fixed(self) -> Owned:
        """Members that can neither get nor give anything, with what they have."""
        fixed: Owned = {}
        for member, topics in self._wanted.items():
            partitions = self._given[member]
            most = sum(len(self._group.topics[topic]) for topic in topics)
            if len(partitions) >= most and not any(self._is_shared(part.topic) for part in partitions):
                self._ranking.remove(self._rank(member))
                fixed[member] = self._given.pop(member)
        return fixed

    def _is_shared(self, topic: str) -> bool:
        return len(self._readers[topic]) > 1

    def _even_out(self, partitions: list[TopicPartition]) -> bool:
        has_moved = False
        while True:
            moved = False
            for partition in partitions:
                if self._is_balanced():
                    break
                moved |= self._move_if_better(partition)
            has_moved |= moved
            if not moved:
                return has_moved

    def _is_balanced(self) -> bool:
        """Whether nobody could have something of one that has at least two more."""
        if not self._ranking or self._ranking[0][0] >= self._ranking[-1][0] - 1:
            return True
        most: dict[str, int] = {}
        for count, _order, member in self._ranking:
            for topic in self._wanted[member]:
                if topic not in most:
                    holders = self._held[topic]
                    most[topic] = max((len(self._given[holder]) for holder in holders if holders[holder]), default=0)
                if count + 1 < most[topic]:
                    return False
        return True

    def _move_if_better(self, partition: TopicPartition) -> bool:
        """To who had it before, if it still wants it, or to who has the least.

        Kafka's own assignor does not ask whether it still wants it, and then gives a partition to a member that did not
        subscribe, or fails: there the answers differ.
        """
        member = self._reader_of[partition]
        enough = len(self._given[member]) - 1
        older = self._older_owners.get(partition)
        if older in self._readers[partition.topic] and older in self._given and len(self._given[older]) < enough:
            self._move(partition, older)
            return True
        if any(len(self._given[other]) < enough for other in self._readers[partition.topic]):
            self._move(partition, next(who for *_, who in self._ranking if partition.topic in self._wanted[who]))
            return True
        return False

    def _move(self, partition: TopicPartition, to: str) -> None:
        partition = self._movements.better_one(partition, self._reader_of[partition], to)
        source = self._reader_of[partition]
        self._movements.note(partition, source, to)
        del self._ranking[bisect_left(self._ranking, self._rank(source))]
        self._given[source].remove(partition)
        self._held[partition.topic][source] -= 1
        insort(self._ranking, self._rank(source))
        self._give(partition, to)

    def _give(self, partition: TopicPartition, member: str) -> None:
        del self._ranking[bisect_left(self._ranking, self._rank(member))]
        self._given[member].append(partition)
        self._held[partition.topic][member] += 1
        insort(self._ranking, self._rank(member))
        self._reader_of[partition] = member

    def _rank(self, member: str) -> _Ranked:
        return len(self._given[member]), java_order(member), member


class _Movements:
    """What moved from whom to whom: where a partition of a topic went from A to B, none of it need go from B to A."""

    def __init__(self) -> None:
        self._route_of: dict[TopicPartition, tuple[str, str]] = {}
        self._went: dict[tuple[str, str, str], dict[TopicPartition, None]] = {}

    def note(self, partition: TopicPartition, source: str, to: str) -> None:
        origin, before = self._route_of.pop(partition, (source, source))
        self._went.get((partition.topic, origin, before), {}).pop(partition, None)
        if origin != to:
            self._route_of[partition] = origin, to
            self._went.setdefault((partition.topic, origin, to), {})[partition] = None

    def better_one(self, partition: TopicPartition, source: str, to: str) -> TopicPartition:
        """One that went the other way before, which may simply go back; else the one asked for.

        Which one decides what is moved next, so it is the one that Java's clients take: the first of a hash table.
        """
        origin = self._route_of.get(partition, (source, source))[0]
        went = self._went.get((partition.topic, to, origin), {})
        table_size = SMALLEST_TABLE
        while len(went) > table_size * 3 // 4:
            table_size *= 2
        return min(went, key=lambda part: java_hash(part) % table_size, default=partition)


def _unevenness(given: Owned) -> int:
    """The differences between all pairs of members, together."""
    counts = sorted(map(len, given.values()))
    return sum(count * (2 * index + 1 - len(counts)) for index, count in enumerate(counts))
