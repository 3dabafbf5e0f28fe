"""Answers to those who wait, on their way out.

An answer goes through a connection to its socket in the call that gives it, and may make room there for the next
request, which is then decided on at once. So none leaves while a decision is being made: they are collected, and leave
when it is done. When a generation is complete, all of its members are answered; a thousand answers would keep everybody
else waiting, so what is more than a few is sent piece by piece.
"""

from collections import deque
from collections.abc import Callable, Iterable
from copy import copy
from functools import partial
from typing import TypeVar

from ottla.ledger import Decision, Timers
from ottla.protocol.errors import KafkaError
from ottla.runtime.promise import Promise

AT_ONCE = 16
_KEY = "classic answers"

Answer = TypeVar("Answer")


class Deliveries:
    """Each answer is what it was when it was handed in, however late it leaves.

    It is also the `Timers` of those whose decisions collect answers.
    """

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._collected: list[Callable[[], None]] = []
        self._leaving: deque[Callable[[], None]] = deque()

    def send(self, waiting: Iterable[Promise[Answer]], answer: Answer) -> None:
        """Each of those who wait gets an answer of its own: it is changed on its way (throttle time)."""
        for number, promise in enumerate(waiting):
            self._collected.append(partial(promise.resolve, copy(answer) if number else answer))

    def after(self, decision: Decision[Answer]) -> Decision[Answer]:
        """The same decision, with what was collected leaving when it is done, well or not."""
        collected, self._collected = self._collected, []
        if not collected and decision.written is None:
            return decision
        then = decision.written

        def written(error: KafkaError | None) -> None:
            if then is not None:
                then(error)
            self._leaving += collected
            self.go()

        return Decision(decision.answer, decision.entries, decision.writer, written)

    def go(self) -> None:
        """Let the first of what there is leave, and the rest later."""
        self._leaving += self._collected
        self._collected.clear()
        for _ in range(min(AT_ONCE, len(self._leaving))):
            self._leaving.popleft()()
        if self._leaving and not self._timers.is_scheduled(_KEY):
            self._timers.schedule(_KEY, 0, self._go_on)

    def go_soon(self) -> None:
        """The same, outside of a decision of this part."""
        if self._collected:
            self._timers.schedule(_KEY, 0, self._go_on)

    def _go_on(self) -> Decision[None]:
        return Decision(None, written=lambda error: self.go())

    def flush(self) -> None:
        """Let everything leave: there are no timers any more."""
        self._leaving += self._collected
        self._collected.clear()
        while self._leaving:
            self._leaving.popleft()()

    # Timers

    def schedule(self, key: str, delay_ms: float, decide: Callable[[], Decision[None]]) -> None:
        self._timers.schedule(key, delay_ms, lambda: self.after(decide()))

    def cancel(self, key: str) -> None:
        self._timers.cancel(key)

    def is_scheduled(self, key: str) -> bool:
        return self._timers.is_scheduled(key)
