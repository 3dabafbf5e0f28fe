"""What a consumer tells its classic group when it joins: the metadata bytes inside JoinGroup.

The bytes start with the version as an int16. Newer versions only append, so a newer one is read as the newest known.
Version 1 added the partitions a member owns (cooperative rebalancing), 2 the generation they stem from, 3 the rack.
"""

from ottla.protocol.message import Message
from ottla.protocol.schema import Int32, Struct, field


class TopicPartition(Struct):
    topic: str = field("1+")
    partitions: list[Int32] = field("1+")


class ConsumerProtocolSubscription(Message, versions=(0, 3), flexible=None):
    topics: list[str] = field("0+")
    user_data: bytes | None = field("0+", nullable="0+", default=None)
    owned_partitions: list[TopicPartition] = field("1+", ignorable=True)
    generation_id: Int32 = field("2+", default=-1, ignorable=True)
    rack_id: str | None = field("3+", nullable="3+", default=None, ignorable=True)
