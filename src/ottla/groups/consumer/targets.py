"""The target assignment: what each member is to have, worked out for one group epoch.

Only members whose target changed get a record; the epoch's record comes last and says that all of them are there.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.cluster.image import ClusterImage
from ottla.groups.consumer.assignors import ASSIGNORS, Assignment, GroupSpec, MemberSpec
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import ConsumerMember, target_topics
from ottla.groups.entries import (
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from ottla.ledger.entries import Entry


@dataclass(frozen=True, slots=True)
class Target:
    """What one member is to have by an epoch, and what has to be written to make it so."""

    epoch: int
    assignment: Assignment
    entries: tuple[Entry, ...] = ()


def last_target(group: ConsumerGroup, member: ConsumerMember) -> Target:
    return Target(group.assignment_epoch, group.target_of(member.member_id, member.instance_id))


def may_compute(group: ConsumerGroup, interval_ms: int, now_ms: int) -> bool:
    """Whether the last target is old enough for a new one, so that many changes at once share one."""
    last_ms = group.assignment_timestamp_ms
    return not last_ms or not interval_ms or now_ms >= last_ms + interval_ms


def compute_target(
    group: ConsumerGroup,
    epoch: int,
    member: ConsumerMember,
    assignor: str,
    image: ClusterImage,
    now_ms: int,
    *,
    is_homogeneous: bool,
) -> Target:
    """A new target for all; `member` is as it will be, and takes the place of a static member that it replaces."""
    specs, counts = _specs(group, member, image)
    assignments = ASSIGNORS[assignor](GroupSpec(specs, is_homogeneous, counts))
    entries = [
        target_entry(group.group_id, spec.member_id, assignments.get(spec.member_id, {}))
        for spec in specs
        if assignments.get(spec.member_id, {}) != group.targets.get(spec.member_id)
    ]
    entries.append(target_epoch_entry(group.group_id, epoch, now_ms))
    return Target(epoch, assignments.get(member.member_id, {}), tuple(entries))


def _specs(
    group: ConsumerGroup, changed: ConsumerMember, image: ClusterImage
) -> tuple[tuple[MemberSpec, ...], Mapping[bytes, int]]:
    members = {**group.members, changed.member_id: changed}
    replaced = group.static_member(changed.instance_id)
    if replaced is not None and replaced.member_id != changed.member_id:
        members.pop(replaced.member_id)
    known: dict[frozenset[str], frozenset[bytes]] = {}
    specs = []
    for member_id in sorted(members):
        member = members[member_id]
        names = group.topics_of(member)
        if names not in known:
            known[names] = topic_ids(names, image)
        assigned = group.target_of(member_id, member.instance_id)
        specs.append(MemberSpec(member_id, known[names], assigned, member.instance_id))
    subscribed = frozenset().union(*known.values())
    return tuple(specs), {topic_id: len(image.topics_by_id[topic_id].partitions) for topic_id in subscribed}


def topic_ids(names: frozenset[str], image: ClusterImage) -> frozenset[bytes]:
    """Those of the topics that exist."""
    return frozenset(image.topics[name].topic_id for name in names if name in image.topics)


def target_entry(group_id: str, member_id: str, assignment: Assignment) -> Entry:
    return Entry(
        ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        ConsumerGroupTargetAssignmentMemberValue(topic_partitions=target_topics(assignment)),
    )


def target_epoch_entry(group_id: str, epoch: int, now_ms: int) -> Entry:
    return Entry(
        ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=now_ms),
    )
