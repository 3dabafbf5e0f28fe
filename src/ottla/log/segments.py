"""The segments of a log, in order of their base offsets."""

from bisect import bisect_right

from ottla.log.segment import Segment


class Segments:
    """Never empty; the last one is the active one. Every offset of the log is in the last segment that begins at or
    before it, except that compaction may leave a hole at a segment's end."""

    __slots__ = ("_all", "_base_offsets", "active")

    def __init__(self, segments: list[Segment]) -> None:
        self._all = segments
        self._base_offsets = [segment.base_offset for segment in segments]
        self.active = segments[-1]

    def __len__(self) -> int:
        return len(self._all)

    def all(self) -> tuple[Segment, ...]:
        return tuple(self._all)

    @property
    def size_bytes(self) -> int:
        return sum(segment.file.size for segment in self._all)

    def add(self, segment: Segment) -> None:
        assert segment.base_offset > self._base_offsets[-1], "segments are added at the end"
        self._all.append(segment)
        self._base_offsets.append(segment.base_offset)
        self.active = segment

    def closed_reaching(self, offset: int) -> list[Segment]:
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
