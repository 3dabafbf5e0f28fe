"""DescribeTopicPartitions: topics and their partitions in pages, with eligible leader replicas.

The cursor of an answer, sent back, gets the next page.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Struct, Uuid, field


class TopicRequest(Struct):
    name: str = field("0+")


class Cursor(Struct):
    topic_name: str = field("0+")
    partition_index: Int32 = field("0+")


class DescribeTopicPartitionsRequest(Request, key=ApiKey.DESCRIBE_TOPIC_PARTITIONS, versions=(0, 0), flexible=0):
    topics: list[TopicRequest] = field("0+")
    response_partition_limit: Int32 = field("0+", default=2000)
    cursor: Cursor | None = field("0+", nullable="0+", default=None)


class DescribeTopicPartitionsResponsePartition(Struct):
    error_code: Int16 = field("0+")
    partition_index: Int32 = field("0+")
    leader_id: Int32 = field("0+")
    leader_epoch: Int32 = field("0+", default=-1, ignorable=True)
    replica_nodes: list[Int32] = field("0+")
    isr_nodes: list[Int32] = field("0+")
    eligible_leader_replicas: list[Int32] | None = field("0+", nullable="0+", default=None)
    last_known_elr: list[Int32] | None = field("0+", nullable="0+", default=None)
    offline_replicas: list[Int32] = field("0+", ignorable=True)


class DescribeTopicPartitionsResponseTopic(Struct):
    error_code: Int16 = field("0+")
    name: str | None = field("0+", nullable="0+")
    topic_id: Uuid = field("0+", ignorable=True)
    is_internal: bool = field("0+", ignorable=True)
    partitions: list[DescribeTopicPartitionsResponsePartition] = field("0+")
    topic_authorized_operations: Int32 = field("0+", default=-2147483648)


class DescribeTopicPartitionsResponse(Response, answers=DescribeTopicPartitionsRequest):
    throttle_time_ms: Int32 = field("0+", ignorable=True)
    topics: list[DescribeTopicPartitionsResponseTopic] = field("0+")
    next_cursor: Cursor | None = field("0+", nullable="0+", default=None)
