"""What a consumer gets from its classic group's leader: the assignment bytes inside SyncGroup.

The bytes start with the version as an int16. Newer versions only append; all of them look alike so far.
"""

from ottla.protocol.message import Message
from ottla.protocol.schema import Int32, Struct, field


class TopicPartition(Struct):
    topic: str = field("0+")
    partitions: list[Int32] = field("0+")


class ConsumerProtocolAssignment(Message, versions=(0, 3), flexible=None):
    assigned_partitions: list[TopicPartition] = field("0+")
    user_data: bytes | None = field("0+", nullable="0+", default=None)
