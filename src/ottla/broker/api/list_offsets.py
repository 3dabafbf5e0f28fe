"""ListOffsets (key 2): offsets by place or by time.

| version | what changed                                                    |
|---------|-----------------------------------------------------------------|
| 1       | one offset, with its timestamp                                  |
| 2       | isolation level                                                 |
| 4       | leader epochs (KIP-320)                                         |
| 6       | flexible                                                        |
| 7       | -3: the record with the largest timestamp (KIP-734)             |
| 8       | -4: the earliest offset that is kept locally (KIP-405)          |
| 9       | -5: the last offset in tiered storage (KIP-1005)                |
| 10      | the client's patience with tiered storage (KIP-1075)            |
| 11      | -6: the earliest offset not in tiered storage yet (KIP-1023)    |

There is no tiered storage here: -4 is the earliest offset, and -5 and -6 find nothing.

For readers of committed records a partition ends at its last stable offset. A leader that has not seen yet how far its
predecessor got (the high watermark is below the beginning of its epoch) does not know the end: OFFSET_NOT_AVAILABLE,
before version 5 LEADER_NOT_AVAILABLE.
"""

import logging
from typing import TYPE_CHECKING

from ottla.broker.dispatch import RequestContext, serves
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.replication.partition import Partition

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

logger = logging.getLogger(__name__)

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
CONSUMER_REPLICA_ID = -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
LEADER_EPOCHS_SINCE_VERSION = 4
OFFSET_NOT_AVAILABLE_SINCE_VERSION = 5
LOWEST_PLACE_SINCE_VERSION = {
    1: EARLIEST,
    7: MAX_TIMESTAMP,
    8: EARLIEST_LOCAL,
    9: LATEST_TIERED,
    11: EARLIEST_PENDING_UPLOAD,
}

Found = tuple[int, int, int] | None


@serves(ListOffsetsRequest, abandon_on_close=True)
async def handle(broker: "Broker", context: RequestContext, request: ListOffsetsRequest) -> ListOffsetsResponse:
    repeated = _repeated(request)
    answers: dict[tuple[str, int], ListOffsetsPartitionResponse] = {}
    for topic in request.topics:
        for wanted in topic.partitions:
            answer = ListOffsetsPartitionResponse(partition_index=wanted.partition_index)
            answers[topic.name, wanted.partition_index] = answer
            try:
                if not READ_UNCOMMITTED <= request.isolation_level <= READ_COMMITTED:
                    raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"no isolation level {request.isolation_level}")
                if (topic.name, wanted.partition_index) in repeated:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "the partition is named twice")
                found = await _find(broker, context, request, topic.name, wanted)
            except KafkaError as error:
                answer.error_code = error.code
            except OSError as error:
                logger.error("%s-%d cannot be read: %s", topic.name, wanted.partition_index, error)
                answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR
            else:
                if found is not None:
                    answer.offset, answer.timestamp, leader_epoch = found
                    if context.api_version >= LEADER_EPOCHS_SINCE_VERSION:
                        answer.leader_epoch = leader_epoch
    return _response(answers)


def _response(answers: dict[tuple[str, int], ListOffsetsPartitionResponse]) -> ListOffsetsResponse:
    """Each topic once, with each partition once; a topic without partitions is left out."""
    topics: dict[str, ListOffsetsTopicResponse] = {}
    for (name, _), answer in answers.items():
        if name not in topics:
            topics[name] = ListOffsetsTopicResponse(name=name)
        topics[name].partitions.append(answer)
    return ListOffsetsResponse(topics=list(topics.values()))


def _repeated(request: ListOffsetsRequest) -> set[tuple[str, int]]:
    seen: set[tuple[str, int]] = set()
    repeated: set[tuple[str, int]] = set()
    for topic in request.topics:
        for wanted in topic.partitions:
            key = (topic.name, wanted.partition_index)
            (repeated if key in seen else seen).add(key)
    return repeated


async def _find(
    broker: "Broker", context: RequestContext, request: ListOffsetsRequest, topic: str, wanted: ListOffsetsPartition
) -> Found:
    """(offset, timestamp, leader epoch), or None when no record fits."""
    place = wanted.timestamp
    lowest = max((since, place) for since, place in LOWEST_PLACE_SINCE_VERSION.items() if since <= context.api_version)[
        1
    ]
    if place < lowest:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{place} needs a newer version of ListOffsets")
    partition = broker.replicas.partition(topic, wanted.partition_index)
    partition.check_leader(wanted.current_leader_epoch)
    end_offset = _end_offset(partition, request)
    if place == LATEST:
        _check_end_known(partition, request, context.api_version)
        return (end_offset, -1, partition.leader_epoch)
    log = partition.log
    if place in (EARLIEST, EARLIEST_LOCAL):
        return (log.log_start_offset, -1, log.leader_epochs.epoch_for(log.log_start_offset))
    if place in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return None
    found = await (log.offset_of_max_timestamp() if place == MAX_TIMESTAMP else log.offset_for_timestamp(place))
    if found is not None and found[0] < end_offset:
        return found
    _check_end_known(partition, request, context.api_version)
    return None


def _check_end_known(partition: Partition, request: ListOffsetsRequest, api_version: int) -> None:
    if request.replica_id == CONSUMER_REPLICA_ID and partition.epoch_start_offset > partition.high_watermark:
        is_new = api_version >= OFFSET_NOT_AVAILABLE_SINCE_VERSION
        raise KafkaError(
            ErrorCode.OFFSET_NOT_AVAILABLE if is_new else ErrorCode.LEADER_NOT_AVAILABLE,
            f"the high watermark of {partition} is still below the beginning of its leader's epoch",
        )


def _end_offset(partition: Partition, request: ListOffsetsRequest) -> int:
    if request.replica_id != CONSUMER_REPLICA_ID:
        return partition.log.log_end_offset
    return partition.last_stable_offset if request.isolation_level == READ_COMMITTED else partition.high_watermark
