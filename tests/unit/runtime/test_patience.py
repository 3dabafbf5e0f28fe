"""Work that waits for the loop: it gives way to what the loop has to do, and only to that."""

import asyncio
import time

import pytest

from ottla.runtime import real
from ottla.runtime.real import PatientExecutor, ThreadExecutor


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was waited after each piece of work, while the loop's own time is made to pass."""
    waited: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        waited.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", noted)
    return waited


def test_it_waits_as_the_loop_works(pauses: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        threads = ThreadExecutor(1)
        times = iter([10.0, 10.0, 20.0, 20.25])
        monkeypatch.setattr(time, "thread_time", lambda: next(times))
        executor = PatientExecutor(threads)
        assert await executor.run(max, 3, 4) == 4
        assert await executor.run(max, 5, 4) == 5
        threads.shutdown()

    asyncio.run(run())
    assert pauses == [0.0, 0.25 * real.PATIENCE]


def test_errors_pass_through_at_once(pauses: list[float]) -> None:
    async def run() -> None:
        threads = ThreadExecutor(1)
        with pytest.raises(ZeroDivisionError):
            await PatientExecutor(threads).run(divmod, 1, 0)
        threads.shutdown()

    asyncio.run(run())
    assert pauses == []
