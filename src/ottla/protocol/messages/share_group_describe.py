"""ShareGroupDescribe: state and members of share groups.

Version 0 was an early one and is gone.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Struct, Uuid, field


class ShareGroupDescribeRequest(Request, key=ApiKey.SHARE_GROUP_DESCRIBE, versions=(1, 1), flexible=0):
    group_ids: list[str] = field("0+")
    include_authorized_operations: bool = field("0+")


class TopicPartitions(Struct):
    topic_id: Uuid = field("0+")
    topic_name: str = field("0+")
    partitions: list[Int32] = field("0+")


class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = field("0+")


class Member(Struct):
    member_id: str = field("0+")
    rack_id: str | None = field("0+", nullable="0+", default=None)
    member_epoch: Int32 = field("0+")
    client_id: str = field("0+")
    client_host: str = field("0+")
    subscribed_topic_names: list[str] = field("0+")
    assignment: Assignment = field("0+")


class DescribedGroup(Struct):
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+", default=None)
    group_id: str = field("0+")
    group_state: str = field("0+")
    group_epoch: Int32 = field("0+")
    assignment_epoch: Int32 = field("0+")
    assignor_name: str = field("0+")
    members: list[Member] = field("0+")
    authorized_operations: Int32 = field("0+", default=-2147483648)


class ShareGroupDescribeResponse(Response, answers=ShareGroupDescribeRequest):
    throttle_time_ms: Int32 = field("0+")
    groups: list[DescribedGroup] = field("0+")
