"""A producer's loop that leaves answers to whoever sends next, as long as nobody waits for them.

A nap lasts an hour here: whoever should end it and does not is found by a test that waits in vain.
"""

import threading
from collections.abc import Iterator

import pytest
from tests.waiting import tries

from ottla import Producer
from ottla.client.producer.batches import Delivery
from ottla.client.sync import naps
from ottla.testing import TestBroker

_PATIENCE_SECONDS = 60.0

pytestmark = pytest.mark.skipif(not naps.Naps.are_possible, reason="there is nothing to nap on")


@pytest.fixture
def broker() -> Iterator[TestBroker]:
    with TestBroker() as broker:
        broker.create_topic("naps")
        yield broker


@pytest.fixture
def producer(broker: TestBroker, no_handlers: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Producer]:
    monkeypatch.setattr(naps, "NAP_SECONDS", 3600.0)
    monkeypatch.setattr(naps, "_QUIET_VISITS", 0)
    with Producer(broker.bootstrap_servers, linger_ms=0) as producer:
        yield producer


def is_asleep(producer: Producer) -> bool:
    loop = producer._thread._loop
    assert loop is not None
    assert loop._naps is not None
    return loop._naps.is_asleep


def send_until_asleep(producer: Producer) -> list[Delivery]:
    sent: list[Delivery] = []
    for _ in tries():
        if is_asleep(producer):
            return sent
        sent.append(producer.send("naps", b"%d" % len(sent)))
    raise AssertionError("the loop never slept")


def send_until_done(producer: Producer, delivery: Delivery) -> list[Delivery]:
    """What was sent until that one was known to be written."""
    sent: list[Delivery] = []
    for number in tries():
        if delivery.done():
            return sent
        if number:
            # With more than one on its way the loop would wake up: the answer has had a moment to come.
            sent.append(producer.send("naps", b"another"))
    raise AssertionError("nobody saw the answer")


def test_who_sends_next_works_on_the_answer(producer: Producer, broker: TestBroker) -> None:
    sent: list[Delivery] = []
    for _ in tries():
        sent += send_until_asleep(producer)
        delivery = producer.send("naps", b"%d" % len(sent))
        sent.append(delivery)
        sent += send_until_done(producer, delivery)
        # Where answers take so long that more than one is on its way, the loop wakes up for them.
        if is_asleep(producer):
            break
    else:
        raise AssertionError("the loop was always woken")
    producer.flush(_PATIENCE_SECONDS)
    assert [delivery.result().offset for delivery in sent] == list(range(len(sent)))
    assert len(broker.records("naps")) == len(sent)


def test_a_thread_that_waits_for_a_record_wakes_the_loop(producer: Producer) -> None:
    for number in range(20):
        before = send_until_asleep(producer)
        assert producer.send("naps", b"waited for").result(_PATIENCE_SECONDS).offset >= number + len(before)


def test_a_callback_for_a_record_wakes_the_loop_and_runs_in_its_thread(producer: Producer) -> None:
    send_until_asleep(producer)
    names: list[str] = []
    is_over = threading.Event()

    def told(*_: object) -> None:
        names.append(threading.current_thread().name)
        is_over.set()

    producer.send("naps", b"called back", on_delivery=told)
    assert is_over.wait(_PATIENCE_SECONDS)
    assert names == ["ottla-producer"]


def test_a_listener_that_comes_late_wakes_the_loop(producer: Producer) -> None:
    send_until_asleep(producer)
    delivery = producer.send("naps", b"one")
    is_over = threading.Event()
    delivery.add_done_callback(lambda _: is_over.set())
    assert is_over.wait(_PATIENCE_SECONDS)


def test_callbacks_never_run_in_a_thread_that_sends(producer: Producer) -> None:
    """Even if it is that thread which finds the answers: it may hold a lock that a callback wants."""
    send_until_asleep(producer)
    producer._thread.is_unobserved = lambda: True
    told: list[tuple[int, str]] = []
    for number in range(20):
        delivery = producer.send(
            "naps", b"x", on_delivery=lambda *_, number=number: told.append((number, threading.current_thread().name))
        )
        send_until_done(producer, delivery)
        send_until_asleep(producer)
    producer.flush(_PATIENCE_SECONDS)
    assert told == [(number, "ottla-producer") for number in range(20)]


def test_an_answer_that_says_no_is_heard_by_who_sends_next(producer: Producer, broker: TestBroker) -> None:
    send_until_asleep(producer)
    broker.faults.error("PRODUCE", "NOT_LEADER_OR_FOLLOWER")
    delivery = producer.send("naps", b"again")
    send_until_done(producer, delivery)
    assert delivery.exception() is None
    producer.flush(_PATIENCE_SECONDS)
    values = [record.value for record in broker.records("naps")]
    assert values.count(b"again") == 1


def test_flush_wakes_the_loop(producer: Producer) -> None:
    send_until_asleep(producer)
    delivery = producer.send("naps", b"one")
    producer.flush(_PATIENCE_SECONDS)
    assert delivery.done()


def test_close_wakes_the_loop(broker: TestBroker, producer: Producer) -> None:
    send_until_asleep(producer)
    delivery = producer.send("naps", b"last")
    producer.close(_PATIENCE_SECONDS)
    assert delivery.exception() is None


def test_a_burst_wakes_the_loop(producer: Producer, broker: TestBroker) -> None:
    """With more on its way than single records, answers are the loop's: batches wait for them."""
    before = send_until_asleep(producer)
    burst = [producer.send("naps", b"burst %d" % number) for number in range(5000)]
    for delivery in burst:
        assert delivery.exception(_PATIENCE_SECONDS) is None
    values = [record.value for record in broker.records("naps")]
    assert values[len(before) :] == [b"burst %d" % number for number in range(5000)]


def test_a_broker_that_goes_while_the_loop_naps_is_noticed_by_who_sends_next(
    producer: Producer, broker: TestBroker
) -> None:
    send_until_asleep(producer)
    broker.faults.disconnect("PRODUCE", when="after")
    delivery = producer.send("naps", b"written, and nobody was told")
    send_until_done(producer, delivery)
    assert delivery.exception() is None
    producer.flush(_PATIENCE_SECONDS)
    values = [record.value for record in broker.records("naps")]
    assert values.count(b"written, and nobody was told") == 1


def test_who_waits_now_and_then_is_not_left_to_a_nap(
    broker: TestBroker, no_handlers: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To be woken twice for a record would take longer than once."""
    monkeypatch.setattr(naps, "NAP_SECONDS", 3600.0)
    with Producer(broker.bootstrap_servers, linger_ms=0) as producer:
        for _ in range(300):
            producer.send("naps", b"one").result(_PATIENCE_SECONDS)
            assert not is_asleep(producer)


def test_a_nap_ends_by_itself(broker: TestBroker, no_handlers: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(naps, "_QUIET_VISITS", 0)
    with Producer(broker.bootstrap_servers, linger_ms=0) as producer:
        send_until_asleep(producer)
        delivery = producer.send("naps", b"the last one")
        for _ in tries():
            if delivery.done():
                break
        assert delivery.done()
