"""What an assignor is given and what it answers: the members of a group, the partitions of their topics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, Protocol

from ottla.client.types import TopicPartition


class RebalanceProtocol(IntEnum):
    """Whether a member gives back everything before it joins, or keeps what it still has afterwards (KIP-429)."""

    EAGER = 0
    COOPERATIVE = 1


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """What one member said when it joined. `generation` is the one in which it got `owned`, None if it did not tell."""

    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    generation: int | None = None
    user_data: bytes | None = None
    instance_id: str | None = None
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class GroupView:
    """All members by id, and for each partition of each topic that exists the racks of its replicas.

    Members and topics are in their order (`java_order`), so that an answer depends on nothing else.
    """

    members: Mapping[str, MemberSubscription]
    topics: Mapping[str, tuple[frozenset[str], ...]] = field(default_factory=dict)

    @property
    def partition_count(self) -> int:
        return sum(map(len, self.topics.values()))

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, partition) for partition in range(len(self.topics.get(topic, ())))]

    def members_in_order(self) -> list[str]:
        """Static members first, by their instance ids, then the others by their member ids."""
        return sorted(self.members, key=self._rank)

    def _rank(self, member_id: str) -> tuple[bool, bytes]:
        instance_id = self.members[member_id].instance_id
        return instance_id is None, java_order(member_id if instance_id is None else instance_id)


class MemberAssignment(NamedTuple):
    partitions: Sequence[TopicPartition]
    user_data: bytes | None = None


class Assignor(Protocol):
    """Decides in a classic group who reads what: the leader's `assign` is called in every rebalance.

    A custom one inherits from this class and is given to a consumer as `partition_assignment_strategy=[MyAssignor()]`;
    all members of a group must have one of that name.

        class Alphabetical(Assignor):
            name = "alphabetical"

            def assign(self, group):
                first = min(group.members)
                everything = [part for topic in group.topics for part in group.partitions_of(topic)]
                return {member: MemberAssignment(everything if member == first else []) for member in group.members}
    """

    name: str
    protocols: frozenset[RebalanceProtocol] = frozenset({RebalanceProtocol.EAGER})

    def user_data(self, topics: frozenset[str]) -> bytes | None:
        """What this member tells the leader beside its topics when it joins."""
        return None

    def assign(self, group: GroupView) -> Mapping[str, MemberAssignment]:
        """An answer for every member. With COOPERATIVE among `protocols`, a partition that a member owns must not be
        given to another before it was in nobody's answer."""
        ...

    def assigned(self, assignment: MemberAssignment, generation: int) -> None:
        """What the leader gave to this member."""
        return


def java_order(text: str) -> bytes:
    """The key by which Java's clients sort strings: by UTF-16 units, where Python goes by code points."""
    return text.encode("utf-16-be", "surrogatepass")


def partition_order(partition: TopicPartition) -> tuple[bytes, int]:
    """By topic, then by number."""
    return java_order(partition.topic), partition.partition


def java_hash(partition: TopicPartition) -> int:
    """Where a partition goes in Java's hash tables, before the size of the table is considered."""
    units = java_order(partition.topic)
    topic = 0
    for at in range(0, len(units), 2):
        topic = (31 * topic + units[at] * 256 + units[at + 1]) % 2**32
    found = (31 * (31 + partition.partition) + topic) % 2**32
    return found ^ found >> 16
