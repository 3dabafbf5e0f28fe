"""DeleteRecords: move the start of partitions forward, so that older records are gone."""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Int64, Struct, field


class DeleteRecordsPartition(Struct):
    partition_index: Int32 = field("0+")
    offset: Int64 = field("0+")


class DeleteRecordsTopic(Struct):
    name: str = field("0+")
    partitions: list[DeleteRecordsPartition] = field("0+")


class DeleteRecordsRequest(Request, key=ApiKey.DELETE_RECORDS, versions=(0, 2), flexible=2):
    topics: list[DeleteRecordsTopic] = field("0+")
    timeout_ms: Int32 = field("0+")


class DeleteRecordsPartitionResult(Struct):
    partition_index: Int32 = field("0+")
    low_watermark: Int64 = field("0+")
    error_code: Int16 = field("0+")


class DeleteRecordsTopicResult(Struct):
    name: str = field("0+")
    partitions: list[DeleteRecordsPartitionResult] = field("0+")


class DeleteRecordsResponse(Response, answers=DeleteRecordsRequest):
    throttle_time_ms: Int32 = field("0+")
    topics: list[DeleteRecordsTopicResult] = field("0+")
