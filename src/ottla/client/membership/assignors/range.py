"""`range`: topic by topic, each of its members gets a run of neighbouring partitions; the first ones get one more.

Topics with as many partitions and the same members are cut alike, so that partition 3 of all of them has one reader.
Where members and replicas have racks, partitions first go to members in a rack of their replicas, as far as the shares
allow (KIP-881); the co-partitioned topics of a set of members then go together.
"""

from collections.abc import Callable, Mapping
from itertools import islice

from ottla.client.membership.assignors.model import Assignor, GroupView, MemberAssignment, partition_order
from ottla.client.membership.assignors.racks import racks_matter
from ottla.client.types import TopicPartition

Allowed = Callable[[str, int], bool]


class RangeAssignor(Assignor):
    name = "range"

    def assign(self, group: GroupView) -> Mapping[str, MemberAssignment]:
        members = group.members_in_order()
        topics = [
            _Topic(topic, racks, group, [member for member in members if topic in group.members[member].topics])
            for topic, racks in group.topics.items()
            if racks
        ]
        if any(topic.is_rack_aware for topic in topics):
            _match_racks(topics)
        given: dict[str, list[TopicPartition]] = {member: [] for member in group.members}
        for topic in topics:
            topic.cut(lambda _member, _partition: True)
            for member, partitions in topic.given.items():
                given[member] += (TopicPartition(topic.name, partition) for partition in partitions)
        return {member: MemberAssignment(sorted(given[member], key=partition_order)) for member in given}


class _Topic:
    """The shares of one topic while they are given out."""

    def __init__(self, name: str, racks: tuple[frozenset[str], ...], group: GroupView, members: list[str]) -> None:
        self.name = name
        self.racks = racks
        self.members = tuple(members)
        self.rack_of = {member: group.members[member].rack for member in members}
        self.left = dict.fromkeys(range(len(racks)))
        self.given: dict[str, list[int]] = {member: [] for member in members}
        self._share, self._larger_shares = divmod(len(racks), len(members)) if members else (0, 0)
        known_racks = {rack for rack in self.rack_of.values() if rack}
        self.knows_racks = bool(known_racks)
        self.is_rack_aware = self.knows_racks and racks_matter(known_racks, racks)

    def in_rack(self, member: str, partition: int) -> bool:
        """A member without a rack is at home everywhere."""
        rack = self.rack_of[member]
        return not rack or rack in self.racks[partition]

    def room(self, member: str) -> int:
        return max(0, self._share + (self._larger_shares > 0) - len(self.given[member]))

    def give(self, member: str, partitions: list[int]) -> None:
        self.given[member] += partitions
        if len(self.given[member]) > self._share:
            self._larger_shares -= 1
        for partition in partitions:
            del self.left[partition]

    def cut(self, is_allowed: Allowed) -> None:
        """Fill up the members in their order with what is left and allowed to them."""
        for member in self.members:
            allowed = (partition for partition in self.left if is_allowed(member, partition))
            partitions = list(islice(allowed, self.room(member)))
            if partitions:
                self.give(member, partitions)


def _match_racks(topics: list[_Topic]) -> None:
    alike: dict[tuple[tuple[str, ...], int], list[_Topic]] = {}
    for topic in topics:
        counted = len(topic.racks) if topic.knows_racks else 0
        alike.setdefault((topic.members, counted), []).append(topic)
    for (members, partition_count), group in alike.items():
        if len(group) > 1:
            _match_together(members, partition_count, group)
        elif group[0].is_rack_aware:
            group[0].cut(group[0].in_rack)


def _match_together(members: tuple[str, ...], partition_count: int, topics: list[_Topic]) -> None:
    unfilled = dict.fromkeys(members)
    for partition in range(partition_count):
        for member in unfilled:
            if all(topic.in_rack(member, partition) and topic.room(member) > 0 for topic in topics):
                break
        else:
            continue
        for topic in topics:
            topic.give(member, [partition])
        if not any(topic.room(member) > 0 for topic in topics):
            del unfilled[member]
