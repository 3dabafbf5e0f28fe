"""WriteShareGroupState: a partition leader stores the state of its records for a share group.

Version 1 added how many deliveries are complete.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int8, Int16, Int32, Int64, Struct, Uuid, field


class StateBatch(Struct):
    first_offset: Int64 = field("0+")
    last_offset: Int64 = field("0+")
    delivery_state: Int8 = field("0+")
    delivery_count: Int16 = field("0+")


class PartitionData(Struct):
    partition: Int32 = field("0+")
    state_epoch: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")
    start_offset: Int64 = field("0+")
    delivery_complete_count: Int32 = field("1+", default=-1, ignorable=True)
    state_batches: list[StateBatch] = field("0+")


class WriteStateData(Struct):
    topic_id: Uuid = field("0+")
    partitions: list[PartitionData] = field("0+")


class WriteShareGroupStateRequest(Request, key=ApiKey.WRITE_SHARE_GROUP_STATE, versions=(0, 1), flexible=0):
    group_id: str = field("0+")
    topics: list[WriteStateData] = field("0+")


class PartitionResult(Struct):
    partition: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+", default=None)


class WriteStateResult(Struct):
    topic_id: Uuid = field("0+")
    partitions: list[PartitionResult] = field("0+")


class WriteShareGroupStateResponse(Response, answers=WriteShareGroupStateRequest):
    results: list[WriteStateResult] = field("0+")
