"""The sparse index from timestamps to offsets of one segment.

On disk an entry is 12 bytes, big endian: a timestamp (int64) and the relative offset (int32) of the last record of
the batch where that timestamp, the largest so far, was first reached. So every record before that batch is older
than the timestamp. Timestamps rise strictly, offsets rise.
"""

import sys
from array import array
from bisect import bisect_right

from ottla.log.offset_index import CorruptIndex, columns_of, rows_of

ENTRY_BYTES = 12

_HIGH, _LOW = (1, 0) if sys.byteorder == "little" else (0, 1)
assert array("q").itemsize == 8, "timestamps are 64-bit"


class TimeIndex:
    __slots__ = ("relative_offsets", "timestamps")

    def __init__(self) -> None:
        self.timestamps = array("q")
        self.relative_offsets = array("I")

    def __len__(self) -> int:
        return len(self.timestamps)

    @property
    def memory_bytes(self) -> int:
        return ENTRY_BYTES * len(self.timestamps)

    def maybe_append(self, timestamp: int, relative_offset: int) -> None:
        """Add an entry unless the timestamp is no larger than the last one's; -1, "none", is never added."""
        if timestamp > (self.timestamps[-1] if self.timestamps else -1):
            self.timestamps.append(timestamp)
            self.relative_offsets.append(relative_offset)

    def lookup(self, timestamp: int) -> int:
        """A relative offset; all records before the batch that ends there are older than `timestamp`."""
        slot = bisect_right(self.timestamps, timestamp)
        return self.relative_offsets[slot - 1] if slot else 0

    def to_bytes(self) -> bytes:
        halves = array("I", self.timestamps.tobytes())
        return rows_of([halves[_HIGH::2], halves[_LOW::2], self.relative_offsets])

    @classmethod
    def from_bytes(cls, data: bytes) -> "TimeIndex":
        if len(data) % ENTRY_BYTES:
            raise CorruptIndex(f"time index: a multiple of {ENTRY_BYTES} bytes expected, {len(data)} came")
        index = cls()
        high, low, index.relative_offsets = columns_of(data, 3)
        halves = array("I", bytes(8 * len(high)))
        halves[_HIGH::2] = high
        halves[_LOW::2] = low
        index.timestamps = array("q", halves.tobytes())
        if len(index) and not (
            0 <= index.timestamps[0] <= index.timestamps[-1] and index.relative_offsets[0] <= index.relative_offsets[-1]
        ):
            raise CorruptIndex(
                f"time index: rising timestamps expected, first is {index.timestamps[0]}, "
                f"last is {index.timestamps[-1]}"
            )
        return index
