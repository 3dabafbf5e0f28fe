"""OffsetForLeaderEpoch (key 23): where a leader epoch ended, so that a reader can tell if its log was cut.

Version 2 fences by the client's epoch (KIP-320), 3 tells replicas from consumers, 4 is flexible.
"""

from typing import TYPE_CHECKING

from ottla.broker.dispatch import RequestContext, serves
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


@serves(OffsetForLeaderEpochRequest)
def handle(
    broker: "Broker", context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    response = OffsetForLeaderEpochResponse()
    for topic in request.topics:
        result = OffsetForLeaderTopicResult(topic=topic.topic)
        for wanted in topic.partitions:
            answer = EpochEndOffset(partition=wanted.partition)
            result.partitions.append(answer)
            try:
                partition = broker.replicas.partition(topic.topic, wanted.partition)
                partition.check_leader(wanted.current_leader_epoch)
            except KafkaError as error:
                answer.error_code = error.code
                continue
            answer.leader_epoch, answer.end_offset = partition.log.leader_epochs.end_offset_for(wanted.leader_epoch)
        response.topics.append(result)
    return response
