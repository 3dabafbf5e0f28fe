"""AlterPartitionReassignments (key 45): name the brokers that should hold a partition, or call its move off.

Version 1 can refuse what would change the number of replicas (KIP-860). See `cluster/reassignments.py` for the rules.
"""

from typing import TYPE_CHECKING

from ottla.broker.dispatch import RequestContext, serves
from ottla.cluster.reassignments import Reassignment
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


@serves(AlterPartitionReassignmentsRequest)
async def handle(
    broker: "Broker", context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    if not request.topics:
        return AlterPartitionReassignmentsResponse(error_message="")
    if request.timeout_ms <= 0:
        return _timed_out(request)
    wanted = [
        Reassignment(
            topic.name, partition.partition_index, None if partition.replicas is None else tuple(partition.replicas)
        )
        for topic in request.topics
        for partition in topic.partitions
    ]
    results = iter(await broker.controller.alter_reassignments(wanted, request.allow_replication_factor_change))
    await broker.image_applied()
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change, error_message=None
    )
    response.responses = [
        ReassignableTopicResponse(
            name=topic.name,
            partitions=[
                ReassignablePartitionResponse(
                    partition_index=partition.partition_index, error_code=result.error, error_message=result.message
                )
                for partition, result in zip(topic.partitions, results, strict=False)
            ],
        )
        for topic in request.topics
    ]
    return response


def _timed_out(request: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
    """Who gives no time gets nothing done: Kafka's controller takes up no work whose time is over."""
    code, message = ErrorCode.REQUEST_TIMED_OUT, "no time was given to move partitions"
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=code,
        error_message=message,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(
                        partition_index=partition.partition_index, error_code=code, error_message=message
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )
