"""TxnOffsetCommit: store a consumer group's offsets as part of a transaction.

Version 2 added leader epochs, 3 the member and generation that commit, 5 also adds the group to the transaction.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Int64, Struct, field


class TxnOffsetCommitRequestPartition(Struct):
    partition_index: Int32 = field("0+")
    committed_offset: Int64 = field("0+")
    committed_leader_epoch: Int32 = field("2+", default=-1, ignorable=True)
    committed_metadata: str | None = field("0+", nullable="0+")


class TxnOffsetCommitRequestTopic(Struct):
    name: str = field("0+")
    partitions: list[TxnOffsetCommitRequestPartition] = field("0+")


class TxnOffsetCommitRequest(Request, key=ApiKey.TXN_OFFSET_COMMIT, versions=(0, 5), flexible=3):
    transactional_id: str = field("0+")
    group_id: str = field("0+")
    producer_id: Int64 = field("0+")
    producer_epoch: Int16 = field("0+")
    generation_id: Int32 = field("3+", default=-1)
    member_id: str = field("3+")
    group_instance_id: str | None = field("3+", nullable="3+", default=None)
    topics: list[TxnOffsetCommitRequestTopic] = field("0+")


class TxnOffsetCommitResponsePartition(Struct):
    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")


class TxnOffsetCommitResponseTopic(Struct):
    name: str = field("0+")
    partitions: list[TxnOffsetCommitResponsePartition] = field("0+")


class TxnOffsetCommitResponse(Response, answers=TxnOffsetCommitRequest):
    throttle_time_ms: Int32 = field("0+")
    topics: list[TxnOffsetCommitResponseTopic] = field("0+")
