"""The state that both brokers are brought to before the questions: settings, and topics with the same contents."""

import time
from collections.abc import Iterator, Sequence
from itertools import islice

from tests.compat.questions.batches import LONG_AGO_MS, PRODUCER, batch, numbered
from tests.compat.questions.question import Topic, topic_id
from tests.compat.questions.side import Side

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from ottla.records import Codec

# Kafka's values where the defaults differ on purpose, and what makes a thousand topics cheap.
SETTINGS = {
    "node.id": "1",
    "log.retention.ms": "-1",
    "log.retention.check.interval.ms": "86400000",
    "log.index.size.max.bytes": "65536",
    "queued.max.request.bytes": "-1",
    "socket.send.buffer.bytes": "102400",
    "socket.receive.buffer.bytes": "102400",
    "socket.listen.backlog.size": "50",
    "socket.request.max.bytes": "1000000",
    "log.cleaner.enable": "true",
    "log.cleaner.backoff.ms": "3600000",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.assignment.interval.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.assignor.offload.enable": "false",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}

PLAIN, TRIMMED, COMPRESSED = "s-plain", "s-trimmed", "s-compressed"
STAMPED, COMPACTED, SMALL, PRODUCERS = "s-stamped", "s-compacted", "s-small", "s-producers"
RECODED, STRICT, DOTTED, EMPTY = "s-recoded", "s-strict", "s.dotted", "s-empty"
SHARED_NAMES = (PLAIN, TRIMMED, COMPRESSED, STAMPED, COMPACTED, SMALL, PRODUCERS, RECODED, STRICT, DOTTED, EMPTY)

_TOPICS_A_REQUEST = 100
_READY_SECONDS = 60.0
_LATEST, _BY_NAME = -1, 12
_NAMES = 32
GROUP, TRANSACTION = 0, 1

SHARED = (
    Topic(
        PLAIN,
        3,
        batches={
            0: tuple(batch(b"v%d" % number, at=LONG_AGO_MS + 10_000 * number) for number in range(10)),
            1: (batch(b"a", b"b", b"c"), batch(b"d", at=LONG_AGO_MS - 5000), batch(b"e", at=LONG_AGO_MS + 500)),
        },
    ),
    Topic(TRIMMED, 1, batches={0: tuple(batch(b"v%d" % number) for number in range(10))}),
    Topic(
        COMPRESSED,
        2,
        batches={
            0: tuple(batch(b"a", b"b" * 100, codec=codec) for codec in Codec if codec is not Codec.ZSTD),
            1: (batch(b"a", b"b" * 100, codec=Codec.ZSTD),),
        },
    ),
    Topic(STAMPED, 1, {"message.timestamp.type": "LogAppendTime"}, {0: (batch(b"a", b"b"), batch(b"c"))}),
    Topic(COMPACTED, 1, {"cleanup.policy": "compact"}, {0: (batch(b"a"), batch(None))}),
    Topic(SMALL, 1, {"max.message.bytes": "1000", "segment.bytes": "1048576"}, {0: (batch(b"a"),)}),
    Topic(
        PRODUCERS,
        1,
        batches={0: (numbered(0), numbered(1, count=3), numbered(0, epoch=2, producer=PRODUCER + 1))},
    ),
    Topic(RECODED, 1, {"compression.type": "gzip"}, {0: (batch(b"a", b"b", b"c"),)}),
    Topic(STRICT, 1, {"message.timestamp.before.max.ms": "1000", "message.timestamp.after.max.ms": "1000"}),
    Topic(DOTTED, 1),
    Topic(EMPTY, 2),
)


def set_up(side: Side, topics: Sequence[Topic]) -> None:
    """Create the shared topics and those of the questions, and bring the broker to the state that they expect."""
    create(side, [*SHARED, *topics])
    _trim(side)
    _wait_for_producer_ids(side)


def create(side: Side, topics: Sequence[Topic]) -> None:
    """Create topics, wait until they are led, append to them."""
    for group in _groups(topics, _TOPICS_A_REQUEST):
        response = side.ask(CreateTopicsRequest(topics=[_creation(topic) for topic in group]))
        assert isinstance(response, CreateTopicsResponse)
        for created in response.topics:
            assert created.error_code == ErrorCode.NONE, (created.name, created.error_code, created.error_message)
            side.learn(topic_id(created.name), created.topic_id)
    for group in _groups(topics, _TOPICS_A_REQUEST):
        _wait_until_led(side, group)
    for topic in topics:
        for partition, batches in topic.batches.items():
            for data in batches:
                _append(side, topic.name, partition, data)


def _wait_for_producer_ids(side: Side) -> None:
    """Kafka's broker asks its controller for ids when it is first asked for one; until then it answers with errors."""
    deadline = time.monotonic() + _READY_SECONDS
    while True:
        response = side.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000))
        assert isinstance(response, InitProducerIdResponse)
        if response.error_code == ErrorCode.NONE:
            return
        assert time.monotonic() < deadline, f"{side.name} gives out no producer ids: {response.error_code}"
        time.sleep(0.02)


def wait_for_coordinators(side: Side, kinds: Sequence[int] = (GROUP, TRANSACTION)) -> None:
    """Who asks first makes a broker create the topics of its coordinators, and is told to come back."""
    deadline = time.monotonic() + _READY_SECONDS
    waiting = set(kinds)
    while waiting:
        for kind in sorted(waiting):
            response = side.ask(FindCoordinatorRequest(key_type=kind, coordinator_keys=["first"]))
            assert isinstance(response, FindCoordinatorResponse)
            if response.coordinators[0].error_code == ErrorCode.NONE:
                waiting.discard(kind)
        assert time.monotonic() < deadline, f"{side.name} has no coordinators of types {waiting}"
        time.sleep(0.02)
    while _loads(side, kinds):
        assert time.monotonic() < deadline, f"{side.name} does not load its coordinators"
        time.sleep(0.02)


def _loads(side: Side, kinds: Sequence[int]) -> bool:
    """Whether a coordinator still reads its topic; many names are asked for, so that all partitions are asked."""
    names = [f"first-{number}" for number in range(_NAMES)]
    codes: set[int] = set()
    if GROUP in kinds:
        asked = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in names]
        offsets = side.ask(OffsetFetchRequest(groups=asked))
        assert isinstance(offsets, OffsetFetchResponse)
        codes |= {group.error_code for group in offsets.groups}
    if TRANSACTION in kinds:
        states = side.ask(DescribeTransactionsRequest(transactional_ids=names))
        assert isinstance(states, DescribeTransactionsResponse)
        codes |= {state.error_code for state in states.transaction_states}
    return bool(codes & {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR})


def _groups(topics: Sequence[Topic], size: int) -> Iterator[list[Topic]]:
    rest = iter(topics)
    while group := list(islice(rest, size)):
        yield group


def _creation(topic: Topic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )


def _wait_until_led(side: Side, topics: list[Topic]) -> None:
    """A leader that answers for its end is one that takes records."""
    request = ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(
                name=topic.name,
                partitions=[
                    ListOffsetsPartition(partition_index=index, timestamp=_LATEST) for index in range(topic.partitions)
                ],
            )
            for topic in topics
        ],
    )
    deadline = time.monotonic() + _READY_SECONDS
    while True:
        response = side.ask(request, 7)
        assert isinstance(response, ListOffsetsResponse)
        errors = {partition.error_code for topic in response.topics for partition in topic.partitions}
        if errors <= {ErrorCode.NONE}:
            return
        assert time.monotonic() < deadline, f"{side.name} does not lead its new topics: {errors}"
        time.sleep(0.02)


def _append(side: Side, topic: str, partition: int, data: bytes) -> None:
    request = ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=data)])],
    )
    response = side.ask(request, _BY_NAME)
    assert isinstance(response, ProduceResponse)
    answer = response.responses[0].partition_responses[0]
    assert answer.error_code == ErrorCode.NONE, (topic, ErrorCode(answer.error_code), answer.error_message)


def _trim(side: Side) -> None:
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=TRIMMED, partitions=[DeleteRecordsPartition(partition_index=0, offset=5)])],
        timeout_ms=10_000,
    )
    response = side.ask(request)
    assert isinstance(response, DeleteRecordsResponse)
    assert response.topics[0].partitions[0].error_code == ErrorCode.NONE
