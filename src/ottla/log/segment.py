"""One segment: a file of record batches, its two sparse indexes, and a memory of where recent batches begin.

Three ways lead from an offset to a position, cheapest first:
1. the batch was appended, found or served up to not long ago: its position is remembered;
2. the offset index names a batch at most `index.interval.bytes` and a batch before it;
3. from there the headers are walked, in one small read where batches are small.

The active segment's indexes are in memory. Those of closed segments are read on first use and given back when the
`IndexCache` needs the room.
"""

import struct
from bisect import bisect_left
from operator import attrgetter
from typing import NamedTuple

from ottla.log.config import LogConfig
from ottla.log.damage import scan_readable
from ottla.log.files import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    join,
    offset_name,
    write_file,
)
from ottla.log.index_cache import IndexCache
from ottla.log.offset_index import ENTRY_BYTES as OFFSET_ENTRY_BYTES
from ottla.log.offset_index import MAX_RELATIVE_OFFSET, CorruptIndex, OffsetIndex
from ottla.log.time_index import ENTRY_BYTES as TIME_ENTRY_BYTES
from ottla.log.time_index import TimeIndex
from ottla.log.transaction_index import ENTRY_BYTES as ABORTED_ENTRY_BYTES
from ottla.log.transaction_index import AbortedTransaction, TransactionIndex
from ottla.records import HEADER_BYTES, BatchHeader, CorruptRecord, read_header, scan_headers
from ottla.runtime import Disk, File

_BATCH_START = struct.Struct(">qi4xB")  # base offset, length, (leader epoch), magic
_MAGIC = 2
_SMALLEST_LENGTH = 49
_BEFORE_LENGTH_ENDS = 12
# Enough for the usual distance between two index entries.
_SCAN_BYTES = 4096 + HEADER_BYTES
# How far the next good batch is looked for behind bytes that are none; this happens on the loop.
_AROUND_DAMAGE_BYTES = 2 * 1024 * 1024
_LAST_OFFSET = attrgetter("last_offset")
_SIZE_BYTES = attrgetter("size_bytes")
# Two generations of this many positions are remembered; the older one is dropped as a whole.
_REMEMBERED = 1024
_NONE_ABORTED = TransactionIndex()


class Indexes(NamedTuple):
    offsets: OffsetIndex
    times: TimeIndex


class BrokenSegment(OSError):
    """The bytes where a batch must begin are no batch: the file was damaged after it was checked."""


class Segment:
    """`file.size` is the end of the records; nothing above the log's end offset is in the file.

    `max_timestamp` is -1 while no record has a timestamp. `first_timestamp` is None while the segment is empty.
    `aborted_bytes` is the size of the index of aborted transactions, in memory or in its file.
    """

    __slots__ = (
        "_cache",
        "_disk",
        "_indexes",
        "_old_positions",
        "_transactions",
        "_young_positions",
        "aborted_bytes",
        "base_offset",
        "bytes_since_index_entry",
        "created_ms",
        "directory",
        "file",
        "first_timestamp",
        "index_interval_bytes",
        "is_index_full",
        "max_index_bytes",
        "max_timestamp",
        "offset_of_max_timestamp",
    )

    def __init__(
        self,
        disk: Disk,
        directory: str,
        base_offset: int,
        file: File,
        cache: IndexCache,
        config: LogConfig,
        created_ms: int,
    ) -> None:
        self._disk = disk
        self._cache = cache
        self._indexes: Indexes | None = None
        self._transactions: TransactionIndex | None = None
        self.aborted_bytes = 0
        self._young_positions: dict[int, int] = {}
        self._old_positions: dict[int, int] = {}
        self.directory = directory
        self.base_offset = base_offset
        self.file = file
        self.index_interval_bytes = config.index_interval_bytes
        self.max_index_bytes = config.segment_index_bytes
        self.is_index_full = False
        self.created_ms = created_ms
        self.bytes_since_index_entry = 0
        self.max_timestamp = -1
        self.offset_of_max_timestamp = base_offset
        self.first_timestamp: int | None = None

    @property
    def size_bytes(self) -> int:
        return self.file.size

    def path_of(self, suffix: str) -> str:
        return join(self.directory, offset_name(self.base_offset, suffix))

    def index_paths(self) -> list[str]:
        """Of the two that every segment has."""
        return [self.path_of(INDEX_SUFFIX), self.path_of(TIME_INDEX_SUFFIX)]

    def paths_to_sync(self) -> list[str]:
        """All that `write_indexes` writes."""
        aborted = [self.path_of(TRANSACTION_INDEX_SUFFIX)] if self.aborted_bytes else []
        return [*self.index_paths(), *aborted]

    # Appending. Only the active segment is appended to, so its indexes are in memory.

    def append(
        self,
        chunks: "list[bytes | memoryview] | tuple[memoryview]",
        base_offset: int,
        last_offset: int,
        max_timestamp: int,
    ) -> None:
        """Append whole batches; everything that goes wrong does so before anything here has changed."""
        file = self.file
        position = file.append(chunks)
        positions = self._young_positions
        positions[base_offset] = position
        if len(positions) > _REMEMBERED:
            self._old_positions = positions
            self._young_positions = {}
        self.note_batch(position, file.size - position, last_offset, max_timestamp)

    def note_batch(self, position: int, size_bytes: int, last_offset: int, max_timestamp: int) -> None:
        """Take a batch into the indexes: the rule that decides which batches get an entry."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.offset_of_max_timestamp = last_offset
        if position == 0:
            self.first_timestamp = max_timestamp
        if self.bytes_since_index_entry > self.index_interval_bytes:
            indexes = self._indexes
            assert indexes is not None, "a segment that grows has its indexes in memory"
            base_offset = self.base_offset
            indexes.offsets.append(last_offset - base_offset, position)
            indexes.times.maybe_append(self.max_timestamp, self.offset_of_max_timestamp - base_offset)
            self.bytes_since_index_entry = size_bytes
            # One entry of the time index is held back for the largest timestamp, which is added on closing.
            self.is_index_full = (
                len(indexes.offsets) >= self.max_index_bytes // OFFSET_ENTRY_BYTES
                or len(indexes.times) >= self.max_index_bytes // TIME_ENTRY_BYTES - 1
            )
        else:
            self.bytes_since_index_entry += size_bytes

    # Reading.

    def indexes(self) -> Indexes:
        indexes = self._indexes
        if indexes is None:
            indexes = self.load_indexes()
        self._cache.touch(self)
        return indexes

    def position_of(self, offset: int) -> int:
        """Where the first batch that ends at or after `offset` begins; the end of the file when there is none."""
        position = self._young_positions.get(offset)
        if position is None:
            position = self._old_positions.get(offset)
            if position is None:
                position = self._search(offset)
        return position

    def _search(self, offset: int) -> int:
        if offset <= self.base_offset:
            return 0
        start, following = self.indexes().offsets.lookup_around(offset - self.base_offset)
        if following - start > _SCAN_BYTES and self._holds(offset, following):
            return following
        try:
            return self._walk(offset, start)
        except BrokenSegment:
            if start == 0:
                raise
            # The index pointed at something else than it should. The records decide: walk from the beginning.
            return self._walk(offset, 0)

    def _holds(self, offset: int, position: int) -> bool:
        """Whether the batch at an indexed position holds `offset`.

        Where batches are large each one is indexed, so this saves the walk over the one before it.
        """
        try:
            header = read_header(self.file.read_at(position, HEADER_BYTES))
        except CorruptRecord:
            return False
        if not self.base_offset <= header.base_offset <= offset <= header.last_offset:
            return False
        self.remember(header.base_offset, position)
        return True

    def _walk(self, offset: int, position: int) -> int:
        file = self.file
        start, end = position, file.size
        while position < end:
            chunk = file.read_at(position, _SCAN_BYTES)
            try:
                headers = scan_headers(chunk, True)
                if not headers:
                    # Larger than the chunk; its header is enough.
                    headers = [read_header(chunk)]
            except CorruptRecord:
                return self._walk_around_damage(offset, start, position)
            first_offset = headers[0].base_offset
            if first_offset < self.base_offset or (position == start > 0 and first_offset > offset):
                raise BrokenSegment(f"offset {first_offset} at {position} of {file.path}")
            number = bisect_left(headers, offset, key=_LAST_OFFSET)
            if number < len(headers) and (
                headers[number].base_offset > offset
                or (number + 1 < len(headers) and headers[number + 1].base_offset <= offset)
            ):
                number = _first_that_ends_at_or_after(headers, offset)
            position += sum(map(_SIZE_BYTES, headers[:number]))
            if number < len(headers):
                self.remember(headers[number].base_offset, position)
                return position
        return end if position == end else self._walk_around_damage(offset, start, end)

    def _walk_around_damage(self, offset: int, position: int, noticed_at: int) -> int:
        """The same where some bytes are no batch; BrokenSegment when `offset` may have been in them."""
        end = min(self.file.size, noticed_at + _AROUND_DAMAGE_BYTES)
        good_until = position
        for place, header in scan_readable(self.file, position, end, self.base_offset):
            if header.last_offset >= offset:
                if header.base_offset > offset and place != good_until:
                    break
                self.remember(header.base_offset, place)
                return place
            good_until = place + header.size_bytes
        raise BrokenSegment(f"no batch with offset {offset} at {good_until} of {self.file.path}")

    def offset_at_or_behind(self, position: int, otherwise: int) -> int:
        """The last offset of the first batch at or behind a position that the index knows."""
        offsets = self.indexes().offsets
        slot = bisect_left(offsets.positions, position)
        return self.base_offset + offsets.relative_offsets[slot] if slot < len(offsets) else otherwise

    def remember(self, base_offset: int, position: int) -> None:
        """Keep where a batch begins, for whoever asks for it next."""
        positions = self._young_positions
        positions[base_offset] = position
        if len(positions) > _REMEMBERED:
            self._old_positions = positions
            self._young_positions = {}

    def cut(self, start: int, max_bytes: int, min_one_batch: bool) -> int:
        """How much to serve from the batch at `start` when there is more than `max_bytes`.

        Ends at a batch that the index knows, if one is near enough, so that nothing is sent in vain and the next
        read needs no search. Otherwise a batch may be cut, but the first one is whole if `min_one_batch`.
        """
        boundary = self.indexes().offsets.last_position_within(start + max_bytes)
        if boundary > start:
            base_offset, length, magic = _BATCH_START.unpack(self.file.read_at(boundary, _BATCH_START.size))
            if magic == _MAGIC and length >= _SMALLEST_LENGTH and base_offset > self.base_offset:
                self.remember(base_offset, boundary)
                return boundary - start
        if not min_one_batch:
            return max_bytes
        size_bytes: int = _BATCH_START.unpack(self.file.read_at(start, _BATCH_START.size))[1] + _BEFORE_LENGTH_ENDS
        return max(max_bytes, size_bytes)

    # Aborted transactions.

    def transactions(self) -> TransactionIndex:
        """The aborted transactions whose markers are in this segment."""
        if not self.aborted_bytes:
            return _NONE_ABORTED
        if self._transactions is None:
            self._transactions = self.read_transactions()
            self.release_indexes()
        self._cache.touch(self)
        return self._transactions

    def read_transactions(self) -> TransactionIndex:
        """Read the index file of a segment; BrokenSegment when it was damaged since the start."""
        path = self.path_of(TRANSACTION_INDEX_SUFFIX)
        try:
            return TransactionIndex.from_bytes(self._disk.read(path), self.base_offset)
        except (CorruptIndex, FileNotFoundError) as error:
            raise BrokenSegment(f"{path}: {error}") from error

    def note_aborted(self, aborted: AbortedTransaction) -> None:
        """The marker of an aborted transaction was appended, or found; what is known so far is in memory."""
        if self._transactions is None:
            self._transactions = TransactionIndex()
        self._transactions.append(aborted)
        self.aborted_bytes += ABORTED_ENTRY_BYTES

    def use_transactions(self, transactions: TransactionIndex) -> None:
        """Give the segment its index for good, as `use_indexes` does."""
        self._transactions, self.aborted_bytes = transactions, transactions.memory_bytes

    # Indexes on disk.

    @property
    def has_indexes_in_memory(self) -> bool:
        return self._indexes is not None

    def use_indexes(self, indexes: Indexes) -> None:
        """Give the segment its indexes for good: they stay until `release_indexes`."""
        self._indexes = indexes

    def load_indexes(self) -> Indexes:
        """Read the index files of a closed segment, or build them in memory when they do not read."""
        try:
            self._indexes = self.read_index_files()
        except (CorruptIndex, FileNotFoundError, IsADirectoryError):
            self.rebuild_indexes()
        self.release_indexes()
        assert self._indexes is not None
        return self._indexes

    def read_index_files(self) -> Indexes:
        """CorruptIndex or FileNotFoundError when they have to be rebuilt."""
        offsets = OffsetIndex.from_bytes(self._disk.read(self.path_of(INDEX_SUFFIX)), self.file.size)
        return Indexes(offsets, TimeIndex.from_bytes(self._disk.read(self.path_of(TIME_INDEX_SUFFIX))))

    def rebuild_indexes(self) -> None:
        """Fill the indexes from the headers in the file (blocking). An offset that no segment of this base can have was
        damaged, since no CRC covers it: an index has no room for it, and a reader finds out by itself."""
        self.start_indexes()
        for position, header in scan_readable(self.file, 0, self.file.size, self.base_offset):
            if 0 <= header.last_offset - self.base_offset <= MAX_RELATIVE_OFFSET:
                self.note_batch(position, header.size_bytes, header.last_offset, header.max_timestamp)

    def start_indexes(self) -> None:
        """Begin with empty indexes in memory, but for that of aborted transactions: headers do not tell of these."""
        self._indexes = Indexes(OffsetIndex(), TimeIndex())
        self.bytes_since_index_entry = 0
        self.max_timestamp = -1
        self.offset_of_max_timestamp = self.base_offset
        self.first_timestamp = None

    def drop_indexes(self) -> None:
        """Give the memory back; the files have it all."""
        self._indexes = None
        self._transactions = None

    def release_indexes(self) -> None:
        """The segment was closed and its index files are written: from now on the cache decides."""
        size_bytes = 0 if self._transactions is None else self._transactions.memory_bytes
        if self._indexes is not None:
            size_bytes += self._indexes.offsets.memory_bytes + self._indexes.times.memory_bytes
        self._cache.admit(self, size_bytes)

    def write_indexes(self) -> None:
        """Write the index files anew (blocking, not synced). The time index ends with the largest timestamp."""
        indexes = self._indexes
        assert indexes is not None, "only indexes in memory can be written"
        indexes.times.maybe_append(self.max_timestamp, self.offset_of_max_timestamp - self.base_offset)
        write_file(self._disk, self.path_of(INDEX_SUFFIX), indexes.offsets.to_bytes())
        write_file(self._disk, self.path_of(TIME_INDEX_SUFFIX), indexes.times.to_bytes())
        self.write_transactions()

    def write_transactions(self) -> None:
        """Write the index of aborted transactions anew, unless there are none."""
        if self._transactions is not None and self.aborted_bytes:
            write_file(self._disk, self.path_of(TRANSACTION_INDEX_SUFFIX), self._transactions.to_bytes())

    def close(self) -> None:
        self._cache.forget(self)
        self.file.close()

    def __repr__(self) -> str:
        return f"Segment({self.path_of(LOG_SUFFIX)!r}, size={self.file.size})"


def _first_that_ends_at_or_after(headers: list[BatchHeader], offset: int) -> int:
    """Where damaged offsets may be among them: of the batches that claim to have it, the one that begins last."""
    ends = [number for number, header in enumerate(headers) if header.last_offset >= offset]
    owners = [number for number in ends if headers[number].base_offset <= offset]
    return max(owners, key=lambda number: headers[number].base_offset) if owners else ends[0]


def create_segment(
    disk: Disk, directory: str, base_offset: int, cache: IndexCache, config: LogConfig, now_ms: int
) -> Segment:
    """Make the files of an empty segment (blocking). Leftovers of the same name hold nothing that was acknowledged."""
    for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
        write_file(disk, join(directory, offset_name(base_offset, suffix)), b"")
    file = disk.open(join(directory, offset_name(base_offset, LOG_SUFFIX)), create=True)
    if file.size:
        file.truncate(0)
    disk.sync_directory(directory)
    segment = Segment(disk, directory, base_offset, file, cache, config, now_ms)
    segment.start_indexes()
    return segment
