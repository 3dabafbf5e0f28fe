"""TxnOffsetCommit: who may commit in a transaction, and what others see of it. The transaction is the test's own."""

from collections.abc import Iterator

import pytest
from tests.broker_thread import BrokerThread
from tests.unit.broker.api.offset_questions import fetch_group, fetched, find_coordinator, offsets_of
from tests.unit.broker.api.questions import create_topic
from tests.wire_client import WireClient

from ottla.broker.broker import Broker
from ottla.ledger import Writer
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from ottla.runtime.promise import Promise

NONE = ErrorCode.NONE
GROUP_TOPIC = "__consumer_offsets"


class Transactions:
    """Says of every transaction what the test wants, now or when it is told to."""

    def __init__(self) -> None:
        self.refusal: KafkaError | None = None
        self.later: Promise[None] | None = None
        self.asked: list[tuple[object, ...]] = []

    def verify(
        self, transactional_id: str, producer_id: int, producer_epoch: int, topic: str, partition: int, *, adds: bool
    ) -> Promise[None] | None:
        self.asked.append((transactional_id, producer_id, producer_epoch, topic, partition, adds))
        if self.refusal is not None:
            raise self.refusal
        return self.later


@pytest.fixture
def transactions(monkeypatch: pytest.MonkeyPatch) -> Transactions:
    stand_in = Transactions()
    monkeypatch.setattr(Broker, "transactions", property(lambda broker: stand_in))
    return stand_in


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerThread]:
    with BrokerThread(tmp_path_factory.mktemp("transactions"), {"offsets.topic.num.partitions": "1"}) as running:
        yield running


@pytest.fixture
def client(broker: BrokerThread) -> Iterator[WireClient]:
    with WireClient(broker.port) as connected:
        yield connected


@pytest.fixture
def group(client: WireClient, topic: str) -> str:
    group_id = f"group-of-{topic}"
    create_topic(client, topic)
    find_coordinator(client, group_id)
    return group_id


def request(group: str, topic: str, number: int = 7, **fields: object) -> TxnOffsetCommitRequest:
    parts = [
        TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=number, committed_metadata="m")
        for index in (0, 9)
    ]
    return TxnOffsetCommitRequest(
        transactional_id="tx",
        group_id=group,
        producer_id=5,
        producer_epoch=0,
        topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=parts)],
        **fields,  # type: ignore[arg-type]  # tests set the fields of the request
    )


def codes(answer: TxnOffsetCommitResponse) -> dict[int, ErrorCode]:
    (topic,) = answer.topics
    return {part.partition_index: ErrorCode(part.error_code) for part in topic.partitions}


def answers(code: ErrorCode) -> dict[int, ErrorCode]:
    return {0: code, 9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def end(broker: BrokerThread, *, is_commit: bool) -> None:
    broker.call(lambda: broker.broker.groups.end_transaction(0, Writer(5, 0), 0, is_commit=is_commit))


@pytest.mark.parametrize("version", range(6))
def test_offsets_count_when_the_transaction_is_committed(
    broker: BrokerThread, client: WireClient, transactions: Transactions, group: str, topic: str, version: int
) -> None:
    assert codes(client.ask(request(group, topic), TxnOffsetCommitResponse, version)) == answers(NONE)
    assert transactions.asked == [("tx", 5, 0, GROUP_TOPIC, 0, version >= 5)]
    assert offsets_of(client, group) == {}
    unstable = fetched(fetch_group(client, group, {topic: [0]}, require_stable=True))[topic, 0]
    assert (unstable.error_code, unstable.committed_offset) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    end(broker, is_commit=True)
    assert offsets_of(client, group) == {(topic, 0): 7}


def test_the_commit_waits_until_the_transaction_has_the_partition(
    broker: BrokerThread, client: WireClient, transactions: Transactions, group: str, topic: str
) -> None:
    later = transactions.later = Promise()
    client.send(request(group, topic))
    while not transactions.asked:
        assert seen_by_another(broker, group) == {}
    assert seen_by_another(broker, group) == {}
    broker.call(later.resolve, None)
    answer = client.receive(request(group, topic), TxnOffsetCommitResponse)
    assert codes(answer) == answers(NONE)
    end(broker, is_commit=False)


def seen_by_another(broker: BrokerThread, group: str) -> dict[tuple[str, int], int]:
    with WireClient(broker.port) as other:
        return offsets_of(other, group)


@pytest.mark.parametrize(
    ("code", "version", "told"),
    [
        (ErrorCode.INVALID_PRODUCER_EPOCH, 3, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.TRANSACTION_ABORTABLE, 4, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.TRANSACTION_ABORTABLE, 3, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 2, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 1, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
@pytest.mark.parametrize("is_later", [False, True])
def test_a_producer_without_a_transaction(
    client: WireClient,
    transactions: Transactions,
    group: str,
    topic: str,
    code: ErrorCode,
    version: int,
    told: ErrorCode,
    is_later: bool,
) -> None:
    if is_later:
        transactions.later = Promise()
        transactions.later.reject(KafkaError(code))
    else:
        transactions.refusal = KafkaError(code)
    assert codes(client.ask(request(group, topic), TxnOffsetCommitResponse, version)) == answers(told)
    assert offsets_of(client, group) == {}


def test_refusals_of_the_group(client: WireClient, transactions: Transactions, group: str, topic: str) -> None:
    member = request(group, topic, generation_id=3, member_id="m")
    assert codes(client.ask(member, TxnOffsetCommitResponse)) == answers(ErrorCode.ILLEGAL_GENERATION)
    transactions.asked.clear()
    nameless = request("", topic)
    assert codes(client.ask(nameless, TxnOffsetCommitResponse)) == answers(ErrorCode.INVALID_GROUP_ID)
    assert transactions.asked == [], "a transaction must not get a partition for a group that cannot be"


def test_nothing_that_exists(client: WireClient, transactions: Transactions, group: str) -> None:
    answer = client.ask(request(group, "no-such-topic"), TxnOffsetCommitResponse)
    assert set(codes(answer).values()) == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert transactions.asked == []
