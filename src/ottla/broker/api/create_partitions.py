"""CreatePartitions (key 37): add partitions to topics. Version 2 is flexible; partitions can only grow in number."""

from collections import Counter
from typing import TYPE_CHECKING

from ottla.broker.dispatch import RequestContext, serves
from ottla.cluster.requests import NewPartitions
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


STRICT_QUOTA_SINCE_VERSION = 3


@serves(CreatePartitionsRequest)
async def handle(
    broker: "Broker", context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    times_named = Counter(topic.name for topic in request.topics)
    if request.timeout_ms <= 0:
        return CreatePartitionsResponse(results=[_timed_out(name) for name in times_named])
    wanted = [_wanted(topic) for topic in request.topics if times_named[topic.name] == 1]
    charge = broker.quotas.charge(context, STRICT_QUOTA_SINCE_VERSION)
    results = await broker.controller.create_partitions(wanted, validate_only=request.validate_only, charge=charge)
    if not request.validate_only:
        await broker.image_applied()
    response = CreatePartitionsResponse(
        throttle_time_ms=charge.throttle_ms(),
        results=[
            CreatePartitionsTopicResult(name=result.name, error_code=result.error, error_message=result.message)
            for result in results
        ],
    )
    for name, times in times_named.items():
        if times > 1:
            response.results.append(
                CreatePartitionsTopicResult(
                    name=name, error_code=ErrorCode.INVALID_REQUEST, error_message="the topic is named more than once"
                )
            )
    return response


def _timed_out(name: str) -> CreatePartitionsTopicResult:
    """Who gives no time gets nothing done: Kafka's controller takes up no work whose time is over."""
    return CreatePartitionsTopicResult(
        name=name, error_code=ErrorCode.REQUEST_TIMED_OUT, error_message="no time was given to create the partitions"
    )


def _wanted(topic: CreatePartitionsTopic) -> NewPartitions:
    assignments = topic.assignments
    return NewPartitions(
        name=topic.name,
        count=topic.count,
        assignments=None if assignments is None else tuple(tuple(item.broker_ids) for item in assignments),
    )
