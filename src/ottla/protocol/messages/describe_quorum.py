"""DescribeQuorum: state of the controllers' quorum.

Version 1 added times, 2 directory ids, addresses and error messages.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Int64, Struct, Uint16, Uuid, field


class PartitionData(Struct):
    partition_index: Int32 = field("0+")


class TopicData(Struct):
    topic_name: str = field("0+")
    partitions: list[PartitionData] = field("0+")


class DescribeQuorumRequest(Request, key=ApiKey.DESCRIBE_QUORUM, versions=(0, 2), flexible=0):
    topics: list[TopicData] = field("0+")


class ReplicaState(Struct):
    replica_id: Int32 = field("0+")
    replica_directory_id: Uuid = field("2+")
    log_end_offset: Int64 = field("0+")
    last_fetch_timestamp: Int64 = field("1+", default=-1, ignorable=True)
    last_caught_up_timestamp: Int64 = field("1+", default=-1, ignorable=True)


class PartitionDataResponse(Struct):
    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("2+", nullable="2+", ignorable=True)
    leader_id: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")
    high_watermark: Int64 = field("0+")
    current_voters: list[ReplicaState] = field("0+")
    observers: list[ReplicaState] = field("0+")


class TopicDataResponse(Struct):
    topic_name: str = field("0+")
    partitions: list[PartitionDataResponse] = field("0+")


class Listener(Struct):
    name: str = field("2+")
    host: str = field("2+")
    port: Uint16 = field("2+")


class Node(Struct):
    node_id: Int32 = field("2+")
    listeners: list[Listener] = field("2+")


class DescribeQuorumResponse(Response, answers=DescribeQuorumRequest):
    error_code: Int16 = field("0+")
    error_message: str | None = field("2+", nullable="2+", ignorable=True)
    topics: list[TopicDataResponse] = field("0+")
    nodes: list[Node] = field("2+")
