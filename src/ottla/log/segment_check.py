"""Whether the index files of a segment can be right, without reading all of them.

A wrong guess in one direction costs a rebuild, in the other a longer walk on some read: what a reader finds at an
indexed position is checked again before it is believed.
"""

import struct

from ottla.log.config import LogConfig
from ottla.log.files import INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX
from ottla.log.offset_index import ENTRY_BYTES as OFFSET_ENTRY_BYTES
from ottla.log.offset_index import CorruptIndex, OffsetIndex
from ottla.log.segment import Indexes, Segment
from ottla.log.time_index import ENTRY_BYTES as TIME_ENTRY_BYTES
from ottla.log.time_index import TimeIndex
from ottla.log.transaction_index import TransactionIndex
from ottla.records import HEADER_BYTES, BatchHeader, read_header
from ottla.records.errors import CorruptRecord
from ottla.runtime import Disk

_OFFSET_ENTRY = struct.Struct(">II")
_TIME_ENTRY = struct.Struct(">qI")


def read_checked_indexes(disk: Disk, segment: Segment, config: LogConfig) -> bool:
    """False when the indexes have to be rebuilt; when True, the segment knows its largest timestamp."""
    offset_ends = _ends(disk, segment.path_of(INDEX_SUFFIX), OFFSET_ENTRY_BYTES)
    time_ends = _ends(disk, segment.path_of(TIME_INDEX_SUFFIX), TIME_ENTRY_BYTES)
    if offset_ends is None or time_ends is None:
        return False
    return _check_offsets(segment, offset_ends, config) and _check_times(segment, time_ends)


def checked_indexes(disk: Disk, segment: Segment, config: LogConfig) -> Indexes | None:
    """The same for a segment whose indexes are needed at once: they are read, once, and handed back."""
    try:
        offsets = disk.read(segment.path_of(INDEX_SUFFIX))
        times = disk.read(segment.path_of(TIME_INDEX_SUFFIX))
        indexes = Indexes(OffsetIndex.from_bytes(offsets, segment.file.size), TimeIndex.from_bytes(times))
    except (FileNotFoundError, CorruptIndex):
        return None
    offset_ends = (offsets[:OFFSET_ENTRY_BYTES], offsets[-OFFSET_ENTRY_BYTES:]) if offsets else ()
    time_ends = (times[:TIME_ENTRY_BYTES], times[-TIME_ENTRY_BYTES:]) if times else ()
    if not _check_offsets(segment, offset_ends, config) or not _check_times(segment, time_ends):
        return None
    return indexes


def checked_transactions(disk: Disk, segment: Segment) -> TransactionIndex | None:
    """The aborted transactions of a segment that has a file of them; None when they have to be found again."""
    try:
        return TransactionIndex.from_bytes(disk.read(segment.path_of(TRANSACTION_INDEX_SUFFIX)), segment.base_offset)
    except (FileNotFoundError, CorruptIndex):
        return None


def _ends(disk: Disk, path: str, entry_bytes: int) -> tuple[bytes, ...] | None:
    """The first and last entry, nothing for an empty file; None when there is no file of whole entries."""
    try:
        file = disk.open(path)
    except FileNotFoundError:
        return None
    try:
        if file.size % entry_bytes:
            return None
        if not file.size:
            return ()
        return file.read_at(0, entry_bytes), file.read_at(file.size - entry_bytes, entry_bytes)
    finally:
        file.close()


def _header_at(segment: Segment, position: int) -> BatchHeader | None:
    try:
        return read_header(segment.file.read_at(position, HEADER_BYTES))
    except CorruptRecord:
        return None


def _check_offsets(segment: Segment, ends: tuple[bytes, ...], config: LogConfig) -> bool:
    size = segment.file.size
    last_position = 0
    if ends:
        first_offset, first_position = _OFFSET_ENTRY.unpack(ends[0])
        last_offset, last_position = _OFFSET_ENTRY.unpack(ends[1])
        if not (0 < first_position <= last_position < size and first_offset <= last_offset):
            return False
        header = _header_at(segment, last_position)
        if header is None or header.last_offset - segment.base_offset != last_offset:
            return False
    if size - last_position <= config.index_interval_bytes + config.max_message_bytes:
        return True
    return not _misses_entries(segment, last_position, config.index_interval_bytes)


def _misses_entries(segment: Segment, last_position: int, interval_bytes: int) -> bool:
    """Whether a batch after the last entry should have had one."""
    position = last_position
    while position < segment.file.size:
        if position - last_position > interval_bytes:
            return True
        header = _header_at(segment, position)
        if header is None:
            return True
        position += header.size_bytes
    return False


def _check_times(segment: Segment, ends: tuple[bytes, ...]) -> bool:
    if not ends:
        first = _header_at(segment, 0) if segment.file.size else None
        return first is None or first.max_timestamp < 0
    first_timestamp, first_offset = _TIME_ENTRY.unpack(ends[0])
    last_timestamp, last_offset = _TIME_ENTRY.unpack(ends[1])
    if not (0 <= first_timestamp <= last_timestamp and first_offset <= last_offset):
        return False
    segment.max_timestamp = last_timestamp
    segment.offset_of_max_timestamp = segment.base_offset + last_offset
    return True
