"""As many partitions for each member as for every other, give or take one, moving as few as possible.

Where all members subscribe to the same topics, shares follow from counting: everybody keeps what fits into its share,
and what is left over goes to those with room. Otherwise see `uniform_mixed`.
"""

from ottla.groups.consumer.assignors.spec import Assignment, GroupSpec, MemberSpec, topic_order
from ottla.groups.consumer.assignors.uniform_mixed import MixedBuilder


def assign_uniformly(spec: GroupSpec) -> dict[str, Assignment]:
    if not spec.members:
        return {}
    if spec.is_homogeneous:
        return _HomogeneousBuilder(spec).build()
    return MixedBuilder(spec).build()


class _HomogeneousBuilder:
    def __init__(self, spec: GroupSpec) -> None:
        self._spec = spec
        self._topic_ids = spec.members[0].topic_ids
        self._free: list[tuple[bytes, int]] = []
        self._unfilled: list[tuple[str, int]] = []
        self._result: dict[str, dict[bytes, set[int]]] = {}

    def build(self) -> dict[str, Assignment]:
        if not self._topic_ids:
            return {}
        total = self._find_free()
        share, rest = divmod(total, len(self._spec.members))
        for number, member in enumerate(self._spec.members):
            rest = self._keep(member, share, rest, len(self._spec.members) - number)
        self._hand_out()
        return {
            member_id: {topic_id: frozenset(partitions) for topic_id, partitions in kept.items() if partitions}
            for member_id, kept in self._result.items()
        }

    def _find_free(self) -> int:
        """Collect the partitions that nobody has; how many partitions there are in all."""
        taken: dict[bytes, set[int]] = {topic_id: set() for topic_id in self._topic_ids}
        for member in self._spec.members:
            for topic_id, partitions in member.assigned.items():
                if topic_id in taken:
                    taken[topic_id] |= partitions
        total = 0
        for topic_id in sorted(self._topic_ids, key=topic_order):
            count = self._spec.partition_counts[topic_id]
            self._free.extend((topic_id, index) for index in range(count) if index not in taken[topic_id])
            total += count
        return total

    def _keep(self, member: MemberSpec, share: int, rest: int, members_left: int) -> int:
        """Let a member keep what fits into its share; how many members may still have one more than that.

        One that could have one more but does not fill it leaves it to others, if there are others left to take it.
        """
        room = share + (1 if rest else 0)
        has_one_more = rest > 0
        kept: dict[bytes, set[int]] = {}
        for topic_id in sorted(member.assigned, key=topic_order):
            if topic_id not in self._topic_ids:
                continue
            partitions = sorted(member.assigned[topic_id])
            kept[topic_id] = set(partitions[:room])
            self._free.extend((topic_id, index) for index in partitions[room:])
            room -= len(kept[topic_id])
        if room > 0 and has_one_more and members_left > rest:
            room -= 1
            has_one_more = False
        if room > 0:
            self._unfilled.append((member.member_id, room))
        self._result[member.member_id] = kept
        return rest - 1 if has_one_more else rest

    def _hand_out(self) -> None:
        free = iter(self._free)
        for member_id, room in self._unfilled:
            kept = self._result[member_id]
            for _, (topic_id, index) in zip(range(room), free, strict=False):
                kept.setdefault(topic_id, set()).add(index)
