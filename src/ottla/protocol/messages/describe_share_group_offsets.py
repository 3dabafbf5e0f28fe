"""DescribeShareGroupOffsets: where share groups start to read.

Version 1 adds the lag.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Int64, Struct, Uuid, field


class DescribeShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = field("0+")
    partitions: list[Int32] = field("0+")


class DescribeShareGroupOffsetsRequestGroup(Struct):
    group_id: str = field("0+")
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = field("0+", nullable="0+")


class DescribeShareGroupOffsetsRequest(Request, key=ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, versions=(0, 1), flexible=0):
    groups: list[DescribeShareGroupOffsetsRequestGroup] = field("0+")


class DescribeShareGroupOffsetsResponsePartition(Struct):
    partition_index: Int32 = field("0+")
    start_offset: Int64 = field("0+")
    leader_epoch: Int32 = field("0+")
    lag: Int64 = field("1+", default=-1, ignorable=True)
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+", default=None)


class DescribeShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = field("0+")
    topic_id: Uuid = field("0+")
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = field("0+")


class DescribeShareGroupOffsetsResponseGroup(Struct):
    group_id: str = field("0+")
    topics: list[DescribeShareGroupOffsetsResponseTopic] = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+", default=None)


class DescribeShareGroupOffsetsResponse(Response, answers=DescribeShareGroupOffsetsRequest):
    throttle_time_ms: Int32 = field("0+")
    groups: list[DescribeShareGroupOffsetsResponseGroup] = field("0+")
