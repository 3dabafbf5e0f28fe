"""How a compacted segment takes the place of the ones it was made from, so that a crash leaves the old or the new.

    1. it is written beside them: `<offset>.log.cleaned`, `.index.cleaned` and so on, and synced
    2. its files are renamed to `.swap`, the records last: from then on a start goes on to the new state
    3. the old files go, oldest segment first; their records are renamed to `.deleted`, so that readers can finish
    4. `.swap` is taken off the names, the records last

What a start finds: `.cleaned` is removed, and so are `.swap` files without their records (a crash in 2). Records in
`.swap` are finished: steps 3 and 4 again. This is Kafka's own way, so either broker can start after the other.
Blocking: runs in the executor.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ottla.log import files
from ottla.log.batch_scan import scan_batches
from ottla.log.config import LogConfig
from ottla.log.files import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    join,
    offset_name,
)
from ottla.log.index_cache import IndexCache
from ottla.log.offset_index import OffsetIndex
from ottla.log.segment import Indexes, Segment
from ottla.log.time_index import TimeIndex
from ottla.log.transaction_index import TransactionIndex
from ottla.runtime import Disk

CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"

# The records come last: they are what makes the others count.
_IN_ORDER = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX, LOG_SUFFIX)


class Cleaned(NamedTuple):
    """What a segment knows of itself, beside its files."""

    size_bytes: int
    first_timestamp: int | None
    max_timestamp: int
    offset_of_max_timestamp: int
    aborted_bytes: int


def create_cleaned(
    disk: Disk, directory: str, base_offset: int, cache: IndexCache, config: LogConfig, created_ms: int
) -> Segment:
    """An empty segment whose records are in a `.cleaned` file; its indexes are in memory until they are written."""
    file = disk.open(join(directory, offset_name(base_offset, LOG_SUFFIX) + CLEANED_SUFFIX), create=True)
    file.truncate(0)
    segment = Segment(disk, directory, base_offset, file, cache, config, created_ms)
    segment.start_indexes()
    return segment


def seal_cleaned(disk: Disk, segment: Segment) -> Cleaned:
    """Step 1: the indexes, and everything to the device."""
    indexes = segment.indexes()
    indexes.times.maybe_append(segment.max_timestamp, segment.offset_of_max_timestamp - segment.base_offset)
    contents = {INDEX_SUFFIX: indexes.offsets.to_bytes(), TIME_INDEX_SUFFIX: indexes.times.to_bytes()}
    if segment.aborted_bytes:
        contents[TRANSACTION_INDEX_SUFFIX] = segment.transactions().to_bytes()
    for suffix, data in contents.items():
        path = segment.path_of(suffix) + CLEANED_SUFFIX
        files.write_file(disk, path, data)
        files.sync_paths(disk, [path])
    segment.file.sync()
    disk.sync_directory(segment.directory)
    return Cleaned(
        segment.size_bytes,
        segment.first_timestamp,
        segment.max_timestamp,
        segment.offset_of_max_timestamp,
        segment.aborted_bytes,
    )


def adopt_cleaned(
    disk: Disk,
    directory: str,
    base_offset: int,
    cache: IndexCache,
    config: LogConfig,
    created_ms: int,
    cleaned: Cleaned,
) -> Segment:
    """The segment that was sealed, perhaps by another process. Its indexes are in memory, as its names change."""
    paths = {suffix: join(directory, offset_name(base_offset, suffix) + CLEANED_SUFFIX) for suffix in _IN_ORDER}
    offsets = OffsetIndex.from_bytes(disk.read(paths[INDEX_SUFFIX]), cleaned.size_bytes)
    times = TimeIndex.from_bytes(disk.read(paths[TIME_INDEX_SUFFIX]))
    file = disk.open_later(paths[LOG_SUFFIX], cleaned.size_bytes)
    segment = Segment(disk, directory, base_offset, file, cache, config, created_ms)
    segment.use_indexes(Indexes(offsets, times))
    if cleaned.aborted_bytes:
        aborted = disk.read(paths[TRANSACTION_INDEX_SUFFIX])
        segment.use_transactions(TransactionIndex.from_bytes(aborted, base_offset))
    segment.first_timestamp = cleaned.first_timestamp
    segment.max_timestamp = cleaned.max_timestamp
    segment.offset_of_max_timestamp = cleaned.offset_of_max_timestamp
    return segment


def drop_cleaned(disk: Disk, directory: str, base_offset: int) -> None:
    """Give up what step 1 has made so far."""
    for suffix in _IN_ORDER:
        disk.delete(join(directory, offset_name(base_offset, suffix) + CLEANED_SUFFIX))


def begin_swap(disk: Disk, segment: Segment) -> None:
    """Step 2."""
    for suffix in _IN_ORDER:
        path = segment.path_of(suffix)
        if disk.exists(path + CLEANED_SUFFIX):
            disk.rename(path + CLEANED_SUFFIX, path + SWAP_SUFFIX)


def finish_swap(disk: Disk, segment: Segment, old: Sequence[Segment]) -> list[str]:
    """Steps 3 and 4; returns what is left to be deleted once nobody reads it any more.

    May be called again when it was cut short. An old segment whose records were renamed is done: what has its other
    names by then may be the new one's.
    """
    left: list[str] = []
    for part in old:
        if part.file.path.endswith(DELETED_SUFFIX):
            left.append(part.file.path)
            continue
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX):
            disk.delete(part.path_of(suffix))
        left.append(part.path_of(LOG_SUFFIX) + DELETED_SUFFIX)
        disk.rename(part.path_of(LOG_SUFFIX), left[-1])
        if part.base_offset != segment.base_offset:
            disk.delete(part.path_of(files.SNAPSHOT_SUFFIX))
    _take_off_suffix(disk, segment.directory, segment.base_offset)
    return left


def _take_off_suffix(disk: Disk, directory: str, base_offset: int) -> None:
    for suffix in _IN_ORDER:
        path = join(directory, offset_name(base_offset, suffix))
        if disk.exists(path + SWAP_SUFFIX):
            disk.rename(path + SWAP_SUFFIX, path)


def finish_interrupted(disk: Disk, directory: str) -> None:
    """At a start: bring the directory to the state before or after a compaction that did not come to its end.

    A swap at or above the first `.cleaned` file belongs to a step that Kafka had not finished, and is void.
    """
    names = disk.list_directory(directory)
    cleaned = [offset for name in names if (offset := _offset_of(name, CLEANED_SUFFIX)) is not None]
    limit = min(cleaned, default=None)
    ready = {
        offset
        for name in names
        if (offset := files.offset_of_name(name, LOG_SUFFIX + SWAP_SUFFIX)) is not None
        and (limit is None or offset < limit)
    }
    for name in names:
        if name.endswith(CLEANED_SUFFIX) or (name.endswith(SWAP_SUFFIX) and _offset_of(name, SWAP_SUFFIX) not in ready):
            disk.delete(join(directory, name))
    for base_offset in sorted(ready):
        _remove_replaced(disk, directory, base_offset, names)
        _take_off_suffix(disk, directory, base_offset)


def _offset_of(name: str, last_suffix: str) -> int | None:
    for suffix in files.SEGMENT_SUFFIXES:
        offset = files.offset_of_name(name, suffix + last_suffix)
        if offset is not None:
            return offset
    return None


def _remove_replaced(disk: Disk, directory: str, base_offset: int, names: list[str]) -> None:
    """Step 3 at a start, oldest first, up to the last record of the new segment.

    Where the new one ends with a hole, old segments in the hole stay. Their records were superseded by later ones,
    which are still there: a group is only filtered after the one before it was swapped.
    """
    end_offset = base_offset + 1
    file = disk.open(join(directory, offset_name(base_offset, LOG_SUFFIX) + SWAP_SUFFIX))
    try:
        for _, header in scan_batches(file, 0, file.size, verify=False):
            end_offset = header.next_offset
    finally:
        file.close()
    for name in names:
        for suffix in files.SEGMENT_SUFFIXES:
            offset = files.offset_of_name(name, suffix)
            if offset is not None and base_offset <= offset < end_offset:
                disk.delete(join(directory, name))
