"""AlterPartitionReassignments: move partitions to other brokers, or call a move off.

Version 1 can refuse moves that would change the number of replicas.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Struct, field


class ReassignablePartition(Struct):
    partition_index: Int32 = field("0+")
    replicas: list[Int32] | None = field("0+", nullable="0+", default=None)


class ReassignableTopic(Struct):
    name: str = field("0+")
    partitions: list[ReassignablePartition] = field("0+")


class AlterPartitionReassignmentsRequest(
    Request, key=ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions=(0, 1), flexible=0
):
    timeout_ms: Int32 = field("0+", default=60000)
    allow_replication_factor_change: bool = field("1+", default=True)
    topics: list[ReassignableTopic] = field("0+")


class ReassignablePartitionResponse(Struct):
    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+")


class ReassignableTopicResponse(Struct):
    name: str = field("0+")
    partitions: list[ReassignablePartitionResponse] = field("0+")


class AlterPartitionReassignmentsResponse(Response, answers=AlterPartitionReassignmentsRequest):
    throttle_time_ms: Int32 = field("0+")
    allow_replication_factor_change: bool = field("1+", default=True, ignorable=True)
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+")
    responses: list[ReassignableTopicResponse] = field("0+")
