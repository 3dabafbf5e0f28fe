"""A workbench in a process of its own, so that long work shares no interpreter with the loop.

A thread would share its lock. A thread of low priority that was put aside while it holds that lock keeps the loop
waiting, however short it holds it, and on a busy machine that is the whole of the latency.

The process is started when there is something to do and ended when there is not. It lives no longer than this one: it
ends when the pipe to it is closed, also in the middle of its work. Requests and answers are pickles; both sides are the
same code, which is checked when it starts.
"""

import asyncio
import json
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, TypeAlias, TypeVar

from ottla.runtime.workbench import WorkbenchLost
from ottla.version import __version__

Result = TypeVar("Result")

# It steps back before it imports anything: to start is half of its work when there is little to do. A thread that went
# into the background cannot come back, so one is left outside: it takes over where the other would starve.
_COMMAND = """\
import _thread, json, os, sys
niceness, in_background = int(sys.argv[3]), int(sys.argv[4])
wanted, work = _thread.allocate_lock(), []
if niceness:
    os.nice(niceness)
if in_background:
    wanted.acquire()
    _thread.start_new_thread(lambda: wanted.acquire() and work[0](), ())
    try:
        open("/proc/thread-self/schedstat").close()
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    except (AttributeError, OSError):
        in_background = 0
sys.path[:] = json.loads(sys.argv[1])
from ottla.runtime.helper import serve
serve(sys.argv[2], (lambda serving: (work.append(serving), wanted.release())) if in_background else None)
"""
_HAS_ENDED = 0
_READY = b"."
_STARTING_SECONDS = 3.0
# Work starves that waited for a processor so much longer than it had one.
_STARVED_NS = 1_000_000_000
_STARVED_RATIO = 10

_Request: TypeAlias = tuple[Callable[..., object], Callable[..., object], tuple[object, ...]]


class HelperWorkbench:
    """See the module. One that is nice works only while a processor has nothing else to do, and so never keeps another
    process waiting when that wakes up; where it would starve in this way, it takes the small share of its niceness."""

    def __init__(self, niceness: int = 0) -> None:
        self._niceness = niceness
        # It only waits for the pipe.
        self._thread = ThreadPoolExecutor(1, "ottla-helper")
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closed = False

    async def begin(self, make: Callable[..., object], /, *args: object) -> None:
        await self._run(_begin, make, args)

    async def call(self, work: Callable[..., Result], /, *args: object) -> Result:
        result: Result = await self._run(_call, work, args)
        return result

    async def clear(self) -> None:
        if self._process is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._end)

    def shutdown(self) -> None:
        """End the process, whatever it does."""
        self._is_closed = True
        process = self._process
        if process is not None:
            process.kill()
        self._thread.submit(self._end)
        self._thread.shutdown(wait=True)

    # In the thread.

    async def _run(self, step: Callable[..., object], work: Callable[..., object], args: tuple[object, ...]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._ask, (step, work, args))

    def _ask(self, request: object) -> Any:
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(pickle.dumps(request))
            process.stdin.flush()
            is_result, answer = pickle.load(process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError):
            self._end()
            raise WorkbenchLost(
                f"the process {process.pid} ended with {process.returncode} in the middle of work"
            ) from None
        if is_result:
            return answer
        raise answer

    def _start(self) -> subprocess.Popen[bytes]:
        process = self._launch(in_background=bool(self._niceness))
        assert process.stdout is not None
        if self._niceness and not select.select([process.stdout], [], [], _STARTING_SECONDS)[0]:
            # It starves before it has begun.
            self._end()
            process = self._launch(in_background=False)
        assert process.stdout is not None
        process.stdout.read(len(_READY))
        return process

    def _launch(self, *, in_background: bool) -> subprocess.Popen[bytes]:
        if self._is_closed:
            raise WorkbenchLost("the workbench is closed")
        path = [entry or os.getcwd() for entry in sys.path]
        arguments = [json.dumps(path), __version__, str(self._niceness), str(int(in_background))]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _COMMAND, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                try:
                    pipe.close()
                except OSError:
                    continue
            process.wait()


# In the process.


def serve(version: str, hand_over: Callable[[Callable[[], None]], object] | None) -> None:
    """Do what is asked for, until nobody is there to ask. `hand_over` has somebody else go on; None where this thread
    is in nobody's way."""
    if version != __version__:
        sys.exit(f"Ottla {version} is running and {__version__} is installed: restart it to have logs compacted")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_watch, args=(sys.stdin.fileno(),), daemon=True).start()
    # What prints something must not print into the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    answers.write(_READY)
    answers.flush()
    bench = _Bench()
    if hand_over is None:
        _serve_on(bench, sys.stdin.buffer, answers)
    else:
        _serve_until_starving(bench, sys.stdin.buffer, answers)
        hand_over(lambda: _serve_on(bench, sys.stdin.buffer, answers))
        threading.Event().wait()


def _serve_on(bench: "_Bench", requests: BinaryIO, answers: BinaryIO) -> None:
    while True:
        _serve_one(bench, requests, answers)


def _serve_until_starving(bench: "_Bench", requests: BinaryIO, answers: BinaryIO) -> None:
    ran_before = waited_before = 0
    while True:
        _serve_one(bench, requests, answers)
        with open("/proc/thread-self/schedstat") as file:
            ran, waited, _ = map(int, file.read().split())
        if waited - waited_before > max(_STARVED_NS, _STARVED_RATIO * (ran - ran_before)):
            return
        ran_before, waited_before = ran, waited


def _serve_one(bench: "_Bench", requests: BinaryIO, answers: BinaryIO) -> None:
    try:
        request = pickle.load(requests)
    except EOFError:
        os._exit(_HAS_ENDED)
    answers.write(_answer(bench, request))
    answers.flush()


def _watch(requests: int) -> None:
    """Notice at once when the pipe is closed, also in the middle of work."""
    poll = select.poll()
    poll.register(requests, 0)
    poll.poll()
    os._exit(_HAS_ENDED)


class _Bench:
    def __init__(self) -> None:
        from ottla.runtime.real_disk import RealDisk

        self.disk = RealDisk()
        self.subject: object = None


def _begin(bench: _Bench, make: Callable[..., object], args: tuple[object, ...]) -> None:
    bench.subject = None
    bench.subject = make(bench.disk, *args)


def _call(bench: _Bench, work: Callable[..., object], args: tuple[object, ...]) -> object:
    return work(bench.subject, *args)


def _answer(bench: _Bench, request: _Request) -> bytes:
    step, work, args = request
    try:
        return pickle.dumps((True, step(bench, work, args)))
    except Exception as error:
        try:
            pickled = pickle.dumps((False, error))
            pickle.loads(pickled)
        except Exception:
            pickled = pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
        return pickled
