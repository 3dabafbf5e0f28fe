"""Failed records that nobody has looked at: counted until `flush` or `close` raises them.

A record is looked at where its delivery is awaited, asked for its result or its exception, or has a callback. All of
this is the work of the error path: a record that is written costs nothing here. A transactional producer has none of
it, since `commit_transaction` raises what failed.

Any thread may look at a delivery; one lock keeps the count.
"""

import logging
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ottla.client.errors import Undelivered
from ottla.client.producer.interceptors import is_watched
from ottla.runtime import Clock

if TYPE_CHECKING:
    from ottla.client.producer.waiting import Delivery, Listener

logger = logging.getLogger(__name__)

# Of more batches than these it is only known how many records they had.
_MOST_KEPT = 100
_BETWEEN_LOGS_SECONDS = 60.0


class FailedRecords:
    """The records of one batch that failed together; `left` of them were not looked at."""

    __slots__ = ("_failures", "_looked_at", "error", "left", "period")

    def __init__(
        self, failures: "UnseenFailures", error: Exception, left: int, looked_at: set[int], period: int
    ) -> None:
        self._failures = failures
        self._looked_at = looked_at
        self.error = error
        self.left = left
        self.period = period

    def look_at(self, index: int) -> None:
        self._failures.looked_at(self, self._looked_at, index)

    def look_at_all(self) -> None:
        self._failures.looked_at(self, self._looked_at, None)


class UnseenFailures:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._count = 0
        self._kept: list[FailedRecords] = []
        self._last_error: Exception | None = None
        # Rises with every report: what was reported is not counted down again.
        self._period = 0
        self._log_at = float("-inf")

    def add(
        self,
        count: int,
        error: Exception,
        deliveries: "Iterable[Delivery]" = (),
        listeners: "Iterable[tuple[Delivery, Listener]]" = (),
    ) -> FailedRecords | None:
        """Records failed together; those with a callback, or with a waiting thread or task, are looked at."""
        looked_at = {delivery.index for delivery in deliveries if is_watched(delivery.callback)}
        looked_at.update(delivery.index for delivery, _ in listeners)
        left = count - len(looked_at)
        if left <= 0:
            return None
        with self._lock:
            failed = FailedRecords(self, error, left, looked_at, self._period)
            self._count += left
            self._last_error = error
            if len(self._kept) < _MOST_KEPT:
                self._kept.append(failed)
            total = self._count
            now = self._clock.monotonic()
            if is_due := now >= self._log_at:
                self._log_at = now + _BETWEEN_LOGS_SECONDS
        if is_due:
            logger.error("%d records were not delivered, and nobody looks at their deliveries: %s", total, error)
        return failed

    def looked_at(self, failed: FailedRecords, indexes: set[int], index: int | None) -> None:
        """One of the records, or all where `index` is None, was looked at."""
        with self._lock:
            if index is None:
                seen, failed.left = failed.left, 0
            elif index in indexes or not failed.left:
                return
            else:
                indexes.add(index)
                failed.left -= 1
                seen = 1
            if failed.period == self._period:
                self._count -= seen

    def __bool__(self) -> bool:
        return self._count > 0

    def raise_unseen(self) -> None:
        """Raise Undelivered, once, where a failed record was not looked at."""
        with self._lock:
            count, self._count = self._count, 0
            cause = next((failed.error for failed in self._kept if failed.left), self._last_error)
            self._kept = []
            self._last_error = None
            self._period += 1
            self._log_at = float("-inf")
        if count and cause is not None:
            raise Undelivered(count, cause) from cause


def add_to(error: BaseException, failure: Exception) -> None:
    """What went wrong at the end of a `with` block, as a note of the exception that left the block."""
    error.add_note(str(failure) if isinstance(failure, Undelivered) else f"closing failed as well: {failure}")
