"""Which offsets of a partition are taken care of: ranges that do not touch each other, in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

Range = tuple[int, int]
Partition = tuple[str, int]


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


def spans(table: pa.Table) -> Iterator[tuple[Partition, Range]]:
    """The partitions that a table has records of, each with its first offset and the one behind its last."""
    by_partition = table.group_by(["topic", "partition"]).aggregate([("offset", "min"), ("offset", "max")])
    rows: list[dict[str, Any]] = by_partition.to_pylist()
    for row in rows:
        yield (row["topic"], row["partition"]), (row["offset_min"], row["offset_max"] + 1)


def without_covered(table: pa.Table, covered: Mapping[Partition, Sequence[Range]]) -> pa.Table:
    """The records whose offsets are in none of the ranges of their partitions."""
    import pyarrow.compute as pc

    topics, numbers, offsets = (table.column(name) for name in ("topic", "partition", "offset"))
    is_new = None
    for (topic, number), span in spans(table):
        for start, end in covered.get((topic, number), ()):
            if not overlaps([span], (start, end)):
                continue
            is_elsewhere = pc.or_(pc.not_equal(topics, topic), pc.not_equal(numbers, number))
            is_outside = pc.or_(pc.less(offsets, start), pc.greater_equal(offsets, end))
            is_kept = pc.or_(is_elsewhere, is_outside)
            is_new = is_kept if is_new is None else pc.and_(is_new, is_kept)
    return table if is_new is None else table.filter(is_new)
