"""Which offsets of a partition are taken care of: ranges that do not touch each other, in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

Range = tuple[int, int]


def joined(ranges: Iterable[Range]) -> list[Range]:
    """The same offsets in as few ranges as can be. Ranges that overlap are an error of who made them."""
    found: list[Range] = []
    for start, end in sorted(ranges):
        if found and start < found[-1][1]:
            raise ValueError(f"offsets {start} to {min(end, found[-1][1])} are covered twice")
        if found and start == found[-1][1]:
            found[-1] = (found[-1][0], end)
        elif start < end:
            found.append((start, end))
    return found


def overlaps(ranges: Iterable[Range], other: Range) -> bool:
    return any(start < other[1] and other[0] < end for start, end in ranges)


def gaps(ranges: Iterable[Range], start: int, end: int) -> Iterator[Range]:
    """What of `start` to `end` is not covered."""
    for covered_start, covered_end in sorted(ranges):
        if covered_start > start:
            yield start, min(covered_start, end)
        start = max(start, covered_end)
        if start >= end:
            return
    if start < end:
        yield start, end


def pieces(whole: Range, size: int) -> Iterator[Range]:
    start, end = whole
    while start < end:
        yield start, min(start + size, end)
        start += size
