"""Calls from other threads into the loop of a client."""

import asyncio
import gc
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable

import pytest

from ottla import Admin
from ottla.client.errors import BrokerUnavailable, ClientClosed, ForkedClient, OttlaError
from ottla.client.sync.life import closes
from ottla.client.sync.loop_thread import LoopThread


async def thread_name() -> str:
    return threading.current_thread().name


def loop_threads_name(thread: LoopThread) -> str:
    """Where the loop runs while this thread waits for it."""
    return threading.current_thread().name if thread.drives_here else "ottla-producer"


def test_work_runs_in_the_loops_thread_and_its_result_comes_back(thread: LoopThread) -> None:
    async def add(first: int, *, second: int) -> int:
        await asyncio.sleep(0)
        return first + second

    assert thread.run(add, 1, second=2) == 3
    assert thread.run(thread_name) == loop_threads_name(thread)
    assert threading.current_thread().name != "ottla-producer"
    thread.close()


def test_errors_come_back_and_the_thread_goes_on(thread: LoopThread) -> None:
    async def fail() -> None:
        raise OttlaError("no")

    for _ in range(2):
        with pytest.raises(OttlaError, match="no"):
            thread.run(fail)
    assert thread.run(thread_name) == loop_threads_name(thread)
    thread.close()


def test_a_closed_one_refuses_and_work_at_hand_is_cancelled(thread: LoopThread) -> None:
    started = threading.Event()

    async def wait_for_ever() -> None:
        started.set()
        await asyncio.Event().wait()

    failures: list[BaseException] = []

    def call() -> None:
        try:
            thread.run(wait_for_ever)
        except ClientClosed as error:
            failures.append(error)

    caller = threading.Thread(target=call)
    caller.start()
    started.wait()
    thread.close()
    caller.join()
    assert len(failures) == 1
    with pytest.raises(ClientClosed, match="make a new one"):
        thread.run(thread_name)
    thread.close()


def test_an_errand_is_done_by_whoever_waits(thread: LoopThread) -> None:
    async def ask() -> tuple[str, str]:
        there = await thread.errand(lambda word: f"{word} {threading.current_thread().name}", "in")
        with pytest.raises(ZeroDivisionError):
            await thread.errand(divmod, 1, 0)
        return there, threading.current_thread().name

    assert thread.run(ask) == (f"in {threading.current_thread().name}", loop_threads_name(thread))
    thread.close()


def test_a_callback_that_waits_for_its_own_loop_is_told_so(thread: LoopThread) -> None:
    async def call_back() -> None:
        thread.run(thread_name)

    with pytest.raises(OttlaError, match="this very thread"):
        thread.run(call_back)
    thread.close()


def test_ctrl_c_cancels_the_work_and_is_raised(thread: LoopThread) -> None:
    cleaned: list[str] = []

    async def wait_for_ever() -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append("up")

    with pytest.raises(KeyboardInterrupt):
        thread.run(wait_for_ever)
    assert cleaned == ["up"]
    assert thread.run(thread_name) == loop_threads_name(thread)
    thread.close()


def test_a_child_of_a_fork_is_refused_and_may_close(thread: LoopThread) -> None:
    thread.run(thread_name)
    ours, theirs = multiprocessing.Pipe()

    def child() -> None:
        try:
            thread.run(thread_name)
        except ForkedClient as error:
            theirs.send(str(error))
        thread.close()

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    assert "parent of this process" in ours.recv()
    process.join()
    assert process.exitcode == 0
    assert thread.run(thread_name) == loop_threads_name(thread)
    thread.close()


def test_the_thread_ends_with_a_client_that_was_forgotten() -> None:
    class Owner:
        def __init__(self) -> None:
            self.thread = LoopThread("forgotten")
            closes(self.thread, self)

    owner = Owner()
    owner.thread.run(thread_name)
    [serving] = [each for each in threading.enumerate() if each.name == "ottla-forgotten"]
    del owner
    gc.collect()
    serving.join(60)
    assert not serving.is_alive()


def test_a_client_that_cannot_be_started_leaves_no_thread_behind(no_handlers: None) -> None:
    before = threading.active_count()
    with pytest.raises(BrokerUnavailable):
        Admin("127.0.0.1:1", default_api_timeout_ms=100)
    assert threading.active_count() == before


def test_many_threads_call_at_once(thread: LoopThread) -> None:
    async def twice(number: int) -> int:
        await asyncio.sleep(0)
        return number * 2

    results: list[int] = []
    callers = [threading.Thread(target=lambda n=n: results.append(thread.run(twice, n))) for n in range(20)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert sorted(results) == [number * 2 for number in range(20)]
    thread.close()


def test_an_errand_may_call_into_the_loop(thread: LoopThread) -> None:
    async def ask() -> str:
        found: str = await thread.errand(thread.run, thread_name)
        return found

    assert thread.run(ask) == loop_threads_name(thread)
    thread.close()


def test_ctrl_c_in_an_errand_cancels_the_work_and_is_raised(thread: LoopThread) -> None:
    cleaned: list[str] = []

    async def ask() -> None:
        try:
            await thread.errand(os.kill, os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()
        finally:
            cleaned.append("up")

    with pytest.raises(KeyboardInterrupt):
        thread.run(ask)
    assert cleaned == ["up"]
    thread.close()


def test_the_loop_goes_on_while_nobody_waits(thread: LoopThread) -> None:
    rung = threading.Event()

    async def set_alarm() -> None:
        asyncio.get_running_loop().call_later(0.01, rung.set)

    thread.run(set_alarm)
    assert rung.wait(60)
    thread.run(set_alarm)
    assert rung.wait(60)
    thread.close()


def test_one_caller_waits_for_long_while_others_call(thread: LoopThread) -> None:
    gate: list[asyncio.Event] = []
    is_waiting = threading.Event()

    async def wait() -> str:
        gate.append(asyncio.Event())
        is_waiting.set()
        await gate[0].wait()
        return "through"

    async def open_gate() -> None:
        gate[0].set()

    results: list[str] = []
    caller = threading.Thread(target=lambda: results.append(thread.run(wait)))
    caller.start()
    is_waiting.wait(60)
    assert thread.run(thread_name) in ("ottla-producer", caller.name)
    thread.run(open_gate)
    caller.join(60)
    assert results == ["through"]
    thread.close()


@pytest.mark.parametrize("pause_seconds", [0.0, 0.002, 0.02])
def test_callers_and_the_keeper_take_turns(pause_seconds: float) -> None:
    thread = LoopThread("consumer", drives_here=True)
    count = 0

    async def tick() -> int:
        nonlocal count
        await asyncio.sleep(0)
        count += 1
        return count

    def call() -> None:
        for _ in range(50):
            thread.run(tick)
            if pause_seconds:
                time.sleep(pause_seconds)

    callers = [threading.Thread(target=call) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
    assert count == 150
    thread.close()


def test_a_handler_of_the_users_may_call_the_client(no_handlers: None) -> None:
    """Python runs handlers of signals in the main thread, between any two steps: there the loop must not be."""
    thread = LoopThread("consumer", drives_here=True)
    came: list[str] = []
    seen: list[Callable[[], object]] = []

    async def wait_for_signal() -> None:
        is_seen = asyncio.Event()
        seen.append(lambda: asyncio.get_running_loop().call_soon(is_seen.set))
        os.kill(os.getpid(), signal.SIGUSR1)
        await is_seen.wait()

    async def note() -> str:
        seen[0]()
        return await thread_name()

    before = signal.signal(signal.SIGUSR1, lambda *_: came.append(thread.run(note)))
    try:
        thread.run(wait_for_signal)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert came == ["ottla-consumer"]
    thread.close()


def test_a_thread_with_a_loop_of_its_own_does_not_run_another_inside(no_handlers: None) -> None:
    thread = LoopThread("consumer", drives_here=True)

    async def main() -> str:
        return thread.run(thread_name)

    assert asyncio.run(main()) == "ottla-consumer"
    thread.close()
