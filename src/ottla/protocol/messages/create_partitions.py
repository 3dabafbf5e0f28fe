"""CreatePartitions: give topics more partitions.

Version 3 knows throttling as an error.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Struct, field


class CreatePartitionsAssignment(Struct):
    broker_ids: list[Int32] = field("0+")


class CreatePartitionsTopic(Struct):
    name: str = field("0+")
    count: Int32 = field("0+")
    assignments: list[CreatePartitionsAssignment] | None = field("0+", nullable="0+")


class CreatePartitionsRequest(Request, key=ApiKey.CREATE_PARTITIONS, versions=(0, 3), flexible=2):
    topics: list[CreatePartitionsTopic] = field("0+")
    timeout_ms: Int32 = field("0+")
    validate_only: bool = field("0+")


class CreatePartitionsTopicResult(Struct):
    name: str = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+", default=None)


class CreatePartitionsResponse(Response, answers=CreatePartitionsRequest):
    throttle_time_ms: Int32 = field("0+")
    results: list[CreatePartitionsTopicResult] = field("0+")
