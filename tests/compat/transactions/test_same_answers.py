"""The same conversations with Apache Kafka and with Ottla: every answer is the same."""

from collections.abc import Iterator

import pytest
from tests.broker_thread import BrokerThread
from tests.compat.transactions.conversation import Side, conversation, describe, initialize, list_all
from tests.conftest import start_broker
from tests.unit.broker.api.questions import create_topic, fetch
from tests.unit.broker.transactional_client import GROUP, TRANSACTION, find_coordinator
from tests.wire_client import WireClient

from ottla.ledger import partition_for
from ottla.records import read_records
from ottla.transactions import Status
from ottla.transactions.entries import TRANSACTION_RECORD_TYPES, TransactionLogKey, TransactionLogValue

CONVERSATIONS = 25
STEPS = 30
TOPICS = {"first": 2, "second": 3}
PARTITIONS = {"offsets.topic.num.partitions": "4", "transaction.state.log.num.partitions": "4"}


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[WireClient, WireClient]]:
    """Apache Kafka and Ottla, both with the topics and with coordinators."""
    kafka = start_broker("kafka", tmp_path_factory.mktemp("kafka"), properties=PARTITIONS)
    assert kafka.port is not None
    try:
        with (
            BrokerThread(tmp_path_factory.mktemp("ottla"), PARTITIONS) as ottla,
            WireClient(kafka.port) as theirs,
            WireClient(ottla.port) as ours,
        ):
            for client in (theirs, ours):
                for topic, partitions in TOPICS.items():
                    create_topic(client, topic, partitions)
                find_coordinator(client, "some-group", key_type=GROUP)
                find_coordinator(client, "some-id", key_type=TRANSACTION)
            yield theirs, ours
    finally:
        kafka.stop()


@pytest.mark.parametrize("seed", range(CONVERSATIONS))
def test_a_conversation(sides: tuple[WireClient, WireClient], seed: int) -> None:
    theirs, ours = (Side(client) for client in sides)
    for number, step in enumerate(conversation(seed, [f"one-{seed}", f"two-{seed}"], TOPICS, STEPS)):
        assert step.ask(ours) == step.ask(theirs), f"step {number}: {step.text}"


@pytest.mark.parametrize(
    "filters",
    [
        {"state_filters": ["Empty"]},
        {"state_filters": ["Empty", "empty", "Odd"]},
        {"state_filters": ["Ongoing"]},
        {"duration_filter": 0},
        {"duration_filter": 3_600_000},
        {"transactional_id_pattern": ""},
        {"transactional_id_pattern": "listed-[a-b]"},
        {"transactional_id_pattern": "listed"},
        {"transactional_id_pattern": ".*ted-a|nothing"},
        {"transactional_id_pattern": "(unclosed"},
        {"producer_id_filters": [-5]},
    ],
    ids=str,
)
def test_a_list(sides: tuple[WireClient, WireClient], filters: dict[str, object]) -> None:
    names = ["listed-a", "listed-b", "listed-c"]
    found = []
    for client in sides:
        side = Side(client)
        for name in names:
            initialize(name, 4, None, 60_000)(side)
        describe(names[0])(side)
        found.append(list_all(names, **filters)(side))
    assert found[0] == found[1]


def test_the_records_are_the_same(sides: tuple[WireClient, WireClient]) -> None:
    """What both keep of the same conversation, field by field, but for times and the numbers of producers."""
    kept = []
    for client in sides:
        side = Side(client)
        for step in conversation(7, ["kept-a", "kept-b"], TOPICS, 60):
            step.ask(side)
        for name in ("kept-a", "kept-b"):
            describe(name)(side)
        kept.append({name: _records(side, name) for name in ("kept-a", "kept-b")})
    assert all(len(records) > 5 for records in kept[0].values())
    assert kept[0] == kept[1]


def _records(side: Side, name: str) -> list[tuple[object, ...]]:
    """Everything that was written about a transactional id."""
    found: list[tuple[object, ...]] = []
    partition, offset = partition_for(name, 4), 0
    while True:
        answer = fetch(side.client, "__transaction_state", offset, partition=partition)
        if not answer.records:
            return found
        for record in read_records(answer.records):
            offset = record.offset + 1
            entry = TRANSACTION_RECORD_TYPES.decode(record.key, record.value)
            assert isinstance(entry.key, TransactionLogKey)
            if entry.key.transactional_id == name:
                assert isinstance(entry.value, TransactionLogValue)
                found.append((entry.version, *_fields(side, entry.value)))


def _fields(side: Side, value: TransactionLogValue) -> Iterator[object]:
    for producer_id in (value.producer_id, value.previous_producer_id, value.next_producer_id):
        yield side.named(producer_id)
    yield from (value.producer_epoch, value.next_producer_epoch, Status(value.transaction_status).title)
    yield from (value.transaction_timeout_ms, value.client_transaction_version)
    yield value.transaction_start_timestamp_ms == -1
    partitions = value.transaction_partitions
    yield None if partitions is None else sorted((each.topic, sorted(each.partition_ids)) for each in partitions)
