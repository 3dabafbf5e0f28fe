"""A loop beside the user's code, and calls into it.

The loop has a thread of its own. A caller waits in a queue of errands: the first one that says "done" ends the wait,
and any before it is done right there. So what belongs into the user's thread, a listener for example, runs in it
although the loop asked for it. With `drives_here`, a caller that waits runs the loop in its own thread meanwhile (see
`wheel`). `visit` does a piece of the loop's work in the caller's thread while the loop has nothing to do (see
`lent_loop`).

Nobody waits for a loop that has ended: a call that was not done by then raises ClientClosed, wherever it was.
"""

import asyncio
import functools
import os
import queue
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from ottla.client.errors import ClientClosed, ForkedClient, OttlaError
from ottla.client.sync.lent_loop import LentLoop
from ottla.client.sync.wheel import Wheel

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Client = TypeVar("Client")

Work = Callable[..., Coroutine[Any, Any, Any]]

_ALARM_SECONDS = 1.0


class Watched(Protocol):
    """What can say that there may be something to find."""

    def watch(self, look_again: Callable[[], None], /) -> bool:
        """False where to wait is not enough."""

    def unwatch(self) -> None: ...


class LoopThread:
    """Started by its first use. It is a daemon: a program that ends without closing its clients still ends."""

    def __init__(self, name: str, *, drives_here: bool = False) -> None:
        self._name = name
        self.drives_here = drives_here
        # Set before the first use, where the loop may leave alone what comes for a moment (see `naps`).
        self.is_unobserved: Callable[[], bool] | None = None
        self._loop: LentLoop | None = None
        self._wheel: Wheel | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._process_id = os.getpid()
        self._is_closed = False
        # All that somebody waits for, and of these what the loop works on.
        self._calls: set[_Call] = set()
        self._waiting: list[_Call] = []
        self._errand_threads: list[int] = []
        self._alarm: asyncio.TimerHandle | None = None

    def run(self, work: Callable[Parameters, Coroutine[Any, Any, Result]], /, *args: Any, **options: Any) -> Result:
        """The result of `await work(...)` in the loop. A Ctrl-C cancels it, waits for that, and is raised."""
        loop = self._loop_to_call()
        wheel = self._wheel
        assert wheel is not None
        call = _Call(self, work, args, options)
        # Before the last look whether there is a loop: whoever ends it says so, and then looks here.
        self._calls.add(call)
        try:
            if self._is_closed:
                self.check()
            if self.drives_here and wheel.take():
                try:
                    _drive(wheel, loop, call)
                finally:
                    wheel.leave()
                _wait(loop, call)
            else:
                _wait(loop, call, begin=True)
        finally:
            self._calls.discard(call)
        result: Result = call.result()
        return result

    def look_out(self, watched: "Watched", look: Callable[[], Result | None], timeout: float | None) -> Result | None:
        """Run the loop here until `look` finds something. None comes too early, or too late by a moment: what else
        may be to be done, and who waits how long, is for `run` to see to. This is the short way, without a task."""
        loop = self._loop_to_call()
        wheel = self._wheel
        assert wheel is not None
        if (timeout is not None and timeout < _ALARM_SECONDS) or not self.drives_here or not wheel.take():
            return None
        try:
            found = look()
            if found is None and watched.watch(loop.stop):
                if self._alarm is None:
                    self._alarm = loop.call_later(_ALARM_SECONDS, self._ring, loop)
                try:
                    wheel.drive(loop.stop)
                finally:
                    watched.unwatch()
                found = look()
            return found
        finally:
            wheel.leave()

    def _ring(self, loop: LentLoop) -> None:
        """One alarm a second for whoever looks out: to set one for each record would cost more than the look."""
        self._alarm = None
        loop.stop()

    def tell(self, work: Callable[..., object], /, *args: object) -> None:
        """Have a plain function called in the loop, some time soon."""
        if not _tell(self._loop_to_call(), work, *args):
            raise ClientClosed(f"the {self._name} was closed: make a new one")

    def visit(self, work: Callable[[], None]) -> bool:
        """Do it here, as if in the loop, unless that is busy; whether it was done."""
        loop = self._loop
        return loop is not None and self._process_id == os.getpid() and loop.visit(work)

    def catch_up(self) -> None:
        """In a visit: do what the loop has left for later."""
        loop = self._loop
        if loop is not None:
            loop.catch_up()

    def rouse(self) -> None:
        """From any thread: leave nothing for later any more, somebody waits for it."""
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # It is closed already.
                loop.rouse()

    def _may_nap(self) -> bool:
        return not self._calls and self.is_unobserved is not None and self.is_unobserved()

    def check(self) -> None:
        """Raise what makes a client unusable."""
        if self._process_id != os.getpid():
            raise ForkedClient(f"this {self._name} was made in the parent of this process: make one here")
        if self._is_closed:
            raise ClientClosed(f"the {self._name} was closed: make a new one")

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    @property
    def is_on_errand(self) -> bool:
        """Whether this thread waits for the loop, and does something for it meanwhile."""
        return threading.get_ident() in self._errand_threads

    def _loop_to_call(self) -> LentLoop:
        self.check()
        loop = self._loop
        if loop is None:
            loop = self._start()
        if asyncio._get_running_loop() is loop:
            raise OttlaError(
                f"a callback must not wait for the {self._name} that calls it: the answer comes in this very thread"
            )
        return loop

    def _start(self) -> LentLoop:
        with self._lock:
            if self._loop is None:
                loop = LentLoop(None if self.is_unobserved is None else self._may_nap)
                self._wheel = Wheel(loop)
                self._thread = threading.Thread(
                    target=self._wheel.keep, args=(self._abandon_calls,), name=f"ottla-{self._name}", daemon=True
                )
                self._thread.start()
                self._loop = loop
            return self._loop

    def close(self) -> None:
        """End the thread; what still runs in the loop is cancelled. May be called twice, and in a child of a fork."""
        with self._lock:
            loop, self._loop = self._loop, None
            is_ours = self._process_id == os.getpid()
            self._is_closed = True
        if loop is not None and is_ours:
            assert self._wheel is not None
            assert self._thread is not None
            self._wheel.end()
            if self._thread is not threading.current_thread() and not self._wheel.is_mine:
                self._thread.join()

    def _abandon_calls(self) -> None:
        self._is_closed = True
        for call in list(self._calls):
            call.abandon()

    async def errand(self, work: Callable[..., Any], /, *args: object) -> Any:
        """In the loop: have `work(*args)` done by whoever waits for the loop, in its thread."""
        if not self._waiting:
            return work(*args)
        done = asyncio.get_running_loop().create_future()
        self._waiting[-1].give(functools.partial(self._do_errand, asyncio.get_running_loop(), done, work, args))
        return await done

    def _do_errand(
        self,
        loop: asyncio.AbstractEventLoop,
        done: "asyncio.Future[Any]",
        work: Callable[..., Any],
        args: tuple[object, ...],
    ) -> None:
        """In the thread of the caller. A Ctrl-C goes both ways: to the loop, which gives up, and to the caller."""
        self._errand_threads.append(threading.get_ident())
        try:
            result = work(*args)
        except Exception as error:
            _tell(loop, _settle, done, None, error)
        except BaseException:
            _tell(loop, done.cancel)
            raise
        else:
            _tell(loop, _settle, done, result, None)
        finally:
            self._errand_threads.remove(threading.get_ident())

    def entered(self, call: "_Call") -> None:
        self._waiting.append(call)

    def left(self, call: "_Call") -> None:
        self._waiting.remove(call)


class _Call:
    """One call into the loop, from its start to its result."""

    __slots__ = (
        "_args",
        "_errands",
        "_error",
        "_has_begun",
        "_options",
        "_owner",
        "_result",
        "_task",
        "_work",
        "is_done",
        "stop",
    )

    def __init__(self, owner: LoopThread, work: Work, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        self._owner = owner
        self._work = work
        self._args = args
        self._options = options
        self._task: asyncio.Task[Any] | None = None
        # A task that is cancelled before its first step never comes to its `finally`.
        self._has_begun = False
        self._result: Any = None
        self._error: BaseException | None = None
        self.is_done = False
        # Stops the loop, where the caller runs it: there is an errand for it.
        self.stop: Callable[[], None] | None = None
        self._errands: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

    # In the loop.

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.is_done:
            return
        if self._owner.is_closed:
            self.abandon()
            return
        self._task = loop.create_task(self._run())

    def give(self, errand: Callable[[], None] | None) -> None:
        self._errands.put(errand)
        if self.stop is not None:
            self.stop()

    async def _run(self) -> None:
        self._has_begun = True
        self._owner.entered(self)
        try:
            self._result = await self._work(*self._args, **self._options)
        except BaseException as error:
            self._error = error
        finally:
            self._owner.left(self)
            self.is_done = True
            self.give(None)

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
        if not self._has_begun:
            self.abandon()

    def abandon(self) -> None:
        """In the loop, or when there is none any more: it will not be done."""
        if not self.is_done:
            self._error = asyncio.CancelledError()
            self.is_done = True
            self.give(None)

    # In the thread of the caller.

    def wait(self) -> None:
        """Do errands until the work is done."""
        while (errand := self._errands.get()) is not None:
            errand()

    def do_errands(self) -> None:
        """Those that are there now; the last one, that the work is done, is left to `wait`."""
        while not self._errands.empty() and not self.is_done:
            errand = self._errands.get()
            assert errand is not None, "the last errand is given when all is done"
            errand()

    def result(self) -> Any:
        error = self._error
        if error is None:
            return self._result
        if isinstance(error, asyncio.CancelledError | GeneratorExit):
            raise ClientClosed("the client was closed while it worked on this")
        try:
            raise error
        finally:
            # The frame holds the exception, and the exception the frame.
            self._error = error = None


def _settle(done: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(result)
    else:
        done.set_exception(error)


def _tell(loop: asyncio.AbstractEventLoop, work: Callable[..., object], *args: object) -> bool:
    """Have it called in the loop; False where that is closed."""
    try:
        loop.call_soon_threadsafe(work, *args)
    except RuntimeError:
        if not loop.is_closed():
            raise
        return False
    return True


def _drive(wheel: Wheel, loop: asyncio.AbstractEventLoop, call: _Call) -> None:
    """Run the loop in this thread until the call is done, or the client is closed."""
    call.stop = loop.stop
    call.begin(loop)
    try:
        while not call.is_done and not wheel.is_ended:
            wheel.drive(call.cancel)
            call.do_errands()
    except (KeyboardInterrupt, SystemExit):
        call.cancel()
        while not call.is_done and not wheel.is_ended:
            wheel.drive(call.cancel)
            call.do_errands()
        raise
    finally:
        call.stop = None


def _wait(loop: asyncio.AbstractEventLoop, call: _Call, *, begin: bool = False) -> None:
    """Until the call is done, whoever runs the loop. A Ctrl-C may come as soon as the call can have begun."""
    try:
        if begin and not _tell(loop, call.begin, loop):
            call.abandon()
        call.wait()
    except (KeyboardInterrupt, SystemExit):
        if not call.is_done:
            if not _tell(loop, call.cancel):
                call.abandon()
            call.wait()
        raise


class Face(Protocol[Client]):
    """A sync client: the async one, and the thread in which it lives."""

    _thread: LoopThread
    _client: Client


def blocking(
    method: Callable[Concatenate[Client, Parameters], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate[Any, Parameters], Result]:
    """A method of the async client as one that waits for its result."""

    @functools.wraps(method)
    def call(self: Face[Client], /, *args: Parameters.args, **options: Parameters.kwargs) -> Result:
        return self._thread.run(method, self._client, *args, **options)

    return call


def in_loop(
    method: Callable[Concatenate[Client, Parameters], Result],
) -> Callable[Concatenate[Any, Parameters], Result]:
    """A plain method of the async client, called where that lives."""

    @functools.wraps(method)
    def call(self: Face[Client], /, *args: Parameters.args, **options: Parameters.kwargs) -> Result:
        async def work() -> Result:
            return method(self._client, *args, **options)

        return self._thread.run(work)

    return call
