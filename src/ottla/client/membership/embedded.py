"""What members of a classic group say to each other inside JoinGroup and SyncGroup; brokers see only bytes.

Both begin with a version as an int16. Newer versions only append, so that one newer than the newest known is read as
that.
"""

from collections.abc import Iterable

from ottla.client.membership.assignors.model import MemberAssignment, MemberSubscription, java_order, partition_order
from ottla.client.types import TopicPartition
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.messages import consumer_protocol_assignment, consumer_protocol_subscription
from ottla.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from ottla.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

PROTOCOL_TYPE = "consumer"
_VERSION_BYTES = 2
_NEWEST = ConsumerProtocolSubscription.MAX_VERSION


def write_subscription(subscription: MemberSubscription) -> bytes:
    message = ConsumerProtocolSubscription(
        topics=sorted(subscription.topics, key=java_order),
        user_data=subscription.user_data,
        owned_partitions=[
            consumer_protocol_subscription.TopicPartition(topic=topic, partitions=partitions)
            for topic, partitions in by_topic(sorted(subscription.owned, key=partition_order)).items()
        ],
        generation_id=-1 if subscription.generation is None else subscription.generation,
        rack_id=subscription.rack,
    )
    return _NEWEST.to_bytes(_VERSION_BYTES, "big") + message.encode(_NEWEST)


def read_subscription(data: bytes, instance_id: str | None = None) -> MemberSubscription:
    """MalformedMessage if it is none."""
    message = ConsumerProtocolSubscription.decode(data, _version(data), _VERSION_BYTES, exact=False)
    return MemberSubscription(
        topics=tuple(message.topics),
        owned=tuple(TopicPartition(t.topic, number) for t in message.owned_partitions for number in t.partitions),
        generation=message.generation_id if message.generation_id >= 0 else None,
        user_data=message.user_data,
        instance_id=instance_id,
        rack=message.rack_id or None,
    )


def write_assignment(assignment: MemberAssignment) -> bytes:
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            consumer_protocol_assignment.TopicPartition(topic=topic, partitions=partitions)
            for topic, partitions in by_topic(assignment.partitions).items()
        ],
        user_data=assignment.user_data,
    )
    return _NEWEST.to_bytes(_VERSION_BYTES, "big") + message.encode(_NEWEST)


def read_assignment(data: bytes) -> MemberAssignment:
    """MalformedMessage if it is none, as when the leader forgot a member."""
    message = ConsumerProtocolAssignment.decode(data, _version(data), _VERSION_BYTES, exact=False)
    return MemberAssignment(
        tuple(TopicPartition(t.topic, number) for t in message.assigned_partitions for number in t.partitions),
        message.user_data,
    )


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    numbers: dict[str, list[int]] = {}
    for topic, partition in partitions:
        numbers.setdefault(topic, []).append(partition)
    return numbers


def _version(data: bytes) -> int:
    version = int.from_bytes(data[:_VERSION_BYTES], "big", signed=True)
    if len(data) < _VERSION_BYTES or version < 0:
        raise MalformedMessage(f"no version in {bytes(data[:8])!r}")
    return min(version, _NEWEST)
