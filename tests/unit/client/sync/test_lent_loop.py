"""A loop whose work other threads may do while it waits for events."""

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from ottla import Producer
from ottla.client.errors import OttlaError
from ottla.client.sync.lent_loop import LentLoop
from ottla.client.sync.loop_thread import LoopThread
from ottla.testing import TestBroker

_PATIENCE_SECONDS = 60.0


@pytest.fixture
def thread(no_handlers: None) -> Iterator[LoopThread]:
    thread = LoopThread("producer")
    thread.run(asyncio.sleep, 0)
    yield thread
    thread.close()


def visit(thread: LoopThread, work: Callable[[], None]) -> None:
    """The loop is idle in a moment, if not now."""
    for _ in range(100_000):
        if thread.visit(work):
            return
    raise AssertionError("the loop was never idle")


def test_an_idle_loop_is_visited_by_the_calling_thread(thread: LoopThread) -> None:
    seen: list[tuple[str, asyncio.AbstractEventLoop]] = []
    visit(thread, lambda: seen.append((threading.current_thread().name, asyncio.get_running_loop())))
    [(name, loop)] = seen
    assert name == threading.current_thread().name

    async def running() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    assert thread.run(running) is loop
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()


def test_what_a_visitor_schedules_happens_in_the_loops_thread(thread: LoopThread) -> None:
    names: list[str] = []
    is_done = threading.Event()

    async def work() -> None:
        names.append(threading.current_thread().name)
        is_done.set()

    def schedule() -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(names.append, "soon")
        loop.call_later(0.01, lambda: loop.create_task(work()))

    visit(thread, schedule)
    assert is_done.wait(_PATIENCE_SECONDS)
    assert names == ["soon", "ottla-producer"]


def test_a_busy_loop_is_not_visited(thread: LoopThread) -> None:
    is_busy, may_go_on = threading.Event(), threading.Event()

    async def work() -> None:
        is_busy.set()
        may_go_on.wait(_PATIENCE_SECONDS)

    caller = threading.Thread(target=thread.run, args=(work,))
    caller.start()
    assert is_busy.wait(_PATIENCE_SECONDS)
    try:
        assert not thread.visit(lambda: pytest.fail("it was not alone"))
    finally:
        may_go_on.set()
        caller.join()


def test_a_visit_within_a_visit_is_refused(thread: LoopThread) -> None:
    answers: list[bool] = []
    visit(thread, lambda: answers.append(thread.visit(lambda: None)))
    assert answers == [False]


def test_what_a_visitor_raises_is_told_and_harms_nobody(thread: LoopThread, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise ValueError("no good")

    visit(thread, fail)
    assert "no good" in caplog.text
    assert thread.run(asyncio.sleep, 0, "still there") == "still there"


def test_an_interrupt_waits_for_the_end_of_a_visit(thread: LoopThread) -> None:
    ended: list[str] = []

    def work() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        ended.extend(str(number) for number in range(100))

    with pytest.raises(KeyboardInterrupt):
        visit(thread, work)
    assert len(ended) == 100


def test_nobody_visits_a_thread_that_a_signal_may_interrupt(thread: LoopThread) -> None:
    signal.signal(signal.SIGUSR1, lambda *_: None)
    assert not thread.visit(lambda: None)


def test_a_closed_loop_has_no_visitors(no_handlers: None) -> None:
    thread = LoopThread("producer")
    thread.run(asyncio.sleep, 0)
    thread.close()
    assert not thread.visit(lambda: None)


def test_turns_of_the_loop_keep_the_order_of_what_was_asked_for(thread: LoopThread) -> None:
    """Sockets, timers, what other threads ask for and what callbacks ask for, all at the same time."""
    here, there = socket.socketpair()
    here.setblocking(False)
    seen: list[str] = []

    async def work() -> list[str]:
        loop = asyncio.get_running_loop()
        is_over = loop.create_future()

        def readable() -> None:
            seen.append(here.recv(10).decode())
            loop.call_soon(seen.append, "asked for by the socket's callback")
            loop.call_later(0.001, is_over.set_result, None)

        def on_time() -> None:
            seen.append("timer")
            there.send(b"bytes")

        loop.add_reader(here, readable)
        loop.call_later(0.001, on_time)
        threading.Thread(target=loop.call_soon_threadsafe, args=(seen.append, "thread")).start()
        await is_over
        loop.remove_reader(here)
        return seen

    with here, there:
        came = thread.run(work)
    assert sorted(came[:2]) == ["thread", "timer"]
    assert came[2:] == ["bytes", "asked for by the socket's callback"]


def test_timers_that_were_cancelled_are_forgotten(thread: LoopThread) -> None:
    """Also where nothing but sockets keeps the loop busy."""
    here, there = socket.socketpair()
    here.setblocking(False)
    rounds = 2000
    kept: list[int] = []
    is_over = threading.Event()

    async def add() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, LentLoop)
        loop.call_later(1000, is_over.clear)

        def readable() -> None:
            here.recv(1)
            loop.call_later(2000, is_over.clear).cancel()
            kept.append(len(loop._scheduled))
            if len(kept) < rounds:
                there.send(b"x")
            else:
                loop.remove_reader(here)
                is_over.set()

        loop.add_reader(here, readable)
        there.send(b"x")

    with here, there:
        thread.run(add)
        assert is_over.wait(_PATIENCE_SECONDS)
    assert len(kept) == rounds
    assert max(kept) < rounds / 4


def test_a_failure_of_a_sockets_callback_is_told_and_harms_nobody(
    thread: LoopThread, caplog: pytest.LogCaptureFixture
) -> None:
    here, there = socket.socketpair()
    is_over = threading.Event()

    def readable() -> None:
        here.recv(10)
        is_over.set()
        raise ValueError("no good")

    async def add() -> None:
        asyncio.get_running_loop().add_reader(here, readable)

    async def remove() -> None:
        asyncio.get_running_loop().remove_reader(here)

    with here, there:
        thread.run(add)
        there.send(b"bytes")
        assert is_over.wait(_PATIENCE_SECONDS)
        thread.run(remove)
    assert "no good" in caplog.text


def test_many_threads_send_at_once_and_nothing_is_lost_doubled_or_out_of_order(no_handlers: None) -> None:
    """Without lingering a record goes in its sender's own thread whenever the loop is idle, and by the loop else."""
    count = 400
    delivered: list[tuple[int, int]] = []

    def send(producer: Producer, partition: int) -> None:
        for number in range(count):
            delivery = producer.send("visited", b"%d" % number, partition=partition)
            if number % 10 == 0:
                delivered.append((partition, delivery.result(_PATIENCE_SECONDS).offset))

    with TestBroker() as broker:
        broker.create_topic("visited", partitions=4)
        with Producer(broker.bootstrap_servers, linger_ms=0) as producer:
            senders = [threading.Thread(target=send, args=(producer, partition)) for partition in range(4)]
            for sender in senders:
                sender.start()
            for sender in senders:
                sender.join()
        stored = [[record.value for record in broker.records("visited", partition)] for partition in range(4)]
    assert sorted(delivered) == [(partition, offset) for partition in range(4) for offset in range(0, count, 10)]
    assert stored == [[b"%d" % number for number in range(count)]] * 4


def test_a_callback_may_send_but_not_wait(no_handlers: None) -> None:
    failures: list[str] = []
    is_over = threading.Event()
    with TestBroker() as broker, Producer(broker.bootstrap_servers, linger_ms=0) as producer:

        def again(metadata: object, error: object) -> None:
            producer.send("called-back", b"from the callback", on_delivery=lambda *_: is_over.set())
            try:
                producer.flush()
            except OttlaError as caught:
                failures.append(str(caught))

        producer.send("called-back", b"first", on_delivery=again)
        assert is_over.wait(_PATIENCE_SECONDS)
    assert len(failures) == 1
    assert "must not wait" in failures[0]
