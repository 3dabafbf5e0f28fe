"""Time, as the core sees it."""

from typing import Protocol


class Clock(Protocol):
    """The wall clock stamps records and ages segments; the monotonic one measures waits.

    The wall clock may jump, also backwards; the monotonic one never does.
    """

    def now_ms(self) -> int:
        """Milliseconds since the epoch, as Kafka stamps records."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed point; only differences mean anything."""
        ...
