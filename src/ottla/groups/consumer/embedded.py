"""What classic consumers say to each other inside JoinGroup and SyncGroup, which the broker only sees as bytes.

Both begin with a version; a newer one than the newest known is read and written as that.
"""

import struct
from collections.abc import Iterable, Mapping

from ottla.cluster.image import ClusterImage
from ottla.groups.consumer.assignors import topic_order
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from ottla.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

_VERSION = struct.Struct(">h")


def embedded_version(data: bytes) -> int:
    """MalformedMessage if there is none."""
    if len(data) < _VERSION.size:
        raise MalformedMessage(f"a version expected, {len(data)} bytes came")
    version = int.from_bytes(data[: _VERSION.size], "big", signed=True)
    if version < 0:
        raise MalformedMessage(f"{version} is no version")
    return min(version, ConsumerProtocolSubscription.MAX_VERSION)


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    return ConsumerProtocolSubscription.decode(data, embedded_version(data), _VERSION.size, exact=False)


def owned_by(subscription: ConsumerProtocolSubscription, image: ClusterImage) -> frozenset[tuple[bytes, int]]:
    """The partitions that a consumer says it has, of topics that exist."""
    return frozenset(
        (image.topics[topic.topic].topic_id, index)
        for topic in subscription.owned_partitions
        if topic.topic in image.topics
        for index in topic.partitions
    )


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    return ConsumerProtocolAssignment.decode(data, embedded_version(data), _VERSION.size, exact=False)


def write_assignment(partitions: Mapping[bytes, Iterable[int]], version: int, image: ClusterImage) -> bytes:
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            TopicPartition(topic=image.topics_by_id[topic_id].name, partitions=sorted(partitions[topic_id]))
            for topic_id in sorted(partitions, key=topic_order)
            if topic_id in image.topics_by_id
        ]
    )
    return _VERSION.pack(version) + assignment.encode(version)
