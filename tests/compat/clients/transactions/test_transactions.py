"""Transactions of every client library: what readers see of them, zombies, and those that run out of time."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator

import pytest
from tests.compat.clients.adapters.confluent import ConfluentClient
from tests.compat.clients.contract import eventually
from tests.compat.clients.groups.groups import committed
from tests.compat.clients.transactions.conftest import TRANSACTION_APIS
from tests.compat.clients.transactions.producers import (
    AiokafkaTransactions,
    ConfluentTransactions,
    Failed,
    Java39Transactions,
    Java43Transactions,
    KafkaPythonTransactions,
    TransactionalProducer,
)
from tests.compat.clients.transactions.reading import seen
from tests.peers.process import ServerProcess

from ottla.protocol.api_keys import ApiKey

pytestmark = pytest.mark.timeout(120)

KINDS: tuple[type[TransactionalProducer], ...] = (
    ConfluentTransactions,
    AiokafkaTransactions,
    KafkaPythonTransactions,
    Java39Transactions,
    Java43Transactions,
)
FENCED = re.compile(r"fenced|INVALID_PRODUCER_EPOCH|InvalidProducerEpoch", re.IGNORECASE)
Open = Callable[..., TransactionalProducer]


@pytest.fixture(autouse=True)
def _served(needs: Callable[[ApiKey], None]) -> None:
    for api in TRANSACTION_APIS:
        needs(api)


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def opened(request: pytest.FixtureRequest, broker: ServerProcess) -> Iterator[Open]:
    """Producers of one library, closed when the test is over."""
    with contextlib.ExitStack() as stack:

        def opening(identity: str, timeout_ms: int = 60_000) -> TransactionalProducer:
            producer: TransactionalProducer = request.param(broker.bootstrap, identity, timeout_ms)
            stack.callback(producer.close)
            return producer

        yield opening


def test_what_readers_see(broker: ServerProcess, opened: Open, topic: str) -> None:
    """Nothing of an open transaction nor behind its beginning; all of a committed one; nothing of an aborted one."""
    ConfluentClient(broker.bootstrap).create_topic(topic)
    other = f"{topic}-read"
    ConfluentClient(broker.bootstrap).create_topic(other)
    group = f"{topic}-group"
    producer = opened(f"{topic}-id")
    producer.begin()
    producer.send(topic, b"a")
    producer.send(topic, b"b")
    producer.offset(group, other, 7)
    assert seen(broker, topic, "read_committed") == []
    assert seen(broker, topic, "read_uncommitted") == ["a", "b"]
    assert committed(broker, group, other, 1) == {}
    producer.commit()
    eventually(lambda: seen(broker, topic, "read_committed"), ["a", "b"])
    eventually(lambda: committed(broker, group, other, 1), {0: 7})
    producer.begin()
    producer.send(topic, b"c")
    producer.offset(group, other, 9)
    producer.abort()
    producer.begin()
    producer.send(topic, b"d")
    assert seen(broker, topic, "read_committed") == ["a", "b"]
    producer.commit()
    eventually(lambda: seen(broker, topic, "read_committed"), ["a", "b", "d"])
    assert seen(broker, topic, "read_uncommitted") == ["a", "b", "c", "d"]
    assert committed(broker, group, other, 1) == {0: 7}


def test_a_zombie_is_fenced(broker: ServerProcess, opened: Open, topic: str) -> None:
    ConfluentClient(broker.bootstrap).create_topic(topic)
    old = opened(f"{topic}-id")
    old.begin()
    old.send(topic, b"from the old one")
    new = opened(f"{topic}-id")
    new.begin()
    new.send(topic, b"from the new one")
    with pytest.raises(Failed, match=FENCED):
        old.commit()
    new.commit()
    eventually(lambda: seen(broker, topic, "read_committed"), ["from the new one"])
    assert seen(broker, topic, "read_uncommitted") == ["from the old one", "from the new one"]


def test_a_transaction_that_takes_too_long_is_aborted(broker: ServerProcess, opened: Open, topic: str) -> None:
    ConfluentClient(broker.bootstrap).create_topic(topic)
    slow = opened(f"{topic}-slow", timeout_ms=1000)
    slow.begin()
    slow.send(topic, b"too late")
    quick = opened(f"{topic}-quick")
    quick.begin()
    quick.send(topic, b"in time")
    quick.commit()
    assert seen(broker, topic, "read_committed") in ([], ["in time"])
    eventually(lambda: seen(broker, topic, "read_committed"), ["in time"])
    with pytest.raises(Failed):
        slow.commit()
    assert seen(broker, topic, "read_committed") == ["in time"]
