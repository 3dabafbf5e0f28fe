"""From records to consumer groups and back: the only place where they change."""

from dataclasses import replace

from ottla.groups.consumer.group import ConsumerGroup, ResolvedRegex
from ottla.groups.consumer.member import LEAVING_EPOCH, ConsumerMember, MemberState
from ottla.groups.entries import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from ottla.groups.group import Group
from ottla.ledger.entries import Entry

CONSUMER_GROUP_KEYS = (
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupRegularExpressionKey,
)
"""The types of records that are kept here."""

NO_ASSIGNMENT = -1


class GroupKeeper:
    """Replays records into `groups`, which other kinds of groups share.

    A record makes its group, so the order of records does not matter beyond that of each key; a group of another kind
    with that name was deleted by the record before, or is nothing but committed offsets.
    """

    def __init__(self, groups: dict[str, Group]) -> None:
        self._groups = groups

    def find(self, group_id: str) -> ConsumerGroup | None:
        found = self._groups.get(group_id)
        return found if isinstance(found, ConsumerGroup) else None

    def replay(self, entry: Entry) -> None:
        key = entry.key
        assert isinstance(key, CONSUMER_GROUP_KEYS)
        group = self.find(key.group_id)
        if group is None:
            if entry.value is None:
                return
            group = self._groups[key.group_id] = ConsumerGroup(key.group_id)
        match key:
            case ConsumerGroupMetadataKey():
                self._replay_group(group, entry)
            case ConsumerGroupPartitionMetadataKey():
                group.has_partition_metadata = entry.value is not None
            case ConsumerGroupMemberMetadataKey():
                self._replay_member(group, key, entry)
            case ConsumerGroupTargetAssignmentMetadataKey():
                self._replay_target_epoch(group, entry)
            case ConsumerGroupTargetAssignmentMemberKey():
                self._replay_target(group, key, entry)
            case ConsumerGroupCurrentMemberAssignmentKey():
                self._replay_current(group, key, entry)
            case ConsumerGroupRegularExpressionKey():
                self._replay_regex(group, key, entry)

    def _replay_group(self, group: ConsumerGroup, entry: Entry) -> None:
        if entry.value is None:
            del self._groups[group.group_id]
            return
        assert isinstance(entry.value, ConsumerGroupMetadataValue)
        group.group_epoch = entry.value.epoch
        group.metadata_hash = entry.value.metadata_hash

    def _replay_member(self, group: ConsumerGroup, key: ConsumerGroupMemberMetadataKey, entry: Entry) -> None:
        if entry.value is None:
            group.remove_member(key.member_id)
            return
        assert isinstance(entry.value, ConsumerGroupMemberMetadataValue)
        before = group.members.get(key.member_id, ConsumerMember(key.member_id))
        group.put_member(before.with_metadata(entry.value))

    def _replay_target_epoch(self, group: ConsumerGroup, entry: Entry) -> None:
        if entry.value is None:
            group.assignment_epoch, group.assignment_timestamp_ms = NO_ASSIGNMENT, 0
            return
        assert isinstance(entry.value, ConsumerGroupTargetAssignmentMetadataValue)
        group.assignment_epoch = entry.value.assignment_epoch
        group.assignment_timestamp_ms = entry.value.assignment_timestamp

    def _replay_target(self, group: ConsumerGroup, key: ConsumerGroupTargetAssignmentMemberKey, entry: Entry) -> None:
        if entry.value is None:
            group.targets.pop(key.member_id, None)
            return
        assert isinstance(entry.value, ConsumerGroupTargetAssignmentMemberValue)
        group.targets[key.member_id] = {
            topic.topic_id: frozenset(topic.partitions) for topic in entry.value.topic_partitions
        }

    def _replay_current(self, group: ConsumerGroup, key: ConsumerGroupCurrentMemberAssignmentKey, entry: Entry) -> None:
        before = group.members.get(key.member_id)
        if entry.value is None:
            if before is not None:
                group.put_member(_without_partitions(before))
            return
        assert isinstance(entry.value, ConsumerGroupCurrentMemberAssignmentValue)
        group.put_member((before or ConsumerMember(key.member_id)).with_current(entry.value))

    def _replay_regex(self, group: ConsumerGroup, key: ConsumerGroupRegularExpressionKey, entry: Entry) -> None:
        if entry.value is None:
            group.put_resolved(key.regular_expression, None)
            return
        assert isinstance(entry.value, ConsumerGroupRegularExpressionValue)
        resolved = ResolvedRegex(frozenset(entry.value.topics), entry.value.version, entry.value.timestamp)
        group.put_resolved(key.regular_expression, resolved)


def _without_partitions(member: ConsumerMember) -> ConsumerMember:
    return replace(
        member,
        member_epoch=LEAVING_EPOCH,
        previous_member_epoch=LEAVING_EPOCH,
        state=MemberState.STABLE,
        assigned={},
        pending_revocation={},
    )
