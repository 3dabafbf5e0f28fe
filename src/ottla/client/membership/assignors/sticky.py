"""`sticky` and `cooperative-sticky`: as even as possible, and as little as possible moves from one member to another.

What members had before is what they claim: `sticky` members in their user data, because they gave everything back
before they joined; `cooperative-sticky` members in the owned partitions that they keep. When two claim the same
partition the newer generation is right, and nobody is when both are of the same one.

User data, as other clients write it:

    sticky, version 0              => [topic => STRING, [partition => INT32]]
    sticky, version 1              => the same, generation => INT32
    cooperative-sticky             => generation => INT32     (for subscriptions before version 2)
"""

import struct
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.client.membership.assignors.model import (
    Assignor,
    GroupView,
    MemberAssignment,
    MemberSubscription,
    RebalanceProtocol,
    partition_order,
)
from ottla.client.membership.assignors.racks import RackInfo
from ottla.client.membership.assignors.sticky_even import EvenAssignment, Owned
from ottla.client.membership.assignors.sticky_uneven import UnevenAssignment
from ottla.client.types import TopicPartition

NO_GENERATION = -1
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")


class Claim(NamedTuple):
    """What one member had, and since when; None where it does not tell."""

    partitions: tuple[TopicPartition, ...] = ()
    generation: int | None = None


class StickyAssignor(Assignor):
    name = "sticky"

    def __init__(self) -> None:
        self._had: tuple[TopicPartition, ...] | None = None
        self._generation = NO_GENERATION

    def user_data(self, topics: frozenset[str]) -> bytes | None:
        return None if self._had is None else write_claim(self._had, self._generation)

    def assign(self, group: GroupView) -> Mapping[str, MemberAssignment]:
        claims = {member: self._claim(subscription) for member, subscription in group.members.items()}
        given, _moving = assign_sticky(group, claims)
        return {member: MemberAssignment(partitions) for member, partitions in given.items()}

    def assigned(self, assignment: MemberAssignment, generation: int) -> None:
        self._had = tuple(assignment.partitions)
        self._generation = generation

    @staticmethod
    def _claim(subscription: MemberSubscription) -> Claim:
        return read_claim(subscription.user_data) if subscription.user_data else Claim()


class CooperativeStickyAssignor(Assignor):
    name = "cooperative-sticky"
    protocols = frozenset({RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER})

    def __init__(self) -> None:
        self._generation = NO_GENERATION

    def user_data(self, topics: frozenset[str]) -> bytes | None:
        return _INT32.pack(self._generation)

    def assign(self, group: GroupView) -> Mapping[str, MemberAssignment]:
        claims = {member: self._claim(subscription) for member, subscription in group.members.items()}
        given, moving = assign_sticky(group, claims)
        return {
            member: MemberAssignment([part for part in partitions if moving.get(part) != member])
            for member, partitions in given.items()
        }

    def assigned(self, assignment: MemberAssignment, generation: int) -> None:
        self._generation = generation

    @staticmethod
    def _claim(subscription: MemberSubscription) -> Claim:
        generation, user_data = subscription.generation, subscription.user_data
        if generation is None and user_data is not None:
            generation = _INT32.unpack_from(user_data)[0] if len(user_data) >= _INT32.size else NO_GENERATION
        return Claim(subscription.owned, generation)


def assign_sticky(group: GroupView, claims: Mapping[str, Claim]) -> tuple[Owned, dict[TopicPartition, str]]:
    """Who gets what, and what of that another member still has to give back: by partition, its new reader."""
    if not group.members:
        return {}, {}
    subscribed = {topic for member in group.members.values() for topic in member.topics}
    group = GroupView(group.members, {topic: group.topics[topic] for topic in group.topics if topic in subscribed})
    owned, contested = _settle(group, claims)
    racks = RackInfo(group)
    if len({frozenset(member.topics) for member in group.members.values()}) == 1:
        even = EvenAssignment(group, owned, contested, racks)
        return even.build(), even.moving
    given = UnevenAssignment(group, owned, _older_owners(claims), racks).build()
    return given, _moving(group, given)


def _settle(group: GroupView, claims: Mapping[str, Claim]) -> tuple[Owned, set[TopicPartition]]:
    """What each member may go on with, of the partitions that exist; and what two claim with the same right."""
    owned: Owned = {}
    contested: set[TopicPartition] = set()
    owners: dict[TopicPartition, str] = {}
    for member in group.members:
        partitions, told = claims[member]
        generation = NO_GENERATION if told is None else told
        mine = owned[member] = []
        for partition in partitions:
            if not 0 <= partition.partition < len(group.topics.get(partition.topic, ())):
                continue
            other = owners.get(partition)
            if other is None:
                owners[partition] = member
                mine.append(partition)
                continue
            others_generation = group.members[other].generation
            others_generation = NO_GENERATION if others_generation is None else others_generation
            if generation < others_generation:
                continue
            if partition in owned[other]:
                owned[other].remove(partition)
            owners[partition] = member
            if generation > others_generation:
                mine.append(partition)
            else:
                contested.add(partition)
    return owned, contested


def _older_owners(claims: Mapping[str, Claim]) -> dict[TopicPartition, str]:
    """Who had a partition last before the newest generation: a good place to move it to."""
    newest = max((claim.generation for claim in claims.values() if claim.generation is not None), default=NO_GENERATION)
    found: dict[TopicPartition, tuple[str, int]] = {}
    for member, claim in claims.items():
        generation = NO_GENERATION if claim.generation is None else claim.generation
        if generation < newest:
            for partition in claim.partitions:
                if partition not in found or found[partition][1] < generation:
                    found[partition] = member, generation
    return {partition: member for partition, (member, _generation) in found.items()}


def _moving(group: GroupView, given: Owned) -> dict[TopicPartition, str]:
    added: dict[TopicPartition, str] = {}
    revoked: set[TopicPartition] = set()
    for member, partitions in given.items():
        owned = set(group.members[member].owned)
        added.update((partition, member) for partition in partitions if partition not in owned)
        revoked |= owned.difference(partitions)
    return {partition: member for partition, member in added.items() if partition in revoked}


def write_claim(partitions: Iterable[TopicPartition], generation: int) -> bytes:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions, key=partition_order):
        by_topic.setdefault(topic, []).append(partition)
    data = bytearray(_INT32.pack(len(by_topic)))
    for topic, numbers in by_topic.items():
        name = topic.encode()
        data += _INT16.pack(len(name)) + name + struct.pack(f">{len(numbers) + 1}i", len(numbers), *numbers)
    return bytes(data + _INT32.pack(generation))


def read_claim(data: bytes) -> Claim:
    """Version 1, or 0 where it ends before the generation. What cannot be read claims nothing."""
    partitions: list[TopicPartition] = []
    try:
        (topic_count,) = _INT32.unpack_from(data)
        at = _INT32.size
        for _ in range(topic_count):
            (length,) = _INT16.unpack_from(data, at)
            at += _INT16.size
            topic = data[at : at + length].decode()
            at += length
            (count,) = _INT32.unpack_from(data, at)
            numbers = struct.unpack_from(f">{count}i", data, at + _INT32.size)
            at += _INT32.size * (count + 1)
            partitions += (TopicPartition(topic, number) for number in numbers)
    except (struct.error, UnicodeDecodeError):
        return Claim((), NO_GENERATION)
    generation = _INT32.unpack_from(data, at)[0] if len(data) >= at + _INT32.size else None
    return Claim(tuple(partitions), generation)
