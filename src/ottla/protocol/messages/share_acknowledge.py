"""ShareAcknowledge: tell what became of records acquired with ShareFetch.

Version 0 was an early one and is gone; 2 added the renewal of locks.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int8, Int16, Int32, Int64, Struct, Uuid, field


class AcknowledgementBatch(Struct):
    first_offset: Int64 = field("0+")
    last_offset: Int64 = field("0+")
    acknowledge_types: list[Int8] = field("0+")


class AcknowledgePartition(Struct):
    partition_index: Int32 = field("0+")
    acknowledgement_batches: list[AcknowledgementBatch] = field("0+")


class AcknowledgeTopic(Struct):
    topic_id: Uuid = field("0+")
    partitions: list[AcknowledgePartition] = field("0+")


class ShareAcknowledgeRequest(Request, key=ApiKey.SHARE_ACKNOWLEDGE, versions=(1, 2), flexible=0):
    group_id: str | None = field("0+", nullable="0+", default=None)
    member_id: str | None = field("0+", nullable="0+")
    share_session_epoch: Int32 = field("0+")
    is_renew_ack: bool = field("2+")
    topics: list[AcknowledgeTopic] = field("0+")


class LeaderIdAndEpoch(Struct):
    leader_id: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")


class PartitionData(Struct):
    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = field("0+")


class ShareAcknowledgeTopicResponse(Struct):
    topic_id: Uuid = field("0+")
    partitions: list[PartitionData] = field("0+")


class NodeEndpoint(Struct):
    node_id: Int32 = field("0+")
    host: str = field("0+")
    port: Int32 = field("0+")
    rack: str | None = field("0+", nullable="0+", default=None)


class ShareAcknowledgeResponse(Response, answers=ShareAcknowledgeRequest):
    throttle_time_ms: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+", default=None)
    acquisition_lock_timeout_ms: Int32 = field("2+", ignorable=True)
    responses: list[ShareAcknowledgeTopicResponse] = field("0+")
    node_endpoints: list[NodeEndpoint] = field("0+")
