"""The segments of a log, in order of their base offsets."""

from bisect import bisect_right
from collections.abc import Iterator

from ottla.log.segment import Segment


class Segments:
    """Never empty; the last one is the active one. Every offset of the log is in the last segment that begins at or
    before it, except that compaction may leave a hole at a segment's end.

    Knows as well which closed segments have records or index files that may not be on the device. A segment that a
    flush is working on must keep its files, and so its place here, until the flush is over.
    """

    __slots__ = ("_all", "_base_offsets", "_syncing", "_unflushed", "active")

    def __init__(self, segments: list[Segment], recovery_point: int | None) -> None:
        """Without a recovery point all of them are on the device."""
        self._all = segments
        self._base_offsets = [segment.base_offset for segment in segments]
        self._unflushed = [] if recovery_point is None else self._closed_reaching(recovery_point)
        self._syncing: tuple[Segment, ...] = ()
        self.active = segments[-1]

    def __len__(self) -> int:
        return len(self._all)

    def all(self) -> tuple[Segment, ...]:
        return tuple(self._all)

    def from_offset(self, offset: int) -> Iterator[Segment]:
        """The segment that holds an offset, and those after it. Not to be kept: the row may change."""
        for number in range(max(bisect_right(self._base_offsets, offset) - 1, 0), len(self._all)):
            yield self._all[number]

    @property
    def size_bytes(self) -> int:
        return sum(segment.file.size for segment in self._all)

    @property
    def first_base_offset(self) -> int:
        return self._base_offsets[0]

    def add(self, segment: Segment) -> None:
        """Begin a new active segment; the one before it is closed from now on."""
        assert segment.base_offset > self._base_offsets[-1], "segments are added at the end"
        self._unflushed.append(self.active)
        self._all.append(segment)
        self._base_offsets.append(segment.base_offset)
        self.active = segment

    def remove_oldest(self, count: int) -> tuple[Segment, ...]:
        """Take the oldest segments out. Not the active one, and none that a flush is working on."""
        removed = tuple(self._all[:count])
        assert self.active not in removed, "a log has an active segment"
        assert not self.is_syncing(removed), "a flush needs the files of its segments"
        del self._all[:count], self._base_offsets[:count]
        self._unflushed = [segment for segment in self._unflushed if segment not in removed]
        return removed

    def put_back(self, removed: tuple[Segment, ...]) -> None:
        """What was taken out could not go: it does the next time."""
        self._all[:0] = removed
        self._base_offsets[:0] = [segment.base_offset for segment in removed]

    def replace(self, old: tuple[Segment, ...], new: Segment) -> None:
        """Put one segment in the place of closed neighbours; it begins where the first of them did."""
        first = self._all.index(old[0])
        assert tuple(self._all[first : first + len(old)]) == old, "neighbours are replaced"
        assert self.active not in old, "the active segment stays"
        assert not self.is_syncing(old), "a flush needs the files of its segments"
        self._all[first : first + len(old)] = [new]
        self._base_offsets[first : first + len(old)] = [new.base_offset]
        self._unflushed = [segment for segment in self._unflushed if segment not in old]

    # Flushing.

    @property
    def has_unflushed(self) -> bool:
        """Whether a closed segment may not be on the device."""
        return bool(self._unflushed)

    def begin_sync(self) -> tuple[Segment, ...]:
        """The closed segments that the flush which begins now has to cover."""
        closed = tuple(self._unflushed)
        self._syncing = (*closed, self.active)
        return closed

    def end_sync(self, *, done: bool) -> None:
        """The flush is over; `done` when its segments are on the device."""
        if done:
            del self._unflushed[: len(self._syncing) - 1]
        self._syncing = ()

    def is_syncing(self, segments: tuple[Segment, ...]) -> bool:
        return any(segment in self._syncing for segment in segments)

    def _closed_reaching(self, offset: int) -> list[Segment]:
        """Closed segments that end at or above `offset`."""
        return [
            segment
            for segment, next_base in zip(self._all, self._base_offsets[1:], strict=False)
            if next_base >= offset
        ]

    def locate(self, offset: int, up_to_offset: int, log_end_offset: int) -> tuple[Segment, int, int]:
        """Segment, start and end of the bytes from `offset` up to `up_to_offset` or the end of their segment."""
        number = bisect_right(self._base_offsets, offset) - 1
        last = len(self._all) - 1
        start = self._all[number].position_of(offset)
        while start >= self._all[number].file.size and number < last:
            number += 1
            start = self._all[number].position_of(offset)
        segment = self._all[number]
        next_offset = log_end_offset if number == last else self._base_offsets[number + 1]
        return segment, start, segment.file.size if up_to_offset >= next_offset else segment.position_of(up_to_offset)
