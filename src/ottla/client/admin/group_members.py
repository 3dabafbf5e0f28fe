"""Groups and their members, as both protocols describe them."""

from dataclasses import dataclass

from ottla.client.types import TopicPartition
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.messages import consumer_group_describe as consumer_protocol
from ottla.protocol.messages import describe_groups as classic_protocol
from ottla.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from ottla.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

CONSUMER = "consumer"
CLASSIC = "classic"
# How a member of a group of the new protocol speaks to it.
MEMBER_TYPES = {0: CLASSIC, 1: CONSUMER}


@dataclass(frozen=True, slots=True)
class GroupMember:
    """`assignment` is empty where the group assigns other things than partitions. `target` is where a group of the
    new protocol is going; of a classic one it is the assignment. `epoch` is -1 in classic groups."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    target: tuple[TopicPartition, ...]
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    rack: str | None = None
    epoch: int = -1
    type: str = ""


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """`type` is classic or consumer; `epoch` and `assignment_epoch` are -1 in classic groups."""

    group_id: str
    type: str
    state: str
    protocol_type: str
    assignor: str
    coordinator: int
    members: tuple[GroupMember, ...]
    epoch: int = -1
    assignment_epoch: int = -1

    @property
    def is_active(self) -> bool:
        """Members are there, so that nobody else may change the group's offsets."""
        return bool(self.members)

    def owner_of(self, partition: tuple[str, int]) -> GroupMember | None:
        return next((member for member in self.members if partition in member.assignment), None)


def described_consumer(group: consumer_protocol.DescribedGroup, node_id: int) -> GroupDescription:
    return GroupDescription(
        group.group_id,
        CONSUMER,
        group.group_state,
        CONSUMER,
        group.assignor_name,
        node_id,
        tuple(_consumer_member(member) for member in group.members),
        group.group_epoch,
        group.assignment_epoch,
    )


def _consumer_member(member: consumer_protocol.Member) -> GroupMember:
    return GroupMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        _partitions(member.assignment),
        _partitions(member.target_assignment),
        tuple(sorted(member.subscribed_topic_names)),
        member.subscribed_topic_regex or None,
        member.rack_id,
        member.member_epoch,
        MEMBER_TYPES.get(member.member_type, ""),
    )


def _partitions(assignment: consumer_protocol.Assignment) -> tuple[TopicPartition, ...]:
    return tuple(
        sorted(
            TopicPartition(topic.topic_name, partition)
            for topic in assignment.topic_partitions
            for partition in topic.partitions
        )
    )


def described_classic(group: classic_protocol.DescribedGroup, node_id: int) -> GroupDescription:
    return GroupDescription(
        group.group_id,
        CLASSIC,
        group.group_state,
        group.protocol_type,
        group.protocol_data,
        node_id,
        tuple(_classic_member(member, group.protocol_type) for member in group.members),
    )


def _classic_member(member: classic_protocol.DescribedGroupMember, protocol_type: str) -> GroupMember:
    """The bytes are the members' own affair; those of consumers have a form that can be read."""
    assignment: tuple[TopicPartition, ...] = ()
    topics: tuple[str, ...] = ()
    rack = None
    if protocol_type == CONSUMER:
        assignment = read_assignment(member.member_assignment)
        subscription = _read_subscription(member.member_metadata)
        if subscription is not None:
            topics, rack = tuple(sorted(subscription.topics)), subscription.rack_id
    return GroupMember(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        assignment,
        assignment,
        topics,
        rack=rack,
        type=CLASSIC,
    )


def read_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """The partitions inside an assignment of a classic consumer group; none where the bytes are no such thing."""
    version = _version(data, ConsumerProtocolAssignment.MAX_VERSION)
    if version is None:
        return ()
    try:
        assignment = ConsumerProtocolAssignment.decode(data, version, 2, exact=False)
    except MalformedMessage:
        return ()
    return tuple(
        sorted(
            TopicPartition(topic.topic, partition)
            for topic in assignment.assigned_partitions
            for partition in topic.partitions
        )
    )


def _read_subscription(data: bytes) -> ConsumerProtocolSubscription | None:
    version = _version(data, ConsumerProtocolSubscription.MAX_VERSION)
    if version is None:
        return None
    try:
        return ConsumerProtocolSubscription.decode(data, version, 2, exact=False)
    except MalformedMessage:
        return None


def _version(data: bytes, newest: int) -> int | None:
    """Newer versions only append, so that they are read as the newest one known."""
    version = int.from_bytes(data[:2], "big", signed=True) if len(data) >= 2 else -1
    return None if version < 0 else min(version, newest)
