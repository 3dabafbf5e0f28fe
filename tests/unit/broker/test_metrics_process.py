"""The process and its loop, as the metrics describe them."""

import asyncio
from collections.abc import Callable

import pytest
from tests.unit.broker.exposition import Exposition

from ottla.broker import metrics_process
from ottla.broker.metrics_process import LAG_PERIOD_SECONDS, LoopLag, process_lines, read_process


class LateLoop:
    """A loop whose timers fire when the test says so."""

    def __init__(self) -> None:
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.cancelled = 0

    def call_later(self, delay: float, callback: Callable[[], None]) -> "LateLoop":
        self.timers.append((delay, callback))
        return self

    def cancel(self) -> None:
        self.cancelled += 1


def test_how_late_the_loop_is() -> None:
    now = 50.0
    loop = LateLoop()
    lag = LoopLag(loop, lambda: now)  # type: ignore[arg-type]  # all that it asks of a loop is a timer
    lag.start()
    for late in (0.0, 0.003, 4.0, -0.001):
        delay, fire = loop.timers.pop()
        assert delay == LAG_PERIOD_SECONDS
        now += delay + late
        fire()
    shown = Exposition("".join(lag.lines()))
    assert shown.value("ottla_loop_lag_seconds_count") == 4
    assert shown.value("ottla_loop_lag_seconds_sum") == pytest.approx(4.003)
    assert shown.value("ottla_loop_lag_seconds_bucket", le="0.001") == 2
    assert shown.value("ottla_loop_lag_seconds_bucket", le="0.005") == 3
    assert shown.value("ottla_loop_lag_seconds_bucket", le="2.5") == 3
    lag.stop()
    assert loop.cancelled == 1


def test_a_real_loop_is_asked_again_and_again() -> None:
    async def scenario() -> None:
        lag = LoopLag(asyncio.get_running_loop(), asyncio.get_running_loop().time)
        lag.start()
        lag._called()
        assert lag.times.count == 1
        lag.stop()
        lag.stop()

    asyncio.run(scenario())


def test_a_system_without_proc_tells_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_process, "_PROC", "/nowhere")
    numbers = read_process()
    assert numbers.cpu_seconds > 0
    assert numbers.resident_bytes is None
    shown = Exposition("".join(process_lines(numbers)))
    assert shown.families["process_resident_memory_bytes"].samples == {}
    assert shown.value("process_cpu_seconds_total") > 0
