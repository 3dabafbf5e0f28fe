"""OffsetForLeaderEpoch: where a leader epoch ends, for a replica or consumer that has to find out what it must forget.

From version 3 a follower says who it is; -2 is a consumer that may see beyond the high watermark.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Int64, Struct, field


class OffsetForLeaderPartition(Struct):
    partition: Int32 = field("0+")
    current_leader_epoch: Int32 = field("2+", default=-1, ignorable=True)
    leader_epoch: Int32 = field("0+")


class OffsetForLeaderTopic(Struct):
    topic: str = field("0+")
    partitions: list[OffsetForLeaderPartition] = field("0+")


class OffsetForLeaderEpochRequest(Request, key=ApiKey.OFFSET_FOR_LEADER_EPOCH, versions=(2, 4), flexible=4):
    replica_id: Int32 = field("3+", default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = field("0+")


class EpochEndOffset(Struct):
    error_code: Int16 = field("0+")
    partition: Int32 = field("0+")
    leader_epoch: Int32 = field("1+", default=-1, ignorable=True)
    end_offset: Int64 = field("0+", default=-1)


class OffsetForLeaderTopicResult(Struct):
    topic: str = field("0+")
    partitions: list[EpochEndOffset] = field("0+")


class OffsetForLeaderEpochResponse(Response, answers=OffsetForLeaderEpochRequest):
    throttle_time_ms: Int32 = field("2+", ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = field("0+")
