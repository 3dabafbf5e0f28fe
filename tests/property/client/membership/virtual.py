"""An event loop whose time passes at once when nobody has anything to do."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import TypeVar

MOST_TURNS = 20_000
LONGEST_SECONDS = 5_000
Result = TypeVar("Result")


class _Selector(selectors.SelectSelector):
    """Instead of waiting, it moves the clock. Who keeps the loop busy without a pause is found out."""

    now = 0.0
    _turns_in_this_second = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("nothing will ever happen again")
        self._turns_in_this_second = 0 if int(self.now + timeout) > int(self.now) else self._turns_in_this_second + 1
        if self._turns_in_this_second > MOST_TURNS:
            raise RuntimeError(f"the loop turned {MOST_TURNS} times within a second")
        self.now += timeout
        if self.now > LONGEST_SECONDS:
            raise RuntimeError(f"it takes longer than {LONGEST_SECONDS} s")
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


class LoopClock:
    """The clock of the loop that runs."""

    def now_ms(self) -> int:
        return int(self.monotonic() * 1000)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


def run_virtually(work: Coroutine[None, None, Result]) -> Result:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)
