"""`max.poll.interval.ms`: how long user code may stay away before its consumer leaves the group."""

from ottla.runtime import Clock


class Patience:
    """Runs from the last time that user code asked for records, and stands still while it waits for some.

    `polled` and `waiting` belong to whoever uses the consumer, one thread at a time; `left_seconds` to the loop.
    """

    def __init__(self, clock: Clock, interval_ms: int) -> None:
        self._clock = clock
        self._seconds = interval_ms / 1000
        self._asked_at = clock.monotonic()
        self._waiting_calls = 0

    def polled(self) -> None:
        self._asked_at = self._clock.monotonic()

    def waiting(self, is_waiting: bool) -> None:
        self._waiting_calls = self._waiting_calls + 1 if is_waiting else max(0, self._waiting_calls - 1)
        self.polled()

    def left_seconds(self) -> float:
        """Not positive when it is over."""
        if self._waiting_calls:
            return self._seconds
        return self._asked_at + self._seconds - self._clock.monotonic()
