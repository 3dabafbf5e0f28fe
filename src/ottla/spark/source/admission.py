"""How much a micro-batch reads: at most so many offsets, and at least so many unless it has waited long enough."""

import math
from collections.abc import Mapping

from ottla.client.types import TopicPartition
from ottla.spark.source.limits import Offsets


def at_most(limit: int, starts: Mapping[TopicPartition, int], ends: Offsets) -> Offsets:
    """Ends that take `limit` offsets, shared out in proportion to what each partition has; none is left out entirely.

    The rule is that of Spark's connector: a partition whose share is less than one offset gives one, and nobody else
    gives less for that.

    `starts` has every partition of `ends`, but for those that are gone, which stay as they are.
    """
    sizes = {one: end - starts[one] for one, end in ends.items() if one in starts and end > starts[one]}
    total = sum(sizes.values())
    if total < 1:
        return ends
    limited = dict(ends)
    for one, size in sizes.items():
        share = limit * (size / total)
        taken = math.ceil(share) if share < 1 else math.floor(share)
        limited[one] = min(ends[one], starts[one] + taken)
    return limited


class Patience:
    """Waits for `at_least` offsets, but for no longer than `max_delay_ms` since the last batch. The first batch does
    not wait."""

    def __init__(self, at_least: int, max_delay_ms: int) -> None:
        self._at_least = at_least
        self._max_delay_ms = max_delay_ms
        self._last_batch_ms: float | None = None

    def waits(self, starts: Mapping[TopicPartition, int], ends: Offsets, now_ms: float) -> bool:
        new = sum(end - starts.get(one, 0) for one, end in ends.items())
        is_late = self._last_batch_ms is None or now_ms - self._last_batch_ms >= self._max_delay_ms
        if not is_late and new < self._at_least:
            return True
        self._last_batch_ms = now_ms
        return False
