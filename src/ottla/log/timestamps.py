"""Finding records by time. The walk over batches blocks: it runs in the executor, on one segment after another."""

from typing import NamedTuple

from ottla.log.damage import scan_readable
from ottla.log.segment import Segment
from ottla.log.segments import Segments
from ottla.records import BatchHeader, CorruptRecord, find_timestamp, max_timestamp_record, read_records
from ottla.runtime import Executor, File


class FoundOffset(NamedTuple):
    offset: int
    timestamp: int
    leader_epoch: int


class TimeSearch(NamedTuple):
    """What to look for in one segment: among the bytes from `position` to `end`."""

    file: File
    position: int
    end: int
    base_offset: int
    timestamp: int


def time_search(segment: Segment, timestamp: int) -> TimeSearch:
    """On the loop: both indexes say where to begin."""
    indexes = segment.indexes()
    position = indexes.offsets.lookup(indexes.times.lookup(timestamp))
    return TimeSearch(segment.file, position, segment.file.size, segment.base_offset, timestamp)


async def search_first(segments: Segments, executor: Executor, timestamp: int, start_offset: int) -> FoundOffset | None:
    """The first record at or after `start_offset` whose timestamp is at least `timestamp`, in any segment."""
    for segment in segments.all():
        # While the last one was searched, those after it may have been deleted.
        if segment.max_timestamp >= timestamp and segment.base_offset >= segments.first_base_offset:
            search = time_search(segment, timestamp)
            found = await executor.run(find_first_at_or_after, search, start_offset)
            if found is not None:
                return found
    return None


async def search_latest(segments: Segments, executor: Executor) -> FoundOffset | None:
    """The first record with the largest timestamp; None when there is no record. Where none has a time, it is -1."""
    latest = max(segments.all(), key=lambda segment: segment.max_timestamp)
    return await executor.run(find_max_timestamp, time_search(latest, latest.max_timestamp))


def find_first_at_or_after(search: TimeSearch, start_offset: int) -> FoundOffset | None:
    """The first record at or after `start_offset` whose timestamp is at least the one searched for."""
    for position, header in scan_readable(search.file, search.position, search.end, search.base_offset):
        if header.max_timestamp < search.timestamp or header.last_offset < start_offset:
            continue
        found = _first_in(search.file.read_at(position, header.size_bytes), header, search.timestamp, start_offset)
        if found is not None:
            return FoundOffset(found[0], found[1], header.partition_leader_epoch)
    return None


def _first_in(batch: bytes, header: BatchHeader, timestamp: int, start_offset: int) -> tuple[int, int] | None:
    """The same inside one batch. Records that do not read, which nobody checked, are answered for by their header."""
    try:
        found = find_timestamp(batch, timestamp)
        if found is not None and found[0] < start_offset:
            records = read_records(batch)
            late = (record for record in records if record.offset >= start_offset and record.timestamp >= timestamp)
            found = next(((record.offset, record.timestamp) for record in late), None)
    except CorruptRecord:
        return max(header.base_offset, start_offset), header.max_timestamp
    return found


def find_max_timestamp(search: TimeSearch) -> FoundOffset | None:
    """The first record with the timestamp searched for, which is the segment's largest.

    None when compaction emptied the batch that had it, as Kafka answers too.
    """
    for position, header in scan_readable(search.file, search.position, search.end, search.base_offset):
        if header.max_timestamp == search.timestamp:
            try:
                offset, _ = max_timestamp_record(search.file.read_at(position, header.size_bytes))
            except CorruptRecord:
                offset = header.last_offset
            if offset < 0:
                continue
            return FoundOffset(offset, search.timestamp, header.partition_leader_epoch)
    return None
