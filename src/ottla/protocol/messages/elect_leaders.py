"""ElectLeaders: elect the preferred leaders of partitions or, from version 1, unclean ones too.

Null asks for all partitions.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int8, Int16, Int32, Struct, field


class TopicPartitions(Struct):
    topic: str = field("0+")
    partitions: list[Int32] = field("0+")


class ElectLeadersRequest(Request, key=ApiKey.ELECT_LEADERS, versions=(0, 2), flexible=2):
    election_type: Int8 = field("1+")
    topic_partitions: list[TopicPartitions] | None = field("0+", nullable="0+")
    timeout_ms: Int32 = field("0+", default=60000)


class PartitionResult(Struct):
    partition_id: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+")


class ReplicaElectionResult(Struct):
    topic: str = field("0+")
    partition_result: list[PartitionResult] = field("0+")


class ElectLeadersResponse(Response, answers=ElectLeadersRequest):
    throttle_time_ms: Int32 = field("0+")
    error_code: Int16 = field("1+")
    replica_election_results: list[ReplicaElectionResult] = field("0+")
