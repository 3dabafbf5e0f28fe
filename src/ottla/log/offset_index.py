"""The sparse index from offsets to positions of one segment.

On disk an entry is 8 bytes, big endian: the last offset of a batch relative to the segment's base offset (int32)
and the position of that batch in the file (int32). Both columns rise strictly. In memory they are two arrays, so
that a lookup is one bisection in C.

The file is written when its segment is closed. The index of the active segment lives in memory only: after a crash
it is rebuilt from the records, which are scanned anyway.
"""

import sys
from array import array
from bisect import bisect_right

ENTRY_BYTES = 8
MAX_RELATIVE_OFFSET = 2**31 - 1

_SWAP = sys.byteorder == "little"
assert array("I").itemsize == 4, "index columns are 32-bit"


class CorruptIndex(ValueError):
    """An index file breaks its own rules and has to be rebuilt from the records."""


def columns_of(data: bytes, column_count: int) -> list["array[int]"]:
    """Split rows of big-endian 32-bit numbers into columns."""
    rows = array("I", data)
    if _SWAP:
        rows.byteswap()
    return [rows[column::column_count] for column in range(column_count)]


def rows_of(columns: list["array[int]"]) -> bytes:
    """The reverse of `columns_of`."""
    rows = array("I", bytes(4 * len(columns) * len(columns[0])))
    for number, column in enumerate(columns):
        rows[number :: len(columns)] = column
    if _SWAP:
        rows.byteswap()
    return rows.tobytes()


class OffsetIndex:
    """`relative_offsets[i]` is the last offset of the batch at `positions[i]`."""

    __slots__ = ("positions", "relative_offsets")

    def __init__(self) -> None:
        self.relative_offsets = array("I")
        self.positions = array("I")

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def memory_bytes(self) -> int:
        return ENTRY_BYTES * len(self.positions)

    def append(self, relative_offset: int, position: int) -> None:
        self.relative_offsets.append(relative_offset)
        self.positions.append(position)

    def lookup(self, relative_offset: int) -> int:
        """The position of a batch that begins at or before the one holding the offset, as near as is known."""
        slot = bisect_right(self.relative_offsets, relative_offset)
        return self.positions[slot - 1] if slot else 0

    def lookup_around(self, relative_offset: int) -> tuple[int, int]:
        """What `lookup` finds, and the next position that is known: the batch that holds the offset begins after the
        first and at the second at the latest. The second is -1 when the index ends before."""
        slot = bisect_right(self.relative_offsets, relative_offset)
        positions = self.positions
        return (positions[slot - 1] if slot else 0), (positions[slot] if slot < len(positions) else -1)

    def last_position_within(self, limit: int) -> int:
        """The largest indexed position that is at most `limit`; 0 when there is none."""
        slot = bisect_right(self.positions, limit)
        return self.positions[slot - 1] if slot else 0

    def to_bytes(self) -> bytes:
        return rows_of([self.relative_offsets, self.positions])

    @classmethod
    def from_bytes(cls, data: bytes, size_bytes: int) -> "OffsetIndex":
        """Read the file of a segment of `size_bytes`; CorruptIndex when its ends cannot be right.

        Only the ends are checked, as this may run on the loop; a reader does not trust a position before it has
        seen the batch there.
        """
        if len(data) % ENTRY_BYTES:
            raise CorruptIndex(f"offset index: a multiple of {ENTRY_BYTES} bytes expected, {len(data)} came")
        index = cls()
        index.relative_offsets, index.positions = columns_of(data, 2)
        if len(index) and not (
            0 < index.positions[0] <= index.positions[-1] < size_bytes
            and index.relative_offsets[0] <= index.relative_offsets[-1] <= MAX_RELATIVE_OFFSET
        ):
            raise CorruptIndex(
                f"offset index: rising positions from 1 to {size_bytes - 1} expected, first is {index.positions[0]}, "
                f"last is {index.positions[-1]}"
            )
        return index
