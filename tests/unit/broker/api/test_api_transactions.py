"""Transactions as a partition's clients see them: Produce, WriteTxnMarkers, Fetch, ListOffsets, DescribeProducers."""

from collections.abc import Iterator

import pytest
from tests.broker_thread import BrokerThread
from tests.unit.broker.api.questions import (
    FETCH_BY_NAME,
    PATIENCE_MS,
    batch,
    create_topic,
    fetch,
    fetch_request,
    only_partition,
    produce,
    produce_request,
    values,
)
from tests.unit.broker.transactional import StandIn
from tests.wire_client import WireClient

from ottla.broker.markers import Ending
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducerState,
    TopicRequest,
)
from ottla.protocol.messages.fetch import FetchResponse, PartitionData
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ottla.runtime.promise import Promise

ADDS, VERIFIES, OLDEST_ERRORS = 12, 11, 10
READ_COMMITTED = 1
PRODUCER = 4000


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerThread]:
    with BrokerThread(tmp_path_factory.mktemp("transactions")) as broker:
        yield broker


@pytest.fixture
def client(running: BrokerThread) -> Iterator[WireClient]:
    assert running.port is not None
    with WireClient(running.port) as connected:
        yield connected


@pytest.fixture(params=[False, True], ids=["at once", "later"])
def coordinator(running: BrokerThread, request: pytest.FixtureRequest) -> Iterator[StandIn]:
    coordinators, stand_in = running.broker.coordinators, StandIn(later=request.param)
    real, coordinators.transactions = coordinators.transactions, stand_in  # type: ignore[assignment]  # what Produce asks
    yield stand_in
    coordinators.transactions = real


def transactional(value: bytes, sequence: int, *, epoch: int = 0, producer_id: int = PRODUCER) -> bytes:
    return batch(value, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, transactional=True)


def write(
    client: WireClient, topic: str, records: bytes, *, version: int = ADDS, acks: int = -1
) -> PartitionProduceResponse:
    request = produce_request(topic, records, acks=acks)
    request.transactional_id = "mine"
    ((answer,),) = (
        topic_answer.partition_responses for topic_answer in client.ask(request, ProduceResponse, version).responses
    )
    return answer


def end(
    client: WireClient,
    topic: str,
    *partitions: int,
    commit: bool,
    epoch: int = 0,
    coordinator_epoch: int = 0,
    version: int = 0,
    producer_id: int = PRODUCER,
) -> list[ErrorCode]:
    marker = WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_result=commit,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=list(partitions or (0,)))],
        coordinator_epoch=coordinator_epoch,
        transaction_version=version,
    )
    response = client.ask(WriteTxnMarkersRequest(markers=[marker]), WriteTxnMarkersResponse, 2)
    (result,) = response.markers
    assert result.producer_id == producer_id
    ((answered),) = result.topics
    assert [each.partition_index for each in answered.partitions] == list(partitions or (0,))
    return [ErrorCode(each.error_code) for each in answered.partitions]


def read_committed(client: WireClient, topic: str, offset: int = 0, max_wait_ms: int = 0) -> PartitionData:
    request = fetch_request(topic, offset, isolation_level=READ_COMMITTED, max_wait_ms=max_wait_ms)
    return only_partition(client.ask(request, FetchResponse, FETCH_BY_NAME))


def latest(client: WireClient, topic: str, isolation_level: int) -> int:
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])],
    )
    ((answer,),) = (each.partitions for each in client.ask(request, ListOffsetsResponse, 6).topics)
    assert answer.error_code == ErrorCode.NONE
    return answer.offset


def test_a_transaction_from_its_first_batch_to_its_marker(client: WireClient, topic: str, coordinator: StandIn) -> None:
    create_topic(client, topic)
    produce(client, topic, batch(b"plain"))
    for sequence, value in enumerate((b"one", b"two")):
        answer = write(client, topic, transactional(value, sequence))
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, sequence + 1)
    assert [adds for _, adds in coordinator.asked] == [True], "asked once, before the first batch"
    produce(client, topic, batch(b"behind"))
    assert values(read_committed(client, topic)) == [b"plain"]
    assert values(fetch(client, topic, 0)) == [b"plain", b"one", b"two", b"behind"]
    assert read_committed(client, topic).last_stable_offset == 1
    assert fetch(client, topic, 0).last_stable_offset == 1
    assert (latest(client, topic, 0), latest(client, topic, READ_COMMITTED)) == (4, 1)
    assert end(client, topic, commit=False) == [ErrorCode.NONE]
    found = read_committed(client, topic)
    assert values(found)[:4] == [b"plain", b"one", b"two", b"behind"]
    assert [(each.producer_id, each.first_offset) for each in found.aborted_transactions or []] == [(PRODUCER, 1)]
    assert latest(client, topic, READ_COMMITTED) == found.last_stable_offset == found.high_watermark == 5
    assert fetch(client, topic, 0).aborted_transactions is None


def test_a_poll_for_committed_records_waits_for_the_marker(
    running: BrokerThread, client: WireClient, topic: str, coordinator: StandIn
) -> None:
    create_topic(client, topic)
    assert write(client, topic, transactional(b"one", 0)).error_code == ErrorCode.NONE
    assert running.port is not None
    with WireClient(running.port) as reader:
        request = fetch_request(topic, 0, isolation_level=READ_COMMITTED, max_wait_ms=PATIENCE_MS)
        reader.send(request, FETCH_BY_NAME)
        produce(client, topic, batch(b"plain"))
        assert end(client, topic, commit=True) == [ErrorCode.NONE]
        answer = only_partition(reader.receive(request, FetchResponse, FETCH_BY_NAME))
    assert values(answer)[:2] == [b"one", b"plain"]


def test_batches_that_come_while_the_coordinator_is_asked_stay_in_order(
    client: WireClient, topic: str, coordinator: StandIn
) -> None:
    create_topic(client, topic)
    requests = [produce_request(topic, transactional(b"%d" % sequence, sequence)) for sequence in range(5)]
    for request in requests:
        request.transactional_id = "mine"
        client.send(request, ADDS)
    answers = [
        client.receive(request, ProduceResponse, ADDS).responses[0].partition_responses[0] for request in requests
    ]
    assert [(answer.error_code, answer.base_offset) for answer in answers] == [(0, number) for number in range(5)]


@pytest.mark.parametrize(
    ("version", "error", "told"),
    [
        (VERIFIES, None, ErrorCode.TRANSACTION_ABORTABLE),
        (OLDEST_ERRORS, None, ErrorCode.INVALID_TXN_STATE),
        (ADDS, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ADDS, ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ADDS, ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ADDS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_ENOUGH_REPLICAS),
        (VERIFIES, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_ENOUGH_REPLICAS),
    ],
)
def test_what_the_coordinator_refuses(
    client: WireClient, topic: str, coordinator: StandIn, version: int, error: ErrorCode | None, told: ErrorCode
) -> None:
    create_topic(client, topic)
    coordinator.errors = [] if error is None else [error]
    answer = write(client, topic, transactional(b"refused", 0), version=version)
    assert (answer.error_code, answer.base_offset, answer.log_start_offset) == (told, -1, -1)
    assert latest(client, topic, 0) == 0
    coordinator.members.add(("mine", PRODUCER, 0, topic, 0))
    assert write(client, topic, transactional(b"taken", 0), version=version).error_code == ErrorCode.NONE


def test_a_transaction_that_is_still_being_ended_is_waited_for_a_moment(
    client: WireClient, topic: str, coordinator: StandIn
) -> None:
    create_topic(client, topic)
    coordinator.errors = [ErrorCode.CONCURRENT_TRANSACTIONS] * 2
    assert write(client, topic, transactional(b"one", 0)).error_code == ErrorCode.NONE
    assert len(coordinator.asked) == 3
    coordinator.errors = [ErrorCode.CONCURRENT_TRANSACTIONS] * 1000
    end(client, topic, commit=True, epoch=1, version=2)
    answer = write(client, topic, transactional(b"two", 0, epoch=1))
    assert answer.error_code == ErrorCode.CONCURRENT_TRANSACTIONS


def test_a_batch_after_its_transaction_has_ended_is_refused(
    client: WireClient, topic: str, coordinator: StandIn
) -> None:
    create_topic(client, topic)
    coordinator.members.add(("mine", PRODUCER, 0, topic, 0))
    assert write(client, topic, transactional(b"one", 0), version=VERIFIES).error_code == ErrorCode.NONE
    assert end(client, topic, commit=True) == [ErrorCode.NONE]
    coordinator.members.clear()
    late = write(client, topic, transactional(b"late", 1), version=VERIFIES)
    assert late.error_code == ErrorCode.TRANSACTION_ABORTABLE


def test_transactional_batches_of_several_partitions(client: WireClient, topic: str, coordinator: StandIn) -> None:
    create_topic(client, topic, partitions=2)

    def ask(*records: bytes, transactional_id: str | None = "mine") -> list[ErrorCode]:
        request = produce_request(topic, records[0])
        for index, more in enumerate(records[1:], 1):
            request.topic_data[0].partition_data += (
                produce_request(topic, more, partition=index).topic_data[0].partition_data
            )
        request.transactional_id = transactional_id
        (answered,) = client.ask(request, ProduceResponse, ADDS).responses
        return [ErrorCode(answer.error_code) for answer in answered.partition_responses]

    other = transactional(b"b", 0, producer_id=PRODUCER + 1)
    assert ask(transactional(b"a", 0), other) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2
    refused = [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * 2
    assert ask(batch(b"plain"), transactional(b"a", 0), transactional_id=None) == refused
    assert not coordinator.asked
    assert ask(transactional(b"a", 0), transactional(b"b", 0)) == [ErrorCode.NONE] * 2
    assert len(coordinator.asked) == 2
    assert end(client, topic, 0, 1, commit=True) == [ErrorCode.NONE] * 2


@pytest.mark.usefixtures("coordinator")
def test_transactional_batches_that_are_none(client: WireClient, topic: str) -> None:
    create_topic(client, topic, partitions=2)
    good = transactional(b"a", 0)
    for hurt in (good[:40], good[:8] + b"\xff" * 4 + good[12:], good[:17] + bytes(4) + good[21:]):
        request = produce_request(topic, hurt)
        request.topic_data[0].partition_data += produce_request(topic, hurt, partition=1).topic_data[0].partition_data
        request.transactional_id = "mine"
        (answered,) = client.ask(request, ProduceResponse, ADDS).responses
        assert all(
            answer.error_code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD)
            for answer in answered.partition_responses
        )
    assert latest(client, topic, 0) == 0


@pytest.mark.usefixtures("coordinator")
def test_markers_fence(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    assert write(client, topic, transactional(b"one", 0, epoch=3)).error_code == ErrorCode.NONE
    assert end(client, topic, commit=True, epoch=2) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert end(client, topic, commit=True, epoch=3, version=2) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert end(client, topic, commit=True, epoch=4, version=2, coordinator_epoch=7) == [ErrorCode.NONE]
    again = end(client, topic, commit=True, epoch=4, version=2, coordinator_epoch=7)
    assert again == [ErrorCode.NONE], "who does not know whether a marker was written may repeat it"
    assert end(client, topic, commit=True, epoch=-1) == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert end(client, topic, commit=True, epoch=1, producer_id=-1) == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert end(client, topic, commit=True, epoch=-5, producer_id=77) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert end(client, topic, commit=True, epoch=5, coordinator_epoch=6) == [ErrorCode.TRANSACTION_COORDINATOR_FENCED]
    assert end(client, topic, 0, 9, commit=True, epoch=5, coordinator_epoch=7) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_no_markers_no_answers(client: WireClient) -> None:
    assert client.ask(WriteTxnMarkersRequest(markers=[]), WriteTxnMarkersResponse, 1).markers == []


@pytest.mark.usefixtures("coordinator")
def test_the_producer_of_an_open_transaction_is_described(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    produce(client, topic, batch(b"plain"))
    write(client, topic, transactional(b"one", 0, epoch=2))

    def ask() -> list[ProducerState]:
        request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
        ((answer,),) = (each.partitions for each in client.ask(request, DescribeProducersResponse).topics)
        return answer.active_producers

    (state,) = ask()
    assert (state.producer_epoch, state.current_txn_start_offset, state.coordinator_epoch) == (2, 1, -1)
    end(client, topic, commit=True, epoch=2, coordinator_epoch=9)
    (state,) = ask()
    assert (state.producer_epoch, state.current_txn_start_offset, state.coordinator_epoch) == (2, -1, 9)
    assert state.last_sequence == 0


@pytest.mark.usefixtures("coordinator")
def test_a_topic_of_a_coordinator_has_its_markers_written_by_it(
    running: BrokerThread, client: WireClient, topic: str
) -> None:
    create_topic(client, topic)
    ended: list[tuple[int, Ending]] = []

    def end_here(index: int, ending: Ending) -> Promise[None]:
        ended.append((index, ending))
        promise: Promise[None] = Promise()
        if len(ended) == 1:
            promise.reject(KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        else:
            promise.resolve(None)
        return promise

    running.broker.transaction_enders[topic] = end_here
    assert end(client, topic, commit=True, epoch=1, version=2) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert end(client, topic, commit=True, epoch=1, version=2) == [ErrorCode.NONE]
    index, ending = ended[-1]
    assert (index, ending.is_commit, ending.writer, ending.transaction_version) == (0, True, (PRODUCER, 1), 2)
    assert latest(client, topic, 0) == 0


def test_without_verification_a_transaction_just_begins(tmp_path_factory: pytest.TempPathFactory, topic: str) -> None:
    properties = {"transaction.partition.verification.enable": "false"}
    with BrokerThread(tmp_path_factory.mktemp("unverified"), properties) as broker:
        assert broker.port is not None
        with WireClient(broker.port) as client:
            create_topic(client, topic)
            assert write(client, topic, transactional(b"one", 3)).error_code == ErrorCode.NONE
            assert values(read_committed(client, topic)) == []
