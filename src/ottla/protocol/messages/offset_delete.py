"""OffsetDelete: forget the offsets of a group for partitions it no longer reads. It has no flexible version."""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Struct, field


class OffsetDeleteRequestPartition(Struct):
    partition_index: Int32 = field("0+")


class OffsetDeleteRequestTopic(Struct):
    name: str = field("0+")
    partitions: list[OffsetDeleteRequestPartition] = field("0+")


class OffsetDeleteRequest(Request, key=ApiKey.OFFSET_DELETE, versions=(0, 0), flexible=None):
    group_id: str = field("0+")
    topics: list[OffsetDeleteRequestTopic] = field("0+")


class OffsetDeleteResponsePartition(Struct):
    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")


class OffsetDeleteResponseTopic(Struct):
    name: str = field("0+")
    partitions: list[OffsetDeleteResponsePartition] = field("0+")


class OffsetDeleteResponse(Response, answers=OffsetDeleteRequest):
    error_code: Int16 = field("0+")
    throttle_time_ms: Int32 = field("0+", ignorable=True)
    topics: list[OffsetDeleteResponseTopic] = field("0+")
