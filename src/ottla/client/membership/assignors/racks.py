"""Whether racks matter to an assignment at all, as Kafka decides it."""

from collections import Counter
from collections.abc import Collection, Mapping, Set

from ottla.client.membership.assignors.model import GroupView
from ottla.client.types import TopicPartition


def racks_matter(member_racks: Set[str], racks_by_partition: Collection[frozenset[str]]) -> bool:
    """Only if some member has a replica in its rack, and not every partition has replicas in the same racks."""
    partition_racks = frozenset().union(*racks_by_partition)
    if member_racks.isdisjoint(partition_racks):
        return False
    return any(racks != partition_racks for racks in racks_by_partition)


class RackInfo:
    """Which members and partitions are in the same racks. Nothing mismatches where racks do not matter."""

    def __init__(self, group: GroupView) -> None:
        racks = {
            TopicPartition(topic, at): racks
            for topic, all_racks in group.topics.items()
            for at, racks in enumerate(all_racks)
        }
        members = {member_id: member.rack for member_id, member in group.members.items() if member.rack}
        counts = Counter(members.values())
        self._readers_nearby = {part: sum(counts[rack] for rack in racks[part]) for part in racks} if members else {}
        self.is_used = bool(members) and racks_matter(set(members.values()), racks.values())
        self.rack_of: Mapping[str, str] = members if self.is_used else {}
        self._racks: Mapping[TopicPartition, frozenset[str]] = racks if self.is_used else {}

    def mismatch(self, member: str, partition: TopicPartition) -> bool:
        """A member without a rack is at home everywhere."""
        rack = self.rack_of.get(member)
        return rack is not None and rack not in self._racks.get(partition, frozenset())

    def is_near(self, member: str, partition: TopicPartition) -> bool:
        """A member without a rack is near nothing."""
        rack = self.rack_of.get(member)
        return rack is not None and rack in self._racks.get(partition, frozenset())

    def rarest_first(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Those with the fewest members nearby, which are hardest to place; otherwise in the order given."""
        return sorted(partitions, key=lambda partition: self._readers_nearby.get(partition, 0))

    def next_nearby(self, partition: TopicPartition, members: list[str], start: int) -> int | None:
        """The index of the first member near the partition, round the circle from `start`."""
        for step in range(len(members)):
            index = (start + step) % len(members)
            if self.is_near(members[index], partition):
                return index
        return None
