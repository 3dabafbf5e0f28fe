"""The sticky assignment of a group whose members all want the same topics.

Every member gets `low` or `high = low + 1` partitions, and keeps as much of what it had as that allows. Members are
sorted into those below `low`, which are hungry, and those at `low`, which may get one more while `extras` are left.
"""

from collections import deque

from ottla.client.membership.assignors.model import GroupView, java_order, partition_order
from ottla.client.membership.assignors.racks import RackInfo
from ottla.client.types import TopicPartition

Owned = dict[str, list[TopicPartition]]


class EvenAssignment:
    """`given` is the answer, `moving` what another member owns until it gave it back."""

    def __init__(self, group: GroupView, owned: Owned, contested: set[TopicPartition], racks: RackInfo) -> None:
        self.given: Owned = {member: [] for member in group.members}
        self.moving: dict[TopicPartition, str] = {}
        self._group = group
        self._owned = owned
        self._contested = contested
        self._racks = racks
        self._low, self._extras = divmod(group.partition_count, len(group.members))
        self._high = self._low + (self._extras > 0)
        self._given_up: dict[TopicPartition, str] = {}
        self._hungry: list[str] = []
        self._turn = 0
        self._may_have_one_more: deque[str] = deque()

    def build(self) -> Owned:
        for member in self._group.members:
            self._keep(member)
        kept = {partition for partitions in self.given.values() for partition in partitions}
        free = [part for topic in self._group.topics for part in self._group.partitions_of(topic) if part not in kept]
        self._hungry.sort(key=java_order)
        self._may_have_one_more = deque(sorted(self._may_have_one_more, key=java_order))
        free = self._racks.rarest_first(sorted(free, key=partition_order))
        if self._racks.is_used:
            free = [partition for partition in free if not self._give_nearby(partition)]
        self._deal(free)
        return self.given

    def _keep(self, member: str) -> None:
        kept = []
        for partition in sorted(self._owned[member], key=lambda part: (part.partition, java_order(part.topic))):
            if self._racks.mismatch(member, partition):
                self._given_up[partition] = member
            elif partition not in self._contested:
                kept.append(partition)
        if len(kept) < self._low:
            share = len(kept)
            self._hungry.append(member)
        elif len(kept) >= self._high and self._extras > 0:
            share = self._high
            self._extras -= 1
            if self._extras == 0:
                self._may_have_one_more.clear()
        else:
            share = self._low
            if self._extras > 0:
                self._may_have_one_more.append(member)
        self.given[member] += kept[:share]
        self._given_up.update(dict.fromkeys(kept[share:], member))

    def _give_nearby(self, partition: TopicPartition) -> bool:
        hungry, turn = self._hungry, self._turn
        nearby = self._racks.next_nearby(partition, hungry, turn)
        if nearby is not None:
            member = hungry[nearby]
            if len(self.given[member]) + 1 >= self._low:
                del hungry[nearby]
                if self._low < self._high and self._extras > 0:
                    self._may_have_one_more.append(member)
            else:
                nearby += 1
            self._turn = nearby % len(hungry) if hungry else 0
        else:
            fuller = self._racks.next_nearby(partition, list(self._may_have_one_more), 0)
            if fuller is None:
                return False
            member = self._may_have_one_more[fuller]
            del self._may_have_one_more[fuller]
            self._extras -= 1
            if self._extras == 0:
                self._may_have_one_more.clear()
        self._give(partition, member)
        return True

    def _deal(self, free: list[TopicPartition]) -> None:
        """Round the hungry until nobody is, then one more to each that may."""
        turn = 0
        for partition in free:
            if not self._hungry:
                self._give(partition, self._may_have_one_more.popleft())
                continue
            turn = turn if turn < len(self._hungry) else 0
            member = self._hungry[turn]
            self._give(partition, member)
            if len(self.given[member]) == self._low:
                del self._hungry[turn]
                self._may_have_one_more.append(member)
            else:
                turn += 1

    def _give(self, partition: TopicPartition, member: str) -> None:
        self.given[member].append(partition)
        if self._given_up.get(partition, member) != member or partition in self._contested:
            self.moving[partition] = member
