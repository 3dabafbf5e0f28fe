"""What makes members and whole groups be no more. The order is Kafka's: nothing may be left of what comes later."""

from collections.abc import Sequence

from ottla.groups.entries import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from ottla.ledger.entries import Entry


def member_tombstones(group_id: str, member_id: str) -> list[Entry]:
    return [
        Entry(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)),
        Entry(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)),
        Entry(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)),
    ]


def regex_tombstone(group_id: str, regex: str) -> Entry:
    return Entry(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex))


def group_tombstones(group_id: str, member_ids: Sequence[str], regexes: Sequence[str]) -> list[Entry]:
    current = [
        Entry(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id))
        for member_id in member_ids
    ]
    targets = [
        Entry(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id))
        for member_id in member_ids
    ]
    members = [
        Entry(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)) for member_id in member_ids
    ]
    return [
        *current,
        *targets,
        Entry(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)),
        *members,
        *(regex_tombstone(group_id, regex) for regex in regexes),
        Entry(ConsumerGroupPartitionMetadataKey(group_id=group_id)),
        Entry(ConsumerGroupMetadataKey(group_id=group_id)),
    ]
