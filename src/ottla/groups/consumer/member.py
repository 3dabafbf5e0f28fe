"""A member of a consumer group, as its records tell.

    STABLE                 has all that the target of its epoch gives it
    UNREVOKED_PARTITIONS   was told to give partitions back, and has not said yet that it did
    UNRELEASED_PARTITIONS  waits for partitions that others have not given back

Assigned partitions remember the epoch in which they were given: a commit of an older epoch is good if the member had
the partition then already.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

from ottla.groups.consumer.assignors import Assignment, topic_order
from ottla.groups.entries import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    TopicPartition,
    TopicPartitions,
)

JOINING_EPOCH = 0
LEAVING_EPOCH = -1
STATIC_LEAVING_EPOCH = -2

GivenPartitions = Mapping[bytes, Mapping[int, int]]
"""By topic id and partition, the epoch in which it was given."""


class MemberState(IntEnum):
    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127

    @classmethod
    def of(cls, number: int) -> "MemberState":
        """A newer version may know states that are not known here."""
        return cls(number) if number in (0, 1, 2) else cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """`classic` is there as long as the member speaks the classic protocol."""

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    topic_regex: str = ""
    server_assignor: str | None = None
    assigned: GivenPartitions = field(default_factory=dict)
    pending_revocation: GivenPartitions = field(default_factory=dict)
    classic: ClassicMemberMetadata | None = None

    @property
    def uses_classic_protocol(self) -> bool:
        return self.classic is not None

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def epoch_given(self, topic_id: bytes, index: int) -> int | None:
        """When it was given this partition; None if it does not have it, not even to give back."""
        given = self.assigned.get(topic_id, {}).get(index)
        return self.pending_revocation.get(topic_id, {}).get(index) if given is None else given

    # Records

    def with_metadata(self, value: ConsumerGroupMemberMetadataValue) -> "ConsumerMember":
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topic_names=frozenset(value.subscribed_topic_names),
            topic_regex=value.subscribed_topic_regex or "",
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor=value.server_assignor,
            classic=value.classic_member_metadata,
        )

    def metadata(self) -> ConsumerGroupMemberMetadataValue:
        return ConsumerGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=sorted(self.topic_names),
            subscribed_topic_regex=self.topic_regex,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.server_assignor,
            classic_member_metadata=self.classic,
        )

    def with_current(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> "ConsumerMember":
        return replace(
            self,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState.of(value.state),
            assigned=_given(value.assigned_partitions, value.member_epoch),
            pending_revocation=_given(value.partitions_pending_revocation, value.member_epoch),
        )

    def current(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        return ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=self.member_epoch,
            previous_member_epoch=self.previous_member_epoch,
            state=int(self.state),
            assigned_partitions=_with_epochs(self.assigned),
            partitions_pending_revocation=_with_epochs(self.pending_revocation),
        )

    def as_left_for_a_while(self) -> "ConsumerMember":
        """Its partitions stay its own, as if it had always had them: who comes back may commit with any epoch."""
        return replace(
            self,
            member_epoch=STATIC_LEAVING_EPOCH,
            assigned={topic_id: dict.fromkeys(given, 0) for topic_id, given in self.assigned.items()},
            pending_revocation={},
        )


def _given(topics: Sequence[TopicPartitions], member_epoch: int) -> GivenPartitions:
    """Records of versions that did not keep the epochs count as given in the epoch of the record."""
    found: dict[bytes, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [max(member_epoch, 0)] * len(topic.partitions)
        found[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return found


def _with_epochs(partitions: GivenPartitions) -> list[TopicPartitions]:
    return [
        TopicPartitions(
            topic_id=topic_id,
            partitions=sorted(partitions[topic_id]),
            assignment_epochs=[partitions[topic_id][index] for index in sorted(partitions[topic_id])],
        )
        for topic_id in sorted(partitions, key=topic_order)
    ]


def target_topics(assignment: Assignment) -> list[TopicPartition]:
    return [
        TopicPartition(topic_id=topic_id, partitions=sorted(assignment[topic_id]))
        for topic_id in sorted(assignment, key=topic_order)
    ]
