"""DeleteRecords (key 21): move the start of partitions forward (KIP-107). Version 2 is flexible.

An offset of -1 stands for the high watermark. An offset below the start changes nothing. The low watermark that is
answered is the first offset that every replica still has. Kafka waits for the followers, up to the request's timeout;
there are none here yet, so the answer comes at once.

| refused                                                    | error                        |
|------------------------------------------------------------|------------------------------|
| a partition that does not exist                            | UNKNOWN_TOPIC_OR_PARTITION   |
| a topic of the broker's own, such as __consumer_offsets    | INVALID_TOPIC_EXCEPTION      |
| led by another broker                                      | NOT_LEADER_OR_FOLLOWER       |
| a topic that is compacted and not also deleted from        | POLICY_VIOLATION             |
| negative, except -1, or above the high watermark           | OFFSET_OUT_OF_RANGE          |

A partition that is named twice is answered once, and the last offset counts.
"""

from typing import TYPE_CHECKING

from ottla.broker.dispatch import RequestContext, serves
from ottla.cluster.topic_names import INTERNAL_TOPICS
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

NO_LOW_WATERMARK = -1


@serves(DeleteRecordsRequest)
def handle(broker: "Broker", context: RequestContext, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    wanted: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        offsets = wanted.setdefault(topic.name, {})
        for partition in topic.partitions:
            offsets[partition.partition_index] = partition.offset
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=name, partitions=[_delete(broker, name, index, offset) for index, offset in offsets.items()]
            )
            for name, offsets in wanted.items()
            if offsets
        ]
    )


def _delete(broker: "Broker", topic: str, index: int, offset: int) -> DeleteRecordsPartitionResult:
    result = DeleteRecordsPartitionResult(partition_index=index, low_watermark=NO_LOW_WATERMARK)
    try:
        partition = broker.replicas.partition(topic, index)
        if topic in INTERNAL_TOPICS:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"records of {topic} are the broker's own")
        result.low_watermark = partition.delete_records(offset)
    except KafkaError as error:
        result.error_code = error.code
    return result
