"""AlterShareGroupOffsets: set where an empty share group starts to read."""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Int64, Struct, Uuid, field


class AlterShareGroupOffsetsRequestPartition(Struct):
    partition_index: Int32 = field("0+")
    start_offset: Int64 = field("0+")


class AlterShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = field("0+")
    partitions: list[AlterShareGroupOffsetsRequestPartition] = field("0+")


class AlterShareGroupOffsetsRequest(Request, key=ApiKey.ALTER_SHARE_GROUP_OFFSETS, versions=(0, 0), flexible=0):
    group_id: str = field("0+")
    topics: list[AlterShareGroupOffsetsRequestTopic] = field("0+")


class AlterShareGroupOffsetsResponsePartition(Struct):
    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+", default=None)


class AlterShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = field("0+")
    topic_id: Uuid = field("0+")
    partitions: list[AlterShareGroupOffsetsResponsePartition] = field("0+")


class AlterShareGroupOffsetsResponse(Response, answers=AlterShareGroupOffsetsRequest):
    throttle_time_ms: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+", default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic] = field("0+")
