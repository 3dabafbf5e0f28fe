"""DeleteShareGroupState: the share coordinator forgets partitions of a share group."""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Struct, Uuid, field


class PartitionData(Struct):
    partition: Int32 = field("0+")


class DeleteStateData(Struct):
    topic_id: Uuid = field("0+")
    partitions: list[PartitionData] = field("0+")


class DeleteShareGroupStateRequest(Request, key=ApiKey.DELETE_SHARE_GROUP_STATE, versions=(0, 0), flexible=0):
    group_id: str = field("0+")
    topics: list[DeleteStateData] = field("0+")


class PartitionResult(Struct):
    partition: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+", default=None)


class DeleteStateResult(Struct):
    topic_id: Uuid = field("0+")
    partitions: list[PartitionResult] = field("0+")


class DeleteShareGroupStateResponse(Response, answers=DeleteShareGroupStateRequest):
    results: list[DeleteStateResult] = field("0+")
