"""DeleteShareGroupOffsets: forget topics of an empty share group."""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Struct, Uuid, field


class DeleteShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = field("0+")


class DeleteShareGroupOffsetsRequest(Request, key=ApiKey.DELETE_SHARE_GROUP_OFFSETS, versions=(0, 0), flexible=0):
    group_id: str = field("0+")
    topics: list[DeleteShareGroupOffsetsRequestTopic] = field("0+")


class DeleteShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = field("0+")
    topic_id: Uuid = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+", default=None)


class DeleteShareGroupOffsetsResponse(Response, answers=DeleteShareGroupOffsetsRequest):
    throttle_time_ms: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+", default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = field("0+")
