"""InitializeShareGroupState: a group coordinator has the share coordinator create the state of a partition."""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Int64, Struct, Uuid, field


class PartitionData(Struct):
    partition: Int32 = field("0+")
    state_epoch: Int32 = field("0+")
    start_offset: Int64 = field("0+")


class InitializeStateData(Struct):
    topic_id: Uuid = field("0+")
    partitions: list[PartitionData] = field("0+")


class InitializeShareGroupStateRequest(Request, key=ApiKey.INITIALIZE_SHARE_GROUP_STATE, versions=(0, 0), flexible=0):
    group_id: str = field("0+")
    topics: list[InitializeStateData] = field("0+")


class PartitionResult(Struct):
    partition: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+", default=None)


class InitializeStateResult(Struct):
    topic_id: Uuid = field("0+")
    partitions: list[PartitionResult] = field("0+")


class InitializeShareGroupStateResponse(Response, answers=InitializeShareGroupStateRequest):
    results: list[InitializeStateResult] = field("0+")
