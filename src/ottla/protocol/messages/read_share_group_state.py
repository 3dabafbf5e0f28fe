"""ReadShareGroupState: a partition leader loads the state of its records for a share group."""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int8, Int16, Int32, Int64, Struct, Uuid, field


class PartitionData(Struct):
    partition: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")


class ReadStateData(Struct):
    topic_id: Uuid = field("0+")
    partitions: list[PartitionData] = field("0+")


class ReadShareGroupStateRequest(Request, key=ApiKey.READ_SHARE_GROUP_STATE, versions=(0, 0), flexible=0):
    group_id: str = field("0+")
    topics: list[ReadStateData] = field("0+")


class StateBatch(Struct):
    first_offset: Int64 = field("0+")
    last_offset: Int64 = field("0+")
    delivery_state: Int8 = field("0+")
    delivery_count: Int16 = field("0+")


class PartitionResult(Struct):
    partition: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+", default=None)
    state_epoch: Int32 = field("0+")
    start_offset: Int64 = field("0+")
    state_batches: list[StateBatch] = field("0+")


class ReadStateResult(Struct):
    topic_id: Uuid = field("0+")
    partitions: list[PartitionResult] = field("0+")


class ReadShareGroupStateResponse(Response, answers=ReadShareGroupStateRequest):
    results: list[ReadStateResult] = field("0+")
