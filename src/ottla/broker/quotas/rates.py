"""How much passes, and how long to wait when it is too much. The arithmetic is Kafka's, to the millisecond.

A rate is taken over `samples` windows of `window_ms`: all but the last are whole, the last is the one under way. Where
there is no history yet, the windows that are missing count as empty, so that a first burst may use all of them. Times
are milliseconds of a clock that never goes back.
"""

import math
from dataclasses import dataclass

INT32_MAX = 2**31 - 1
SECOND_MS = 1000


@dataclass(frozen=True, slots=True)
class Windows:
    """How far back one looks: Kafka's `quota.window.num` and `quota.window.size.seconds`."""

    samples: int = 11
    window_ms: int = SECOND_MS


def rounded_ms(milliseconds: float) -> int:
    """To the nearest millisecond, halves upwards; what is no number is no time, and none is longer than 24 days."""
    if math.isnan(milliseconds):
        return 0
    if milliseconds >= INT32_MAX:
        return INT32_MAX
    return math.floor(milliseconds + 0.5)


class _Sample:
    __slots__ = ("events", "last_event_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.start_ms = now_ms
        self.last_event_ms = now_ms
        self.value = 0.0
        self.events = 0


class SampledSum:
    """A sum over the last windows. One sample more than that is kept: the oldest one overlaps the first window."""

    __slots__ = ("_current", "_samples", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        samples = self._samples
        if not samples:
            samples.append(_Sample(now_ms))
        sample = samples[self._current]
        if now_ms - sample.start_ms >= self._windows.window_ms:
            sample = self._next(now_ms)
        sample.value += value
        sample.events += 1
        sample.last_event_ms = now_ms

    def _next(self, now_ms: int) -> _Sample:
        self._current = (self._current + 1) % (self._windows.samples + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]

    def _forget_old(self, now_ms: int) -> None:
        age_ms = self._windows.samples * self._windows.window_ms
        for sample in self._samples:
            if now_ms - sample.last_event_ms >= age_ms:
                sample.reset(now_ms)

    def average(self, now_ms: int) -> float:
        """Of the values recorded, not over time; not a number when there are none."""
        self._forget_old(now_ms)
        events = sum(sample.events for sample in self._samples)
        return sum(sample.value for sample in self._samples) / events if events else math.nan

    def _measured(self, now_ms: int) -> tuple[float, int]:
        """The rate by the second, and how many milliseconds it is taken over, which are never none at all."""
        self._forget_old(now_ms)
        total = 0.0
        oldest_ms = now_ms
        for sample in self._samples:
            total += sample.value
            oldest_ms = min(oldest_ms, sample.start_ms)
        elapsed_ms = now_ms - oldest_ms
        missing = self._windows.samples - 1 - elapsed_ms // self._windows.window_ms
        if missing > 0:
            elapsed_ms += missing * self._windows.window_ms
        elapsed_ms = max(1, elapsed_ms)
        return total / (elapsed_ms / SECOND_MS), elapsed_ms

    def rate(self, now_ms: int) -> float:
        """By the second."""
        return self._measured(now_ms)[0]

    def wait_ms(self, bound: float, now_ms: int) -> int:
        """How long nothing must come for the rate to get back to the bound; 0 when it is not above it."""
        rate, elapsed_ms = self._measured(now_ms)
        if rate <= bound:
            return 0
        if not bound:
            return INT32_MAX
        return rounded_ms((rate - bound) / bound * elapsed_ms)


class TokenBucket:
    """Credit that grows by `rate` a second up to what all windows together allow, and may be overdrawn once.

    A new bucket is full.
    """

    __slots__ = ("_tokens", "_updated_ms", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._tokens = 0.0
        self._updated_ms: int | None = None

    def tokens(self, rate: float, now_ms: int) -> float:
        burst = self._windows.samples * (self._windows.window_ms / SECOND_MS) * rate
        if self._updated_ms is None:
            self._tokens = burst
        else:
            self._tokens = min(burst, self._tokens + rate * ((now_ms - self._updated_ms) / SECOND_MS))
        self._updated_ms = now_ms
        return self._tokens

    def take(self, count: float, rate: float, now_ms: int) -> None:
        self._tokens = self.tokens(rate, now_ms) - count

    def wait_ms(self, rate: float, now_ms: int) -> int:
        """How long until nothing is owed."""
        tokens = self.tokens(rate, now_ms)
        return rounded_ms(-tokens / rate * SECOND_MS) if tokens < 0 else 0
