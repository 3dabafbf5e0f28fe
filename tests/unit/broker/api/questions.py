"""The questions that most tests ask, with the parts that rarely matter filled in."""

from collections.abc import Mapping, Sequence

from tests.waiting import tries
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.records import Codec, Record, build_batch, read_records

PRODUCE_BY_NAME, FETCH_BY_NAME = 12, 12
NOW_MS = 1_700_000_000_000
PATIENCE_MS = 10_000


def batch(*values: bytes | None, key: bytes | None = b"key", timestamp: int = NOW_MS, **header: int) -> bytes:
    """One batch, a record for each value; `header` has producer_id, producer_epoch, base_sequence."""
    records = [Record(index, timestamp, key, value, []) for index, value in enumerate(values)]
    return build_batch(records, **header)  # type: ignore[arg-type]  # all of them take whole numbers


def compressed(codec: Codec, *values: bytes) -> bytes:
    return build_batch([Record(index, NOW_MS, b"key", value, []) for index, value in enumerate(values)], codec=codec)


def create_topic(client: WireClient, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> bytes:
    """Create a topic, which must work, and give back its id."""
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=name,
                num_partitions=partitions,
                replication_factor=1,
                configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
            )
        ],
        timeout_ms=PATIENCE_MS,
    )
    (result,) = client.ask(request, CreateTopicsResponse).topics
    assert result.error_code == ErrorCode.NONE, (ErrorCode(result.error_code), result.error_message)
    wait_for_leaders(client, name, partitions)
    return result.topic_id


def wait_for_leaders(client: WireClient, topic: str, partitions: int) -> None:
    """Kafka answers before its broker has the partitions; a question with an answer of its own shows that it has."""
    for index in range(partitions):
        for _ in tries():
            if fetch(client, topic, 0, partition=index).error_code == ErrorCode.NONE:
                break
        else:
            raise AssertionError(f"{topic}-{index} has no leader")


def produce_request(
    topic: str, records: bytes | None, *, partition: int = 0, acks: int = -1, topic_id: bytes = bytes(16)
) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=records)
    return ProduceRequest(
        acks=acks,
        timeout_ms=PATIENCE_MS,
        topic_data=[TopicProduceData(name=topic, topic_id=topic_id, partition_data=[data])],
    )


def produce(
    client: WireClient,
    topic: str,
    records: bytes | None,
    *,
    partition: int = 0,
    acks: int = -1,
    version: int = PRODUCE_BY_NAME,
) -> PartitionProduceResponse:
    request = produce_request(topic, records, partition=partition, acks=acks)
    ((answer,),) = (
        topic_answer.partition_responses for topic_answer in client.ask(request, ProduceResponse, version).responses
    )
    return answer


def fetch_request(
    topic: str,
    offset: int,
    *,
    partition: int = 0,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 24,
    partition_max_bytes: int = 1 << 20,
    topic_id: bytes = bytes(16),
    leader_epoch: int = -1,
    isolation_level: int = 0,
) -> FetchRequest:
    wanted = FetchPartition(
        partition=partition,
        fetch_offset=offset,
        partition_max_bytes=partition_max_bytes,
        current_leader_epoch=leader_epoch,
    )
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        topics=[FetchTopic(topic=topic, topic_id=topic_id, partitions=[wanted])],
    )


def fetch(client: WireClient, topic: str, offset: int, *, partition: int = 0, max_wait_ms: int = 0) -> PartitionData:
    """What one partition has from `offset` on."""
    request = fetch_request(topic, offset, partition=partition, max_wait_ms=max_wait_ms)
    return only_partition(client.ask(request, FetchResponse, FETCH_BY_NAME))


def only_partition(response: FetchResponse) -> PartitionData:
    assert response.error_code == ErrorCode.NONE
    ((answer,),) = (topic.partitions for topic in response.responses)
    return answer


def values(answer: PartitionData) -> list[bytes | None]:
    """The values of the records in an answer, which must be whole batches."""
    return [record.value for record in read_records(answer.records or b"")]


def consume(client: WireClient, topic: str, count: int, partition: int = 0) -> list[bytes | None]:
    """The first `count` values of a partition."""
    found: list[bytes | None] = []
    while len(found) < count:
        answer = fetch(client, topic, len(found), partition=partition, max_wait_ms=PATIENCE_MS)
        assert answer.error_code == ErrorCode.NONE
        new = values(answer)
        assert new, f"{count} records expected, {len(found)} came"
        found += new
    return found


def new_producer_id(client: WireClient) -> int:
    """A new id. Apache Kafka's first answer may be that it has to get some ids itself first."""
    answer = InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    while answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        answer = client.ask(InitProducerIdRequest(transactional_id=None), InitProducerIdResponse)
    assert answer.error_code == ErrorCode.NONE
    return answer.producer_id


def codes(answers: Sequence[PartitionProduceResponse]) -> list[ErrorCode]:
    return [ErrorCode(answer.error_code) for answer in answers]
