"""A workbench in another process: what it does, what it passes on, and that it never outlives who asked."""

import asyncio
import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from ottla.records.errors import CorruptRecord, DecompressedTooLarge
from ottla.runtime import Disk, Workbench, WorkbenchLost
from ottla.runtime.helper import HelperWorkbench
from ottla.runtime.real import ThreadExecutor
from ottla.runtime.real_disk import RealDisk
from ottla.runtime.workbench import LocalWorkbench


class Counter:
    def __init__(self, disk: Disk, start: int) -> None:
        self.disk = disk
        self.value = start

    def add(self, number: int) -> int:
        self.value += number
        return self.value

    def process(self) -> tuple[int, int]:
        sys.stdout.write("something that must not get into the answers\n")
        return os.getpid(), os.getpriority(os.PRIO_PROCESS, 0)

    def policy(self) -> int:
        return os.sched_getscheduler(0)

    def is_back(self) -> bool:
        """Whether it is in the background, or was and starved there, which a busy machine may do to it at any time."""
        return os.sched_getscheduler(0) == os.SCHED_IDLE or _waited_seconds(f"self/task/{os.getpid()}") > 1

    def starve(self, cpu: int) -> bool:
        """Compute on a processor that is never free, until that took long; whether it did."""
        os.sched_setaffinity(0, {cpu})
        give_up = time.monotonic() + 60
        waited = _waited_seconds()
        while _waited_seconds() - waited < 1.5 and time.monotonic() < give_up:
            pass
        return time.monotonic() < give_up

    def read(self, path: str) -> bytes:
        return self.disk.read(path)

    def fail(self, kind: str) -> None:
        errors: dict[str, Exception] = {
            "corrupt": CorruptRecord("bad bytes"),
            "large": DecompressedTooLarge("zstd", 100),
            "local": _UnsendableError(lambda: None),
        }
        raise errors[kind]

    def wait_for_ever(self) -> None:
        signal.pause()


class _UnsendableError(Exception):
    pass


def _waited_seconds(thread: str = "thread-self") -> float:
    return int(Path(f"/proc/{thread}/schedstat").read_text().split()[1]) / 1e9


@pytest.fixture
def helper(monkeypatch: pytest.MonkeyPatch) -> Iterator[HelperWorkbench]:
    """One that is waited for, however busy the machine is."""
    monkeypatch.setattr("ottla.runtime.helper._STARTING_SECONDS", 60.0)
    workbench = HelperWorkbench(niceness=3)
    yield workbench
    workbench.shutdown()


@pytest.fixture(params=["local", "helper"])
def workbench(request: pytest.FixtureRequest) -> Iterator[Workbench]:
    threads, helper = ThreadExecutor(), HelperWorkbench()
    yield helper if request.param == "helper" else LocalWorkbench(threads, RealDisk())
    threads.shutdown()
    helper.shutdown()


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await work()

    asyncio.run(main())


def test_state_stays_between_calls_and_a_new_beginning_replaces_it(workbench: Workbench) -> None:
    async def work() -> None:
        await workbench.begin(Counter, 10)
        assert await workbench.call(Counter.add, 5) == 15
        assert await workbench.call(Counter.add, 5) == 20
        await workbench.begin(Counter, 0)
        assert await workbench.call(Counter.add, 1) == 1
        await workbench.clear()
        await workbench.begin(Counter, 2)
        assert await workbench.call(Counter.add, 1) == 3

    run(work)


def test_errors_arrive_as_what_they_are(workbench: Workbench, tmp_path: Path) -> None:
    async def work() -> None:
        await workbench.begin(Counter, 0)
        with pytest.raises(CorruptRecord, match="bad bytes") as corrupt:
            await workbench.call(Counter.fail, "corrupt")
        assert corrupt.value.code == CorruptRecord("x").code
        with pytest.raises(DecompressedTooLarge) as large:
            await workbench.call(Counter.fail, "large")
        assert (large.value.code, str(large.value)) == (
            DecompressedTooLarge("zstd", 100).code,
            str(DecompressedTooLarge("zstd", 100)),
        )
        missing = str(tmp_path / "missing")
        with pytest.raises(FileNotFoundError) as absent:
            await workbench.call(Counter.read, missing)
        assert (absent.value.errno, absent.value.filename) == (errno.ENOENT, missing)
        assert await workbench.call(Counter.add, 1) == 1

    run(work)


def test_an_error_that_cannot_be_sent_is_told_in_words(helper: HelperWorkbench) -> None:
    async def work() -> None:
        await helper.begin(Counter, 0)
        with pytest.raises(RuntimeError, match="_UnsendableError"):
            await helper.call(Counter.fail, "local")

    run(work)


def test_it_is_another_process_that_steps_back(helper: HelperWorkbench) -> None:
    async def work() -> None:
        await helper.begin(Counter, 0)
        process, niceness = await helper.call(Counter.process)
        assert process != os.getpid()
        assert niceness == min(os.getpriority(os.PRIO_PROCESS, 0) + 3, 19)
        await helper.clear()
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)

    run(work)


def test_a_nice_one_works_while_there_is_nothing_else_to_do(helper: HelperWorkbench) -> None:
    async def work() -> None:
        await helper.begin(Counter, 0)
        assert await helper.call(Counter.is_back)
        await helper.call(Counter.add, 1)
        assert await helper.call(Counter.is_back)

    run(work)


def test_another_one_works_like_any_process() -> None:
    async def work() -> None:
        helper = HelperWorkbench()
        await helper.begin(Counter, 0)
        assert await helper.call(Counter.policy) == os.SCHED_OTHER
        await asyncio.to_thread(helper.shutdown)

    run(work)


def test_a_nice_one_that_starves_takes_its_share(helper: HelperWorkbench) -> None:
    cpu = min(os.sched_getaffinity(0))
    spin = (
        f"import os; os.sched_setaffinity(0, {{{cpu}}})\nprint(flush=True)\nwhile os.getppid() == {os.getpid()}: pass"
    )

    async def work() -> None:
        await helper.begin(Counter, 4)
        assert await helper.call(Counter.starve, cpu)
        assert await helper.call(Counter.policy) == os.SCHED_OTHER
        process, niceness = await helper.call(Counter.process)
        assert process != os.getpid()
        assert niceness == min(os.getpriority(os.PRIO_PROCESS, 0) + 3, 19)
        assert await helper.call(Counter.add, 1) == 5
        await helper.clear()
        await helper.begin(Counter, 0)
        assert await helper.call(Counter.is_back), "a new one tries again"

    with subprocess.Popen([sys.executable, "-c", spin], stdout=subprocess.PIPE) as spinner:
        try:
            assert spinner.stdout is not None
            spinner.stdout.readline()
            run(work)
        finally:
            spinner.kill()


def test_a_killed_one_is_missed_and_the_next_beginning_has_a_new_one(helper: HelperWorkbench) -> None:
    async def work() -> None:
        await helper.begin(Counter, 0)
        process, _ = await helper.call(Counter.process)
        waiting = asyncio.ensure_future(helper.call(Counter.wait_for_ever))
        await asyncio.sleep(0)
        os.kill(process, signal.SIGKILL)
        with pytest.raises(WorkbenchLost, match=str(process)):
            await waiting
        await helper.begin(Counter, 7)
        assert await helper.call(Counter.add, 0) == 7

    run(work)


def test_closing_ends_it_in_the_middle_of_work() -> None:
    async def work() -> None:
        helper = HelperWorkbench()
        await helper.begin(Counter, 0)
        waiting = asyncio.ensure_future(helper.call(Counter.wait_for_ever))
        await asyncio.sleep(0)
        await asyncio.to_thread(helper.shutdown)
        with pytest.raises(WorkbenchLost):
            await waiting

    run(work)


_ASKS_AND_WAITS = """
import asyncio, sys
from tests.unit.runtime.test_helper import Counter
from ottla.runtime.helper import HelperWorkbench

async def main():
    helper = HelperWorkbench()
    await helper.begin(Counter, 0)
    print((await helper.call(Counter.process))[0], flush=True)
    await helper.call(Counter.wait_for_ever)

asyncio.run(main())
"""


def test_it_ends_with_the_process_that_asked_even_in_the_middle_of_work() -> None:
    command = [sys.executable, "-c", _ASKS_AND_WAITS]
    # The pipe is held by the helper as well: it is closed when the last of them has ended.
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert int(process.stdout.readline()) != process.pid
        process.kill()
        process.stderr.read()
