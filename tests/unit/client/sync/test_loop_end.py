"""A loop that ends, by being closed or in another way, leaves nobody waiting."""

import asyncio
import threading
from typing import Any

import pytest
from tests.waiting import tries

from ottla.client.errors import ClientClosed
from ottla.client.sync.loop_thread import LoopThread, _Call


async def thread_name() -> str:
    return threading.current_thread().name


class Hesitant(LoopThread):
    """One whose callers are held up between the look whether it is open and the call."""

    def __init__(self, *, drives_here: bool) -> None:
        super().__init__("producer", drives_here=drives_here)
        self.has_looked = threading.Event()
        self.may_call = threading.Event()
        self.hesitates = False

    def _loop_to_call(self) -> Any:
        loop = super()._loop_to_call()
        if self.hesitates:
            self.has_looked.set()
            assert self.may_call.wait(60)
        return loop

    def run_late(self) -> tuple[threading.Thread, list[BaseException]]:
        """A caller that got as far as that, and what it will be told."""
        self.hesitates = True
        told: list[BaseException] = []

        def call() -> None:
            try:
                self.run(asyncio.sleep, 3600)
            except BaseException as error:
                told.append(error)

        caller = threading.Thread(target=call, daemon=True)
        caller.start()
        assert self.has_looked.wait(60)
        return caller, told


@pytest.mark.parametrize("drives_here", [False, True])
def test_a_call_that_comes_when_the_loop_is_closed_is_told(drives_here: bool) -> None:
    thread = Hesitant(drives_here=drives_here)
    thread.run(thread_name)
    caller, told = thread.run_late()
    thread.close()
    thread.may_call.set()
    caller.join(60)
    assert [type(error) for error in told] == [ClientClosed]


@pytest.mark.parametrize("drives_here", [False, True])
def test_a_call_that_comes_while_the_loop_is_closed_is_told(drives_here: bool) -> None:
    thread = Hesitant(drives_here=drives_here)
    left: list[asyncio.Task[None]] = []

    async def end_slowly() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            thread.may_call.set()
            for _ in tries(2, pause_seconds=0):
                if not caller.is_alive():
                    break
                await asyncio.sleep(0.001)

    async def leave_something() -> None:
        left.append(asyncio.get_running_loop().create_task(end_slowly()))
        await asyncio.sleep(0)

    thread.run(leave_something)
    caller, told = thread.run_late()
    thread.close()
    caller.join(60)
    assert [type(error) for error in told] == [ClientClosed]


def test_a_call_that_is_cancelled_before_its_first_step_ends() -> None:
    loop = asyncio.new_event_loop()
    call = _Call(LoopThread("producer"), asyncio.sleep, (3600,), {})
    loop.call_soon(call.begin, loop)
    loop.call_soon(call.cancel)
    loop.run_until_complete(asyncio.sleep(0))
    assert call.is_done
    call.wait()
    with pytest.raises(ClientClosed):
        call.result()
    loop.close()


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_a_callback_that_wants_to_end_the_program_does_not_end_the_loop(
    thread: LoopThread, error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    def leave() -> None:
        raise error

    thread.run(thread_name)
    thread.tell(leave)
    for _ in tries():
        if "a callback cannot end the program" in caplog.text:
            break
    assert thread.run(thread_name)
    thread.close()


def test_a_loop_that_breaks_leaves_nobody_waiting() -> None:
    thread = LoopThread("producer")
    broken: list[BaseException] = []

    async def break_loop() -> None:
        selector = asyncio.get_running_loop()._selector  # type: ignore[attr-defined]

        def fail(timeout: float | None) -> None:
            del selector.select
            raise OSError("a fault of the test")

        selector.select = fail
        await asyncio.Event().wait()

    before = threading.excepthook
    threading.excepthook = lambda came: broken.append(came.exc_value)  # type: ignore[arg-type]
    try:
        with pytest.raises(ClientClosed):
            thread.run(break_loop)
        with pytest.raises(ClientClosed):
            thread.run(thread_name)
        thread.close()
    finally:
        threading.excepthook = before
    assert [str(error) for error in broken] == ["a fault of the test"]


def test_what_an_errand_gives_to_a_loop_that_is_closed_meanwhile_harms_nobody() -> None:
    thread = LoopThread("producer")
    begun, is_closed = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        assert is_closed.wait(60)

    told: list[BaseException] = []

    def call() -> None:
        try:
            thread.run(thread.errand, work)
        except BaseException as error:
            told.append(error)

    caller = threading.Thread(target=call, daemon=True)
    caller.start()
    assert begun.wait(60)
    thread.close()
    is_closed.set()
    caller.join(60)
    assert [type(error) for error in told] == [ClientClosed]


def test_the_end_takes_its_time_though_somebody_stops_the_loop_again(thread: LoopThread) -> None:
    cleaned: list[str] = []
    left: list[asyncio.Task[None]] = []

    async def clean_up_slowly() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            asyncio.get_running_loop().stop()
            for _ in range(3):
                await asyncio.sleep(0)
            cleaned.append("up")

    async def leave_something() -> None:
        left.append(asyncio.get_running_loop().create_task(clean_up_slowly()))
        await asyncio.sleep(0)

    thread.run(leave_something)
    thread.close()
    assert cleaned == ["up"]
