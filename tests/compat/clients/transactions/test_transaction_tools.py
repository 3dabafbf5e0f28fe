"""Kafka's own tool for transactions, unchanged: kafka-transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.compat.clients.adapters.confluent import ConfluentClient
from tests.compat.clients.contract import eventually
from tests.compat.clients.tools import Tools
from tests.compat.clients.transactions.conftest import TRANSACTION_APIS
from tests.compat.clients.transactions.producers import ConfluentTransactions, Failed
from tests.compat.clients.transactions.reading import seen
from tests.peers.process import ServerProcess

from ottla.protocol.api_keys import ApiKey

pytestmark = pytest.mark.timeout(120)

COMMAND = "TransactionsCommand"


@pytest.fixture(autouse=True)
def _served(needs: Callable[[ApiKey], None]) -> None:
    others = (ApiKey.DESCRIBE_TRANSACTIONS, ApiKey.LIST_TRANSACTIONS, ApiKey.WRITE_TXN_MARKERS)
    for api in (*TRANSACTION_APIS, *others):
        needs(api)


def rows(printed: str, first: str) -> list[list[str]]:
    return [line.split() for line in printed.splitlines() if line.split()[:1] == [first]]


@pytest.fixture
def producer(broker: ServerProcess, topic: str) -> Iterator[ConfluentTransactions]:
    """One whose transaction has a record in partition 0 of the topic."""
    ConfluentClient(broker.bootstrap).create_topic(topic)
    opened = ConfluentTransactions(broker.bootstrap, f"{topic}-id")
    opened.begin()
    opened.send(topic, b"open")
    yield opened
    opened.close()


def test_an_open_transaction_is_shown(
    tools: Tools, broker: ServerProcess, topic: str, producer: ConfluentTransactions
) -> None:
    identity = f"{topic}-id"
    (node,) = ConfluentClient(broker.bootstrap).describe_cluster().nodes
    ((_, coordinator, producer_id, state),) = rows(tools.run(COMMAND, "list"), identity)
    assert (coordinator, state) == (str(node), "Ongoing")
    printed = tools.run(COMMAND, "describe", "--transactional-id", identity)
    assert f"{topic}-0" in printed
    assert "Ongoing" in printed
    assert producer_id in printed.split()
    printed = tools.run(COMMAND, "describe-producers", "--topic", topic, "--partition", "0")
    ((_, *words),) = rows(printed, producer_id)
    epoch, coordinator_epoch, last_sequence, *_, begins_at = words
    assert (coordinator_epoch, last_sequence, begins_at) == ("-1", "0", "0"), epoch
    hanging = ("find-hanging", "--broker-id", str(node), "--max-transaction-timeout", "0")
    assert not rows(tools.run(COMMAND, *hanging), topic)
    producer.commit()
    eventually(lambda: rows(tools.run(COMMAND, "list"), identity)[0][-1], "CompleteCommit")
    ((_, *words),) = rows(tools.run(COMMAND, "describe-producers", "--topic", topic, "--partition", "0"), producer_id)
    assert words[-1] == "None"


def test_a_transaction_is_aborted_from_outside(
    tools: Tools, broker: ServerProcess, topic: str, producer: ConfluentTransactions
) -> None:
    place = ("--topic", topic, "--partition", "0")
    tools.run(COMMAND, "abort", *place, "--start-offset", "0")
    assert seen(broker, topic, "read_uncommitted") == ["open"]
    assert seen(broker, topic, "read_committed") == []
    other = ConfluentTransactions(broker.bootstrap, f"{topic}-other")
    other.begin()
    other.send(topic, b"behind it")
    other.commit()
    other.close()
    eventually(lambda: seen(broker, topic, "read_committed"), ["behind it"])


def test_a_transactional_id_is_terminated(
    tools: Tools, broker: ServerProcess, topic: str, producer: ConfluentTransactions
) -> None:
    tools.run(COMMAND, "forceTerminateTransaction", "--transactionalId", f"{topic}-id")
    eventually(lambda: rows(tools.run(COMMAND, "list"), f"{topic}-id")[0][-1], "Empty")
    with pytest.raises(Failed):
        producer.commit()
    assert seen(broker, topic, "read_committed") == []
