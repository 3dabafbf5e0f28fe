"""ListPartitionReassignments: moves of partitions that are under way."""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Struct, field


class ListPartitionReassignmentsTopics(Struct):
    name: str = field("0+")
    partition_indexes: list[Int32] = field("0+")


class ListPartitionReassignmentsRequest(Request, key=ApiKey.LIST_PARTITION_REASSIGNMENTS, versions=(0, 0), flexible=0):
    timeout_ms: Int32 = field("0+", default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = field("0+", nullable="0+", default=None)


class OngoingPartitionReassignment(Struct):
    partition_index: Int32 = field("0+")
    replicas: list[Int32] = field("0+")
    adding_replicas: list[Int32] = field("0+")
    removing_replicas: list[Int32] = field("0+")


class OngoingTopicReassignment(Struct):
    name: str = field("0+")
    partitions: list[OngoingPartitionReassignment] = field("0+")


class ListPartitionReassignmentsResponse(Response, answers=ListPartitionReassignmentsRequest):
    throttle_time_ms: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+")
    topics: list[OngoingTopicReassignment] = field("0+")
