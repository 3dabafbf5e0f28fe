"""DescribeProducers (key 61): the producers that a partition remembers (KIP-664).

`producer.id.expiration.ms` after its last batch a producer is forgotten, and is not listed any more.
"""

from typing import TYPE_CHECKING

from ottla.broker.dispatch import RequestContext, serves
from ottla.cluster.topic_names import topic_name_problem
from ottla.log.producer_state import ProducerEntry
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


@serves(DescribeProducersRequest)
def handle(broker: "Broker", context: RequestContext, request: DescribeProducersRequest) -> DescribeProducersResponse:
    response = DescribeProducersResponse()
    for topic in request.topics:
        refusal = _refusal(broker, topic.name)
        response.topics.append(
            TopicResponse(
                name=topic.name,
                partitions=[_describe(broker, topic.name, index, refusal) for index in topic.partition_indexes],
            )
        )
    return response


def _refusal(broker: "Broker", topic: str) -> KafkaError | None:
    """Why no partition of a topic can be described. As in Kafka, only such an error has a message."""
    problem = topic_name_problem(topic)
    if problem is not None:
        return KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if topic not in broker.image.topics:
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic}")
    return None


def _describe(broker: "Broker", topic: str, index: int, refusal: KafkaError | None) -> PartitionResponse:
    if refusal is not None:
        return PartitionResponse(partition_index=index, error_code=refusal.code, error_message=refusal.message)
    try:
        partition = broker.replicas.partition(topic, index)
    except KafkaError as error:
        return PartitionResponse(partition_index=index, error_code=error.code)
    producers = partition.log.producer_state.producers.values()
    return PartitionResponse(partition_index=index, active_producers=[_producer(entry) for entry in producers])


def _producer(entry: ProducerEntry) -> ProducerState:
    return ProducerState(
        producer_id=entry.producer_id,
        producer_epoch=entry.epoch,
        last_sequence=entry.last_sequence,
        last_timestamp=entry.last_timestamp,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=entry.current_txn_first_offset,
    )
