"""ConsumerGroupHeartbeat: the one request of a member of a consumer group of the next generation.

It joins (epoch 0), stays, changes its subscription, owns up to its partitions and leaves (epoch -1, or -2 for a static
member that will be back); fields that did not change are null. From version 1 members choose their own ids and may
subscribe by regular expression.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Struct, Uuid, field


class TopicPartitions(Struct):
    topic_id: Uuid = field("0+")
    partitions: list[Int32] = field("0+")


class ConsumerGroupHeartbeatRequest(Request, key=ApiKey.CONSUMER_GROUP_HEARTBEAT, versions=(0, 1), flexible=0):
    group_id: str = field("0+")
    member_id: str = field("0+")
    member_epoch: Int32 = field("0+")
    instance_id: str | None = field("0+", nullable="0+", default=None)
    rack_id: str | None = field("0+", nullable="0+", default=None)
    rebalance_timeout_ms: Int32 = field("0+", default=-1)
    subscribed_topic_names: list[str] | None = field("0+", nullable="0+", default=None)
    subscribed_topic_regex: str | None = field("1+", nullable="1+", default=None)
    server_assignor: str | None = field("0+", nullable="0+", default=None)
    topic_partitions: list[TopicPartitions] | None = field("0+", nullable="0+", default=None)


class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = field("0+")


class ConsumerGroupHeartbeatResponse(Response, answers=ConsumerGroupHeartbeatRequest):
    throttle_time_ms: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+", default=None)
    member_id: str | None = field("0+", nullable="0+", default=None)
    member_epoch: Int32 = field("0+")
    heartbeat_interval_ms: Int32 = field("0+")
    assignment: Assignment | None = field("0+", nullable="0+", default=None)
