"""DescribeTopicPartitions (key 75): topics and their partitions, a page at a time (KIP-966)."""

from typing import TYPE_CHECKING

from ottla.broker.api.authorized_operations import TOPIC_OPERATIONS
from ottla.broker.api.metadata import in_sync
from ottla.broker.dispatch import RequestContext, serves
from ottla.cluster.image import NO_LEADER, ClusterImage, PartitionImage
from ottla.cluster.topic_names import INTERNAL_TOPICS, topic_name_problem
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

PAGE_LIMIT = 2000


@serves(DescribeTopicPartitionsRequest)
def handle(
    broker: "Broker", context: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    image = broker.image
    names = sorted({topic.name for topic in request.topics} or image.topics.keys())
    fetch_all = not request.topics
    cursor = request.cursor
    problem = _problem(request, names)
    if problem is not None:
        return DescribeTopicPartitionsResponse(
            topics=[
                DescribeTopicPartitionsResponseTopic(error_code=problem, name=topic.name) for topic in request.topics
            ]
        )
    if cursor is not None:
        names = [name for name in names if name >= cursor.topic_name]
    response = DescribeTopicPartitionsResponse()
    left = max(1, min(request.response_partition_limit, PAGE_LIMIT))
    for name in names:
        if left <= 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        answer = _topic(image, name, first, left)
        if fetch_all and answer.error_code:
            continue
        response.topics.append(answer)
        left -= len(answer.partitions)
        topic = image.topics.get(name)
        if topic is not None and first + len(answer.partitions) < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=first + len(answer.partitions))
            break
    return response


def _problem(request: DescribeTopicPartitionsRequest, names: list[str]) -> ErrorCode | None:
    """Why nothing is described: a cursor that is at none of the topics asked for, or a topic without a name."""
    cursor = request.cursor
    if cursor is not None and (cursor.partition_index < 0 or (request.topics and cursor.topic_name not in names)):
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.UNKNOWN_SERVER_ERROR if "" in names else None


def _topic(image: ClusterImage, name: str, first: int, limit: int) -> DescribeTopicPartitionsResponseTopic:
    topic = image.topics.get(name)
    if topic is None:
        is_impossible = topic_name_problem(name) is not None
        return DescribeTopicPartitionsResponseTopic(
            error_code=ErrorCode.INVALID_TOPIC_EXCEPTION if is_impossible else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            name=name,
            is_internal=name in INTERNAL_TOPICS,
            topic_authorized_operations=TOPIC_OPERATIONS,
        )
    return DescribeTopicPartitionsResponseTopic(
        name=name,
        topic_id=topic.topic_id,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=TOPIC_OPERATIONS,
        partitions=[_partition(partition) for partition in topic.partitions[max(0, first) :][:limit]],
    )


def _partition(partition: PartitionImage) -> DescribeTopicPartitionsResponsePartition:
    """Unlike Metadata's, this answer takes a missing leader for a fact and not for an error.

    While there is none, those who were in sync before may lead without losing records; who led last is known here
    where it was alone.
    """
    eligible = list(partition.isr) if partition.leader == NO_LEADER else []
    return DescribeTopicPartitionsResponsePartition(
        partition_index=partition.index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=in_sync(partition),
        eligible_leader_replicas=eligible,
        last_known_elr=eligible if len(eligible) == 1 else [],
        offline_replicas=list(partition.offline_replicas),
    )
