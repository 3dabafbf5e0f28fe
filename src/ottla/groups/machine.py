"""The groups of one partition of `__consumer_offsets`: what is kept of them, and who decides what.

    classic     members that agree among themselves, in rounds (JoinGroup, SyncGroup, Heartbeat, LeaveGroup)
    consumer    members that are told by the broker, one by one (ConsumerGroupHeartbeat)
    offsets     how far groups have read, whether they have members or not

Each of the three has its own package and decides for itself; here is only the way from a record to whoever keeps it.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol, TypeVar

from ottla.groups.classic import ClassicGroups
from ottla.groups.consumer.groups import ConsumerGroups
from ottla.groups.consumer.keeper import CONSUMER_GROUP_KEYS
from ottla.groups.consumer.migration import Migration
from ottla.groups.context import GroupContext
from ottla.groups.entries import (
    ConsumerGroupMetadataKey,
    GroupMetadataKey,
    LegacyOffsetCommitKey,
    OffsetCommitKey,
)
from ottla.groups.group import DescribedByMembers, Group
from ottla.groups.offsets import GroupOffsets
from ottla.ledger import LedgerKey, Replayed, Timers
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.describe_groups import DescribedGroup

__all__ = ["GroupContext", "GroupMachine", "Part"]


class Part(Protocol):
    """One of the three. Made with the context, the timers and the groups that all of them share."""

    def replay(self, record: Replayed) -> None:
        """Change what is kept as a record says that is this part's business."""
        ...

    def loaded(self) -> None: ...

    def unload(self, error: KafkaError) -> None:
        """Whoever waits is told."""
        ...


PartType = TypeVar("PartType", bound=Part)


class GroupMachine:
    """See the module. `groups` has the groups that have, or had, members; `offsets.group` knows the others too."""

    def __init__(self, context: GroupContext, timers: Timers) -> None:
        self.context = context
        self.timers = timers
        self.groups: dict[str, Group] = {}
        self._parts: list[Part] = []
        self._keepers: dict[type[LedgerKey], list[Part]] = {}
        self.classic = self._add(ClassicGroups(context, timers, self.groups), GroupMetadataKey)
        self.consumer = self._add(ConsumerGroups(context, timers, self.groups), *CONSUMER_GROUP_KEYS)
        self.migration = Migration(self.classic, self.consumer)
        self.offsets = self._add(
            GroupOffsets(context, timers, self.groups),
            OffsetCommitKey,
            LegacyOffsetCommitKey,
            GroupMetadataKey,
            ConsumerGroupMetadataKey,
        )

    def _add(self, part: PartType, *keys: type[LedgerKey]) -> PartType:
        self._parts.append(part)
        for key in keys:
            self._keepers.setdefault(key, []).append(part)
        return part

    # Replaying

    def replay(self, record: Replayed) -> None:
        for part in self._keepers.get(type(record.entry.key), ()):
            part.replay(record)

    def replay_end(self, producer_id: int, producer_epoch: int, *, is_commit: bool) -> None:
        self.offsets.table.end_transaction(producer_id, is_commit=is_commit)

    def loaded(self) -> None:
        for part in self._parts:
            part.loaded()

    def unload(self, error: KafkaError) -> None:
        for part in self._parts:
            part.unload(error)

    # Following the cluster

    def topics_changed(self, deleted: Mapping[str, frozenset[bytes]]) -> None:
        """Topics came, went or changed; the offsets of those that went, by name and ids, are forgotten."""
        if deleted:
            self.offsets.topics_deleted(deleted)

    # Looking at all groups

    def all_groups(self) -> Iterator[Group]:
        """Every group, whether it has members or only offsets; to be looked at within one turn of the loop."""
        return self.offsets.all_groups()

    def describe(self, group_id: str) -> DescribedGroup:
        """A classic group as DescribeGroups tells of it; GROUP_ID_NOT_FOUND for none and for one of another kind."""
        group = self.offsets.group(group_id)
        if isinstance(group, DescribedByMembers):
            return group.describe()
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no classic group {group_id}")
