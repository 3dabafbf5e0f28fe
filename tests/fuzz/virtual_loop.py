"""An event loop whose time moves only when there is nothing else to do, and a clock that goes by it.

No second is ever waited for: when only timers are left, time jumps to the next one. So what runs on it does the same
thing in every run, and a long poll of five seconds takes microseconds.
"""

import asyncio
import selectors
from collections.abc import Mapping
from typing import Any

START_MS = 1_700_000_000_000


class _Selector(selectors.BaseSelector):
    """Asks the kernel what is ready and never waits for it: the time that would have been waited just passes."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self.now = 0.0

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._selector.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._selector.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._selector.modify(fileobj, events, data)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._selector.select(0)
        if not ready and timeout is None:
            raise RuntimeError("everything waits for something that nothing will bring about")
        if not ready and timeout is not None and timeout > 0:
            self.now += timeout
        return ready

    def close(self) -> None:
        self._selector.close()

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._selector.get_map()


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


class LoopClock:
    """The clock of a broker on such a loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return START_MS + int(self._loop.time() * 1000)

    def monotonic(self) -> float:
        return self._loop.time()
