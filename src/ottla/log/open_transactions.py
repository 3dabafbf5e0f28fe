"""Which transactions of a log are not decided yet for its readers.

    first batch appended     marker appended        marker below the high watermark
    --------- open ----------------- ended ---------------- decided --------------

A reader of committed records stops at the first offset of the oldest one that is open or ended: until its marker is on
all in-sync replicas, another leader could still decide otherwise.
"""

import heapq
from collections import deque
from collections.abc import Iterable

from ottla.log.config_keys import INT64_MAX

NONE_UNSTABLE = INT64_MAX


class OpenTransactions:
    """`first_unstable_offset` is above every offset when all is decided. Unless it `has_aborted`, no segment of the log
    has an aborted transaction."""

    __slots__ = ("_ended", "_ended_by_first", "_open", "first_unstable_offset", "has_aborted")

    def __init__(self, transactions: Iterable[tuple[int, int]] = ()) -> None:
        """`transactions` are open: producer ids and first offsets."""
        # In order of their first offsets, which is the order in which they begin.
        self._open = dict(sorted(transactions, key=lambda each: each[1]))
        # (first offset, marker's offset): in order of the markers, and with the smallest first offset on top.
        self._ended: deque[tuple[int, int]] = deque()
        self._ended_by_first: list[tuple[int, int]] = []
        self.first_unstable_offset = NONE_UNSTABLE
        self.has_aborted = False
        self._find_first()

    @property
    def awaits_replication(self) -> bool:
        return bool(self._ended)

    @property
    def first_undecided_offset(self) -> int:
        """Of those without a marker."""
        return next(iter(self._open.values()), NONE_UNSTABLE)

    def begin(self, producer_id: int, first_offset: int) -> None:
        self._open[producer_id] = first_offset
        if first_offset < self.first_unstable_offset:
            self.first_unstable_offset = first_offset

    def end(self, producer_id: int, marker_offset: int) -> int:
        """The marker was appended; the offset below which all was decided by then, as far as this log knows."""
        first_offset = self._open.pop(producer_id)
        self._ended.append((first_offset, marker_offset))
        heapq.heappush(self._ended_by_first, (first_offset, marker_offset))
        return min(self.first_undecided_offset, marker_offset + 1)

    def replicated(self, high_watermark: int) -> None:
        """Markers below the high watermark count."""
        ended, by_first = self._ended, self._ended_by_first
        while ended and ended[0][1] < high_watermark:
            ended.popleft()
        while by_first and by_first[0][1] < high_watermark:
            heapq.heappop(by_first)
        self._find_first()

    def _find_first(self) -> None:
        by_first = self._ended_by_first
        self.first_unstable_offset = min(self.first_undecided_offset, by_first[0][0] if by_first else NONE_UNSTABLE)
