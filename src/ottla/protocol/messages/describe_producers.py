"""DescribeProducers: the producers that a partition leader knows, with epochs, sequences and open transactions."""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Int64, Struct, field


class TopicRequest(Struct):
    name: str = field("0+")
    partition_indexes: list[Int32] = field("0+")


class DescribeProducersRequest(Request, key=ApiKey.DESCRIBE_PRODUCERS, versions=(0, 0), flexible=0):
    topics: list[TopicRequest] = field("0+")


class ProducerState(Struct):
    producer_id: Int64 = field("0+")
    producer_epoch: Int32 = field("0+")
    last_sequence: Int32 = field("0+", default=-1)
    last_timestamp: Int64 = field("0+", default=-1)
    coordinator_epoch: Int32 = field("0+")
    current_txn_start_offset: Int64 = field("0+", default=-1)


class PartitionResponse(Struct):
    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+", default=None)
    active_producers: list[ProducerState] = field("0+")


class TopicResponse(Struct):
    name: str = field("0+")
    partitions: list[PartitionResponse] = field("0+")


class DescribeProducersResponse(Response, answers=DescribeProducersRequest):
    throttle_time_ms: Int32 = field("0+")
    topics: list[TopicResponse] = field("0+")
