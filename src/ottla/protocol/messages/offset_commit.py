"""OffsetCommit: store how far a consumer group has read.

Up to version 4 a commit brought its own retention time; version 6 added the leader epoch of the offset, 7 static
members, 9 the errors of groups of the next generation, 10 topics by id in place of names.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Int64, Struct, Uuid, field


class OffsetCommitRequestPartition(Struct):
    partition_index: Int32 = field("0+")
    committed_offset: Int64 = field("0+")
    committed_leader_epoch: Int32 = field("6+", default=-1, ignorable=True)
    committed_metadata: str | None = field("0+", nullable="0+")


class OffsetCommitRequestTopic(Struct):
    name: str = field("0-9", ignorable=True)
    topic_id: Uuid = field("10+", ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = field("0+")


class OffsetCommitRequest(Request, key=ApiKey.OFFSET_COMMIT, versions=(2, 10), flexible=8):
    group_id: str = field("0+")
    generation_id_or_member_epoch: Int32 = field("1+", default=-1, ignorable=True)
    member_id: str = field("1+", ignorable=True)
    group_instance_id: str | None = field("7+", nullable="7+", default=None)
    retention_time_ms: Int64 = field("2-4", default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = field("0+")


class OffsetCommitResponsePartition(Struct):
    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")


class OffsetCommitResponseTopic(Struct):
    name: str = field("0-9", ignorable=True)
    topic_id: Uuid = field("10+", ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = field("0+")


class OffsetCommitResponse(Response, answers=OffsetCommitRequest):
    throttle_time_ms: Int32 = field("3+", ignorable=True)
    topics: list[OffsetCommitResponseTopic] = field("0+")
