"""Rows of the last tasks of a process, for tasks that read the same ranges again.

A streaming query whose plan has the stream in several places reads each range in as many tasks. They run at about the
same time, and mostly in the same few processes: the first of them fetches and parses, the others are given the same
rows. Offsets of a micro-batch are fixed, so the rows are the same whenever they are read in the same run of the query.

A table that each micro-batch reads anew is kept, too, until its topic has more records. What compaction takes from it
meanwhile has no effect on the last value of a key.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa

_MOST_READINGS: Final = 8
_MOST_BYTES: Final = 32 * 1024 * 1024

# What was read, its rows and their size; the last one was used last.
_readings: list[tuple[Any, list[pa.RecordBatch], int]] = []


def kept(reading: Any, read: Callable[[], Iterator[pa.RecordBatch]], most_bytes: int) -> Iterator[pa.RecordBatch]:
    """The rows of a reading: those that are kept, or those that `read` gives, which are kept if they are no larger."""
    for number, (known, batches, _) in enumerate(_readings):
        if known == reading:
            _readings.append(_readings.pop(number))
            yield from batches
            return
    batches, size_bytes = [], 0
    for batch in read():
        size_bytes += batch.nbytes
        if size_bytes <= most_bytes:
            batches.append(batch)
        else:
            batches.clear()
        yield batch
    if size_bytes <= most_bytes:
        _keep(reading, batches, size_bytes)


def _keep(reading: Any, batches: list[pa.RecordBatch], size_bytes: int) -> None:
    _readings.append((reading, batches, size_bytes))
    while len(_readings) > _MOST_READINGS or sum(size for _, _, size in _readings) > _MOST_BYTES:
        del _readings[0]
