"""ShareGroupHeartbeat: a member of a share group joins, stays, subscribes and leaves.

Version 0 was an early one and is gone.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Struct, Uuid, field


class ShareGroupHeartbeatRequest(Request, key=ApiKey.SHARE_GROUP_HEARTBEAT, versions=(1, 1), flexible=0):
    group_id: str = field("0+")
    member_id: str = field("0+")
    member_epoch: Int32 = field("0+")
    rack_id: str | None = field("0+", nullable="0+", default=None)
    subscribed_topic_names: list[str] | None = field("0+", nullable="0+", default=None)


class TopicPartitions(Struct):
    topic_id: Uuid = field("0+")
    partitions: list[Int32] = field("0+")


class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = field("0+")


class ShareGroupHeartbeatResponse(Response, answers=ShareGroupHeartbeatRequest):
    throttle_time_ms: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+", default=None)
    member_id: str | None = field("0+", nullable="0+", default=None)
    member_epoch: Int32 = field("0+")
    heartbeat_interval_ms: Int32 = field("0+")
    assignment: Assignment | None = field("0+", nullable="0+", default=None)
