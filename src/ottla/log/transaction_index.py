"""The aborted transactions of one segment: those whose marker is in it.

On disk (`.txnindex`) an entry is 34 bytes, big endian: version (int16, 0), producer id, first offset, offset of the
marker and last stable offset after it (int64 each). Markers come in order, so their offsets rise. Entries are kept as
they are in the file; a lookup is a bisection over them.

The file is written when its segment is closed, and not at all where nothing was aborted. Like the other indexes, that
of the active segment lives in memory, and is rebuilt from the records after a crash.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from ottla.log.offset_index import CorruptIndex

VERSION = 0
_ENTRY = struct.Struct(">hqqqq")
_LAST_OFFSET = struct.Struct(">18xq8x")
ENTRY_BYTES = _ENTRY.size


class AbortedTransaction(NamedTuple):
    """`last_offset` is the marker's. All below `last_stable_offset` was decided when the marker was written."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    __slots__ = ("_data",)

    def __init__(self, data: bytes | bytearray = b"") -> None:
        self._data = bytearray(data)

    def __len__(self) -> int:
        return len(self._data) // ENTRY_BYTES

    def __iter__(self) -> Iterator[AbortedTransaction]:
        for fields in _ENTRY.iter_unpack(bytes(self._data)):
            yield AbortedTransaction(*fields[1:])

    @property
    def memory_bytes(self) -> int:
        return len(self._data)

    def append(self, aborted: AbortedTransaction) -> None:
        self._data += _ENTRY.pack(VERSION, *aborted)

    def collect(self, from_offset: int, to_offset: int, found: list[AbortedTransaction]) -> bool:
        """Add those that reach into `from_offset` up to, not including, `to_offset`.

        True when no later segment can have any: all that is below `to_offset` was decided by then.
        """
        data = self._data
        for position in range(self._first_ending_at(from_offset) * ENTRY_BYTES, len(data), ENTRY_BYTES):
            aborted = AbortedTransaction(*_ENTRY.unpack_from(data, position)[1:])
            if aborted.first_offset < to_offset:
                found.append(aborted)
            if aborted.last_stable_offset >= to_offset:
                return True
        return False

    def _first_ending_at(self, offset: int) -> int:
        """The number of the first entry whose marker is at or above an offset."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if _LAST_OFFSET.unpack_from(self._data, middle * ENTRY_BYTES)[0] < offset:
                low = middle + 1
            else:
                high = middle
        return low

    def to_bytes(self) -> bytes:
        return bytes(self._data)

    @classmethod
    def from_bytes(cls, data: bytes, base_offset: int) -> "TransactionIndex":
        """Read the file of a segment; CorruptIndex when its ends cannot be right."""
        check_ends(len(data), data[:ENTRY_BYTES], data[-ENTRY_BYTES:], base_offset)
        return cls(data)


def check_ends(size_bytes: int, first: bytes, last: bytes, base_offset: int) -> None:
    """CorruptIndex when a file of this size, with these first and last entries, cannot be a segment's."""
    if size_bytes % ENTRY_BYTES:
        raise CorruptIndex(f"transaction index: a multiple of {ENTRY_BYTES} bytes expected, {size_bytes} came")
    if not size_bytes:
        return
    for entry in (first, last):
        version, _, first_offset, last_offset, _ = _ENTRY.unpack(entry)
        if version != VERSION or not 0 <= first_offset <= last_offset or last_offset < base_offset:
            raise CorruptIndex(f"transaction index: markers from offset {base_offset} on expected, {entry.hex()} came")
    if _LAST_OFFSET.unpack(first)[0] > _LAST_OFFSET.unpack(last)[0]:
        raise CorruptIndex("transaction index: rising offsets of markers expected, the first is above the last")
