"""ReadShareGroupStateSummary: where a share group's partition starts, without the state of single records.

Version 1 added how many deliveries are complete.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Int64, Struct, Uuid, field


class PartitionData(Struct):
    partition: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")


class ReadStateSummaryData(Struct):
    topic_id: Uuid = field("0+")
    partitions: list[PartitionData] = field("0+")


class ReadShareGroupStateSummaryRequest(
    Request, key=ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, versions=(0, 1), flexible=0
):
    group_id: str = field("0+")
    topics: list[ReadStateSummaryData] = field("0+")


class PartitionResult(Struct):
    partition: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+", default=None)
    state_epoch: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")
    start_offset: Int64 = field("0+")
    delivery_complete_count: Int32 = field("1+", default=-1, ignorable=True)


class ReadStateSummaryResult(Struct):
    topic_id: Uuid = field("0+")
    partitions: list[PartitionResult] = field("0+")


class ReadShareGroupStateSummaryResponse(Response, answers=ReadShareGroupStateSummaryRequest):
    results: list[ReadStateSummaryResult] = field("0+")
