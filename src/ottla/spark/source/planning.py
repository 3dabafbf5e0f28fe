"""From offsets to ranges: one for each task.

A range is of one partition; `minPartitions` and `maxRecordsPerPartition` split large ones in proportion to their size,
with the arithmetic of Spark's connector. Sizes are differences of offsets: compaction and transactions make them
estimates. Nothing about the rows depends on how ranges are cut.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

from ottla.client.types import TopicPartition
from ottla.spark.source.cluster import Lookup
from ottla.spark.source.failures import DataLoss, OptionError
from ottla.spark.source.limits import Offsets, names_of
from ottla.spark.source.options import SourceOptions


@dataclass(frozen=True)
class OffsetRange(InputPartition):
    """The records from `start` up to `end`, which is not included.

    `is_from_earliest`: the user asked for whatever is there, so records that retention has taken since the plan was
    made are no loss. `is_to_latest`: the user asked for everything, and Spark plans a DataFrame once, however often it
    is used; so what came since then is read, too.
    """

    topic: str
    partition: int
    start: int
    end: int
    is_from_earliest: bool = False
    is_to_latest: bool = False
    # Empty where brokers do not know it: they are older than Kafka 2.8.
    topic_id: str = ""

    @property
    def size(self) -> int:
        return self.end - self.start

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def ranges(self) -> "tuple[OffsetRange, ...]":
        return (self,)

    def cut(self, start: int, end: int) -> "OffsetRange":
        is_from_earliest = self.is_from_earliest and start == self.start
        is_to_latest = self.is_to_latest and end == self.end
        return OffsetRange(self.topic, self.partition, start, end, is_from_earliest, is_to_latest, self.topic_id)


@dataclass(frozen=True)
class OffsetRanges(InputPartition):
    """Several ranges of few records, for one task."""

    ranges: tuple[OffsetRange, ...]


def together(ranges: Iterable[OffsetRange], least_records: int) -> list[OffsetRange | OffsetRanges]:
    """Neighbours put together until each task has so many records; the last may have fewer. A range that has them alone
    stays alone. Two pieces of a partition are never in one task: its consumer has one position in each partition."""
    found: list[OffsetRange | OffsetRanges] = []
    waiting: list[OffsetRange] = []

    def flush() -> None:
        if waiting:
            found.append(waiting[0] if len(waiting) == 1 else OffsetRanges(tuple(waiting)))
            waiting.clear()

    for one in ranges:
        if one.size >= least_records:
            found.append(one)
            continue
        # Pieces of a partition follow each other.
        if waiting and waiting[-1].topic_partition == one.topic_partition:
            flush()
        waiting.append(one)
        if sum(each.size for each in waiting) >= least_records:
            flush()
    flush()
    return found


def data_loss(what: str) -> DataLoss:
    return DataLoss(
        f"{what}. Retention may have deleted the records, or the topic was made anew. To go on without them, set "
        "failOnDataLoss to false; to read from other offsets, begin with a new checkpoint and startingOffsets"
    )


def batch_ranges(options: SourceOptions, lookup: Lookup) -> list[OffsetRange]:
    """The ranges of a batch query, of all partitions, not split yet.

    What is out of range is found here, so that the driver can say so: with `failOnDataLoss` it is an error, and else
    the range is what is there of it.
    """
    partitions = lookup.partitions()
    starts = lookup.resolve(options.starting, partitions, is_start=True)
    ends = lookup.resolve(options.ending, partitions, is_start=False)
    firsts, lasts = lookup.earliest(partitions), lookup.latest(partitions)
    ranges = []
    for partition in sorted(starts.offsets.keys() & ends.offsets.keys() & firsts.keys() & lasts.keys()):
        start, end = starts.offsets[partition], ends.offsets[partition]
        first, last = firsts[partition], max(lasts[partition], firsts[partition])
        if partition in starts.at_earliest:
            start = min(max(start, first), end) if partition in ends.at_latest else max(start, first)
        if start > end:
            raise OptionError(
                f"{partition} would be read from offset {start} to {end}, which is before it: see that startingOffsets "
                "and endingOffsets, or the times given for them, are in order and in the log"
            )
        if start < end and (start < first or end > last) and options.is_failing_on_loss:
            raise data_loss(f"offsets {start} to {end} of {partition} were asked for, and it has {first} to {last}")
        start, end = max(start, first), min(end, last)
        ranges.append(
            OffsetRange(
                *partition,
                min(start, end),
                end,
                is_from_earliest=partition in starts.at_earliest,
                is_to_latest=partition in ends.at_latest,
                topic_id=lookup.topic_ids.get(partition.topic, ""),
            )
        )
    return ranges


def stream_ranges(starts: Offsets, ends: Offsets, lookup: Lookup, *, is_failing_on_loss: bool) -> list[OffsetRange]:
    """The ranges between two offsets of a stream.

    A partition that the start does not have is new and read from its first record. What is missing is an error with
    `failOnDataLoss`: partitions that are gone, new ones that do not begin at 0, logs that were cut below their start.
    """

    def lose(what: str) -> None:
        if is_failing_on_loss:
            raise data_loss(what)

    new = ends.keys() - starts.keys()
    firsts = lookup.earliest(ends)
    if gone := ends.keys() - firsts.keys():
        lose(f"{names_of(gone)} cannot be found any more")
    if deleted := starts.keys() - ends.keys():
        lose(f"{names_of(deleted)} are gone: the topic was deleted, or is not subscribed to any more")
    ranges = []
    for partition in sorted(ends.keys() & firsts.keys()):
        first, end = firsts[partition], ends[partition]
        start = starts.get(partition, first)
        if partition in new and first != 0:
            lose(f"the new partition {partition} begins at offset {first} instead of 0")
        if end < start:
            lose(f"the offset of {partition} was changed from {start} to {end}")
        if start < min(first, end):
            lose(f"offsets {start} to {min(first, end)} of {partition} are to be read, and its log begins at {first}")
        start = max(start, first)
        if start < end:
            ranges.append(OffsetRange(*partition, start, end))
    return ranges


def split(ranges: Iterable[OffsetRange], min_partitions: int | None, max_records: int | None) -> list[OffsetRange]:
    """Ranges that have records, large ones cut into several, and those that may have some when they are read."""
    ranges = list(ranges)
    empty = [one for one in ranges if one.size <= 0 and one.is_to_latest]
    return _split([one for one in ranges if one.size > 0], min_partitions, max_records) + empty


def _split(found: list[OffsetRange], min_partitions: int | None, max_records: int | None) -> list[OffsetRange]:
    if max_records is not None:
        found = [piece for one in found for piece in _cut_evenly(one, math.ceil(one.size / max_records))]
    if min_partitions is None or len(found) >= min_partitions:
        return found
    total = sum(one.size for one in found)
    whole = {one for one in found if _share(one.size, total, min_partitions) == 1}
    left_total = total - sum(one.size for one in whole)
    left_parts = max(min_partitions - len(whole), 1)
    return [
        piece
        for one in found
        for piece in _cut_evenly(one, 1 if one in whole else _share(one.size, left_total, left_parts))
    ]


def _share(size: int, total: int, parts: int) -> int:
    return max(math.floor(size / total * parts + 0.5), 1)


def _cut_evenly(whole: OffsetRange, parts: int) -> Sequence[OffsetRange]:
    pieces = []
    start, left = whole.start, whole.size
    for part in range(parts):
        size = left // (parts - part)
        left -= size
        if size:
            pieces.append(whole.cut(start, start + size))
        start += size
    return pieces


def clamp(ranges: Iterable[OffsetRange], firsts: Mapping[TopicPartition, int]) -> list[OffsetRange]:
    """Without the records before these offsets."""
    return [one.cut(max(one.start, min(firsts.get(one.topic_partition, 0), one.end)), one.end) for one in ranges]
