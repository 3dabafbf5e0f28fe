"""When the broker stays awake for the next request, and when it goes to sleep: with a clock in the test's hand."""

import asyncio
from collections.abc import Callable

import pytest
from tests.unit.broker.serving import until

from ottla.broker import vigil
from ottla.broker.vigil import CLOSE_SECONDS, ENOUGH_TRUST, Vigil

POLL_SECONDS = 0.0001


class Rig:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, processors: int = 2, seconds: float = POLL_SECONDS) -> None:
        monkeypatch.setattr(vigil, "processors", lambda: processors)
        self.now = 10.0
        self.soon: list[Callable[[], None]] = []
        self.vigil = Vigil(self, seconds, lambda: self.now)  # type: ignore[arg-type]

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def turn(self) -> None:
        callbacks, self.soon = self.soon, []
        for callback in callbacks:
            callback()

    def requests(self, count: int, apart_seconds: float) -> None:
        for _ in range(count):
            self.now += apart_seconds
            self.vigil.arrived()
            self.turn()


def test_requests_close_together_keep_it_awake_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(monkeypatch)
    rig.requests(ENOUGH_TRUST + 1, CLOSE_SECONDS / 2)
    rig.now += POLL_SECONDS / 2
    rig.turn()
    assert rig.soon, "the loop does not sleep"
    rig.now += POLL_SECONDS
    rig.turn()
    assert not rig.soon, "the loop can sleep"


def test_a_request_begins_the_wait_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(monkeypatch)
    rig.requests(20, POLL_SECONDS * 0.9)
    assert rig.vigil.awake


def test_requests_far_apart_never_wake_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(monkeypatch)
    rig.requests(100, CLOSE_SECONDS * 2)
    assert not rig.vigil.awake


def test_pairs_of_requests_with_pauses_between_are_not_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(monkeypatch)
    for _ in range(100):
        rig.requests(1, CLOSE_SECONDS * 3)
        rig.requests(1, CLOSE_SECONDS / 3)
        assert not rig.vigil.awake


def test_waits_in_vain_end_it_until_requests_come_close_again(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(monkeypatch)
    rig.requests(50, CLOSE_SECONDS / 4)
    vigils = 0
    for _ in range(50):
        rig.now += 1.0
        rig.vigil.arrived()
        vigils += rig.vigil.awake
        while rig.soon:
            rig.now += POLL_SECONDS
            rig.turn()
    assert vigils <= 2
    rig.requests(ENOUGH_TRUST + 1, CLOSE_SECONDS / 4)
    assert rig.vigil.awake


@pytest.mark.parametrize(("processors", "seconds"), [(1, POLL_SECONDS), (2, 0.0)])
def test_never_with_one_processor_or_when_turned_off(
    processors: int, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(monkeypatch, processors, seconds)
    rig.requests(100, CLOSE_SECONDS / 4)
    assert not rig.vigil.awake


def test_it_works_on_a_real_loop() -> None:
    async def scenario() -> None:
        watch = Vigil(asyncio.get_running_loop(), 0.001)
        for _ in range(ENOUGH_TRUST + 2):
            watch.arrived()
        assert watch.awake == (vigil.processors() > 1)
        await until(lambda: not watch.awake)

    asyncio.run(scenario())
