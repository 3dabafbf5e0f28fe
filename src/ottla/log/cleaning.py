"""The long work of a compaction: keys are read and batches filtered, on a workbench, in calls of a bounded size.

A call goes over a few megabytes, in pieces that a processor's cache holds; what it is at is known to the caller alone.
The files are opened by their names here: whoever compacts holds the log's `reshaping`, so they keep them meanwhile.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from ottla.log import compaction_swap
from ottla.log.cleaned_transactions import CleanedTransactions
from ottla.log.config import LogConfig
from ottla.log.index_cache import IndexCache
from ottla.log.segment import Segment
from ottla.records import BatchFilter, OffsetMap, filter_batches, map_batches, read_header, scan_headers
from ottla.records.errors import CorruptRecord, cut_batch
from ottla.runtime import Disk, File

PIECE_BYTES = 512 * 1024
CALL_BYTES = 8 * 1024 * 1024

Result = TypeVar("Result")


class Source(NamedTuple):
    """A file of records, and how much of it counts."""

    path: str
    size_bytes: int


class MapSize(NamedTuple):
    slots: int
    keys: int
    seed: bytes


class Cleaning:
    """What is known of one log while it is compacted. First the keys are read, then one group of segments after the
    other is filtered: `start`, `filter` for each of its segments, and `seal` or `drop`."""

    def __init__(self, disk: Disk, map_size: MapSize, transactions: CleanedTransactions) -> None:
        self._disk = disk
        self._map = OffsetMap(map_size.slots, map_size.keys, map_size.seed)
        self._transactions = transactions
        self._source: File | None = None
        self._filter: BatchFilter | None = None
        self._target: Segment | None = None

    # Keys.

    def read_keys(self, source: Source, position: int, start_offset: int) -> tuple[int, bool]:
        """Read the keys from `position` on; where it ended, and whether all keys fitted."""
        is_fitting = True

        def read_piece(file: File, place: int) -> int:
            nonlocal is_fitting
            used, is_fitting = _map_piece(self._map, file, place, start_offset, self._transactions)
            return used if is_fitting else 0

        return self._over(source, position, read_piece), is_fitting

    def keys_read(self) -> tuple[int, int]:
        """How many different keys there are, and the offset up to which they were read."""
        self._close_source()
        return len(self._map), self._map.latest_offset

    # Records.

    def start(self, directory: str, base_offset: int, config: LogConfig, created_ms: int, kept_offsets: bytes) -> None:
        """Begin a segment that will take the place of others."""
        known = self._transactions
        end_offset = self._map.latest_offset + 1
        self._filter = BatchFilter(self._map, known.now_ms, known.horizon_ms, end_offset, kept_offsets)
        create = compaction_swap.create_cleaned
        self._target = create(self._disk, directory, base_offset, IndexCache(), config, created_ms)

    def filter(self, source: Source, position: int) -> int:
        """Add what stays of the batches from `position` on; where it ended."""
        batch_filter, target = self._filter, self._target
        assert batch_filter is not None, "a segment was started"
        assert target is not None, "a segment was started"
        return self._over(
            source, position, lambda file, place: _filter_piece(batch_filter, file, place, target, self._transactions)
        )

    def seal(self) -> compaction_swap.Cleaned:
        """The segment is complete: everything goes to the device."""
        target, self._target = self._target, None
        assert target is not None, "a segment was started"
        try:
            return compaction_swap.seal_cleaned(self._disk, target)
        finally:
            self._close_source()
            target.close()

    def drop(self) -> None:
        """It is not to be."""
        self._close_source()
        if self._target is not None:
            self._target.close()
            self._target = None

    # Both.

    def _over(self, source: Source, position: int, work: Callable[[File, int], int]) -> int:
        file = self._open(source)
        end = min(position + CALL_BYTES, source.size_bytes)
        while position < end:
            used = work(file, position)
            if not used:
                break
            position += used
        if position >= source.size_bytes:
            self._close_source()
        return position

    def _open(self, source: Source) -> File:
        if self._source is None or self._source.path != source.path:
            self._close_source()
            self._source = self._disk.open_later(source.path, source.size_bytes)
        return self._source

    def _close_source(self) -> None:
        file, self._source = self._source, None
        if file is not None:
            file.close()


def _map_piece(
    offset_map: OffsetMap, file: File, position: int, start_offset: int, transactions: CleanedTransactions
) -> tuple[int, bool]:
    """How many bytes of whole batches were read, and whether all their keys fitted."""
    piece = file.read_at(position, PIECE_BYTES)
    used, fitted = map_batches(offset_map, piece, start_offset, transactions)
    if fitted and not used:
        batch = _read_large_batch(file, position, piece)
        used, fitted = map_batches(offset_map, batch, start_offset, transactions)
    return used, fitted


def _filter_piece(
    batch_filter: BatchFilter, file: File, position: int, target: Segment, transactions: CleanedTransactions
) -> int:
    """Append what stays of the batches at `position` to the new segment; how many bytes they were."""
    piece = file.read_at(position, PIECE_BYTES)
    kept, used = filter_batches(batch_filter, piece, transactions)
    if not used:
        kept, used = filter_batches(batch_filter, _read_large_batch(file, position, piece), transactions)
    if kept:
        end = target.file.append(kept)
        for data in kept:
            for header in scan_headers(data):
                target.note_batch(end, header.size_bytes, header.last_offset, header.max_timestamp)
                end += header.size_bytes
    for aborted in transactions.take_retained():
        target.note_aborted(aborted)
    return used


def _read_large_batch(file: File, position: int, piece: bytes) -> bytes:
    """The whole of a batch that is larger than a piece."""
    size_bytes = read_header(piece).size_bytes
    if size_bytes <= len(piece):
        raise CorruptRecord(f"a batch expected at {position} of {file.path}, something else came")
    batch = file.read_at(position, size_bytes)
    if len(batch) < size_bytes:
        raise cut_batch(position, size_bytes, len(batch))
    return batch
