"""The end of the sync clients, which several may ask for."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.waiting import tries

from ottla import Admin, Consumer, Producer
from ottla.testing import TestBroker


@pytest.fixture
def ottla() -> Iterator[TestBroker]:
    with TestBroker({"group.initial.rebalance.delay.ms": "0"}) as broker:
        broker.create_topic("t")
        yield broker


class Closer(threading.Thread):
    def __init__(self, close: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._close = close
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._close()
        except BaseException as error:
            self.error = error

    def ends(self) -> bool:
        self.join(60)
        return not self.is_alive() and self.error is None


def wait_for(holds: Callable[[], Any]) -> None:
    for _ in tries():
        if holds():
            return
    raise AssertionError("it never came to that")


def test_who_closes_a_producer_that_is_being_closed_waits_and_no_record_fails(ottla: TestBroker) -> None:
    producer = Producer(ottla.bootstrap_servers)
    producer.send("t", b"first").result(60)
    ottla.faults.delay("PRODUCE", 0.3)
    deliveries = [producer.send("t", b"%d" % number) for number in range(100)]
    first = Closer(producer.close)
    wait_for(lambda: producer._client.engine._is_closing)
    second = Closer(producer.close)
    producer.close()
    assert [delivery.exception(20) for delivery in deliveries] == [None] * 100
    assert first.ends()
    assert second.ends()
    producer.close()


def test_who_has_no_time_to_wait_for_another_ends_it(ottla: TestBroker) -> None:
    producer = Producer(ottla.bootstrap_servers)
    producer.send("t", b"first").result(60)
    ottla.faults.delay("PRODUCE", 60)
    delivery = producer.send("t", b"late")
    first = Closer(producer.close)
    wait_for(lambda: producer._client.engine._is_closing)
    producer.close(timeout=0.05)
    assert delivery.exception(20) is not None
    assert first.ends()


def test_who_closes_a_consumer_that_is_being_closed_waits_for_its_commit(ottla: TestBroker) -> None:
    with Producer(ottla.bootstrap_servers) as producer:
        producer.send("t", b"x").result(60)
    settings: dict[str, Any] = {"group_id": "g", "auto_offset_reset": "earliest", "auto_commit_interval_ms": 3_600_000}
    consumer = Consumer(ottla.bootstrap_servers, **settings)
    consumer.assign([("t", 0)])
    assert consumer.poll(20)
    ottla.faults.delay("OFFSET_COMMIT", 0.3)
    first = Closer(consumer.close)
    wait_for(lambda: ottla.faults.requests("OFFSET_COMMIT"))
    consumer.close()
    assert first.ends()
    consumer.close()


def test_a_listener_that_closes_the_consumer_which_is_closing_does_not_wait_for_itself(ottla: TestBroker) -> None:
    consumer = Consumer(ottla.bootstrap_servers, group_id="g", auto_offset_reset="earliest")
    revoked: list[Any] = []

    class Listener:
        def on_revoked(self, partitions: Any) -> None:
            consumer.close()
            revoked.append(partitions)

    consumer.subscribe(["t"], listener=Listener())
    for _ in tries():
        consumer.poll(0.05)
        if consumer.assignment:
            break
    assert Closer(consumer.close).ends()
    assert len(revoked) == 1
    assert ottla.faults.requests("LEAVE_GROUP") == 1


class SlowNetwork:
    """Takes as long to close as it is told to."""

    def __init__(self, network: Any) -> None:
        self._network = network
        self.is_closing = threading.Event()
        self.may_end = threading.Event()
        self.is_closed = False

    async def close(self) -> None:
        self.is_closing.set()
        await asyncio.to_thread(self.may_end.wait, 20)
        await self._network.close()
        self.is_closed = True


def test_who_closes_an_admin_client_that_is_being_closed_waits_until_it_is(ottla: TestBroker) -> None:
    admin = Admin(ottla.bootstrap_servers)
    client: Any = admin._client
    network = client._network = SlowNetwork(client._network)
    first = Closer(admin.close)
    assert network.is_closing.wait(60)
    was_closed: list[bool] = []

    def close_and_look() -> None:
        admin.close()
        was_closed.append(network.is_closed)

    second = Closer(close_and_look)
    wait_for(lambda: client._closing._ended._waiters or not second.is_alive())
    network.may_end.set()
    assert first.ends()
    assert second.ends()
    assert was_closed == [True]
