"""What the cleaner tells about itself: the numbers behind Kafka's metrics of its LogCleaner."""

from dataclasses import dataclass


@dataclass(slots=True)
class CleanerStats:
    """Of the last log that was cleaned, and of the last look at all of them.

    `dirtiest_ratio` is that of the log which needed cleaning most, `last_look` when that was (by the monotonic clock).
    """

    bytes_read: int = 0
    bytes_written: int = 0
    seconds: float = 0.0
    map_utilization: float = 0.0
    overdue_ms: int = 0
    dirtiest_ratio: float = 0.0
    last_look: float | None = None
    is_dead: bool = False

    @property
    def recopy_ratio(self) -> float:
        """How much of what was read had to be written again."""
        return self.bytes_written / self.bytes_read if self.bytes_read else 0.0
