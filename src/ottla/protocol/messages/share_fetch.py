"""ShareFetch: acquire records as a member of a share group, and acknowledge earlier ones on the way.

Version 0 was an early one and is gone; 2 added the acquire mode and the renewal of locks.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int8, Int16, Int32, Int64, Records, Struct, Uuid, field


class AcknowledgementBatch(Struct):
    first_offset: Int64 = field("0+")
    last_offset: Int64 = field("0+")
    acknowledge_types: list[Int8] = field("0+")


class FetchPartition(Struct):
    partition_index: Int32 = field("0+")
    acknowledgement_batches: list[AcknowledgementBatch] = field("0+")


class FetchTopic(Struct):
    topic_id: Uuid = field("0+")
    partitions: list[FetchPartition] = field("0+")


class ForgottenTopic(Struct):
    topic_id: Uuid = field("0+")
    partitions: list[Int32] = field("0+")


class ShareFetchRequest(Request, key=ApiKey.SHARE_FETCH, versions=(1, 2), flexible=0):
    group_id: str | None = field("0+", nullable="0+", default=None)
    member_id: str | None = field("0+", nullable="0+")
    share_session_epoch: Int32 = field("0+")
    max_wait_ms: Int32 = field("0+")
    min_bytes: Int32 = field("0+")
    max_bytes: Int32 = field("0+", default=2147483647)
    max_records: Int32 = field("1+")
    batch_size: Int32 = field("1+")
    share_acquire_mode: Int8 = field("2+", ignorable=True)
    is_renew_ack: bool = field("2+")
    topics: list[FetchTopic] = field("0+")
    forgotten_topics_data: list[ForgottenTopic] = field("0+")


class LeaderIdAndEpoch(Struct):
    leader_id: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")


class AcquiredRecords(Struct):
    first_offset: Int64 = field("0+")
    last_offset: Int64 = field("0+")
    delivery_count: Int16 = field("0+")


class PartitionData(Struct):
    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+", default=None)
    acknowledge_error_code: Int16 = field("0+")
    acknowledge_error_message: str | None = field("0+", nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = field("0+")
    records: Records = field("0+")
    acquired_records: list[AcquiredRecords] = field("0+")


class ShareFetchableTopicResponse(Struct):
    topic_id: Uuid = field("0+")
    partitions: list[PartitionData] = field("0+")


class NodeEndpoint(Struct):
    node_id: Int32 = field("0+")
    host: str = field("0+")
    port: Int32 = field("0+")
    rack: str | None = field("0+", nullable="0+", default=None)


class ShareFetchResponse(Response, answers=ShareFetchRequest):
    throttle_time_ms: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+", default=None)
    acquisition_lock_timeout_ms: Int32 = field("1+")
    responses: list[ShareFetchableTopicResponse] = field("0+")
    node_endpoints: list[NodeEndpoint] = field("0+")
