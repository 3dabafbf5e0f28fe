"""ListOffsets: find the offset that belongs to a time, or the first or last one.

Times below zero are questions: -1 the end, -2 the start, -3 the record with the largest timestamp (7), and in tiered
logs -4 the start on local disk (8), -5 the last offset moved away (9), -6 the first one waiting to be moved (11).

Version 2 brought the isolation level, 4 leader epochs, 5 the error OFFSET_NOT_AVAILABLE, 10 a timeout for lookups that
have to wait for remote storage.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int8, Int16, Int32, Int64, Struct, field


class ListOffsetsPartition(Struct):
    partition_index: Int32 = field("0+")
    current_leader_epoch: Int32 = field("4+", default=-1, ignorable=True)
    timestamp: Int64 = field("0+")


class ListOffsetsTopic(Struct):
    name: str = field("0+")
    partitions: list[ListOffsetsPartition] = field("0+")


class ListOffsetsRequest(Request, key=ApiKey.LIST_OFFSETS, versions=(1, 11), flexible=6):
    replica_id: Int32 = field("0+")
    isolation_level: Int8 = field("2+")
    topics: list[ListOffsetsTopic] = field("0+")
    timeout_ms: Int32 = field("10+", ignorable=True)


class ListOffsetsPartitionResponse(Struct):
    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    timestamp: Int64 = field("1+", default=-1)
    offset: Int64 = field("1+", default=-1)
    leader_epoch: Int32 = field("4+", default=-1)


class ListOffsetsTopicResponse(Struct):
    name: str = field("0+")
    partitions: list[ListOffsetsPartitionResponse] = field("0+")


class ListOffsetsResponse(Response, answers=ListOffsetsRequest):
    throttle_time_ms: Int32 = field("2+", ignorable=True)
    topics: list[ListOffsetsTopicResponse] = field("0+")
