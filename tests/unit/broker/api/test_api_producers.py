"""DescribeProducers: what a partition remembers of its producers."""

from tests.unit.broker.api.questions import NOW_MS, batch, create_topic, new_producer_id, produce
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
)

# Kafka expires producers by the time of their last record, so the records must be of today: the broker's today.
LATER_MS = NOW_MS + 10 * 365 * 86_400_000


def ask(client: WireClient, topic: str, *indexes: int) -> list[PartitionResponse]:
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=list(indexes))])
    (answered,) = client.ask(request, DescribeProducersResponse).topics
    assert answered.name == topic
    return answered.partitions


def test_partitions_without_producers(client: WireClient, topic: str) -> None:
    create_topic(client, topic, partitions=2)
    produce(client, topic, batch(b"nobody's"))
    assert ask(client, topic, 0, 1) == [PartitionResponse(partition_index=0), PartitionResponse(partition_index=1)]


def test_producers_of_a_partition(client: WireClient, topic: str) -> None:
    create_topic(client, topic, partitions=2, configs={"message.timestamp.after.max.ms": "9223372036854775807"})
    one, two = new_producer_id(client), new_producer_id(client)
    for sequence, (producer_id, epoch, values) in enumerate(
        [(one, 0, [b"a", b"b"]), (two, 3, [b"c"]), (one, 0, [b"d", b"e"])]
    ):
        records = batch(
            *values,
            timestamp=LATER_MS + sequence,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        assert produce(client, topic, records).error_code == ErrorCode.NONE
    (with_producers, without) = ask(client, topic, 0, 1)
    expected = [
        ProducerState(
            producer_id=one,
            producer_epoch=0,
            last_sequence=3,
            last_timestamp=LATER_MS + 2,
            coordinator_epoch=-1,
            current_txn_start_offset=-1,
        ),
        ProducerState(
            producer_id=two,
            producer_epoch=3,
            last_sequence=1,
            last_timestamp=LATER_MS + 1,
            coordinator_epoch=-1,
            current_txn_start_offset=-1,
        ),
    ]
    assert with_producers.error_code == ErrorCode.NONE
    assert with_producers.error_message is None
    assert sorted(with_producers.active_producers, key=lambda producer: producer.producer_id) == expected
    assert without.active_producers == []


def test_what_is_not_there(client: WireClient, topic: str, target: str) -> None:
    create_topic(client, topic)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ask(client, topic, 0, 1, -1) == [
        PartitionResponse(partition_index=0),
        PartitionResponse(partition_index=1, error_code=unknown),
        PartitionResponse(partition_index=-1, error_code=unknown),
    ]
    (answer,) = ask(client, topic + "-unknown", 0)
    # Kafka has words of its own.
    reason = answer.error_message if target == "kafka" else f"there is no topic {topic}-unknown"
    assert reason
    assert answer == PartitionResponse(partition_index=0, error_code=unknown, error_message=reason)
    for name in ("no/name", "", ".", "x" * 250):
        (answer,) = ask(client, name, 7)
        assert (answer.partition_index, answer.error_code) == (7, ErrorCode.INVALID_TOPIC_EXCEPTION)
        assert answer.error_message is not None
        assert answer.error_message.startswith("Topic name is invalid: ")


def test_nothing_is_asked(client: WireClient) -> None:
    answer = client.ask(DescribeProducersRequest(topics=[]), DescribeProducersResponse)
    assert answer == DescribeProducersResponse()
