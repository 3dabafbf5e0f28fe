"""What an assignor is told."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

Assignment = Mapping[bytes, frozenset[int]]
"""Partitions by topic id; a topic without partitions is left out."""

_SIGNED_HALVES = struct.Struct(">qq")


def topic_order(topic_id: bytes) -> tuple[int, ...]:
    """Kafka compares ids as two signed numbers."""
    return _SIGNED_HALVES.unpack(topic_id)


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """A member: the topics it subscribes to, all of which exist, and what it was to have until now."""

    member_id: str
    topic_ids: frozenset[bytes]
    assigned: Assignment = field(default_factory=dict)
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """All members, in the order of their ids, and how many partitions each subscribed topic has.

    In a homogeneous group all members subscribe to the same topics.
    """

    members: tuple[MemberSpec, ...]
    is_homogeneous: bool
    partition_counts: Mapping[bytes, int]
