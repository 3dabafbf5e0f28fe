"""Holes that a power cut leaves: a segment that was not flushed lost its end, or all of it, and the next is there."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

from tests.unit.log.support import read_all

from ottla.log.log import Log
from ottla.records import scan_headers


class Written(Protocol):
    """A batch as it was appended."""

    data: bytes

    @property
    def next_offset(self) -> int: ...


def has_hole(log: Log) -> bool:
    for segment, following in pairwise(log.segments):
        headers = scan_headers(segment.file.read_at(0, segment.size_bytes))
        end_offset = headers[-1].next_offset if headers else segment.base_offset
        if end_offset < following.base_offset:
            return True
    return False


def check_survivors(log: Log, batches: Sequence[Written], flushed_offset: int) -> None:
    """Nothing that was flushed is in the hole, and what is left is as it was, in its order."""
    data, position, found = read_all(log), 0, []
    for header in scan_headers(data):
        found.append(data[position : position + header.size_bytes])
        position += header.size_bytes
    start = log.log_start_offset
    kept = [batch.data for batch in batches if start < batch.next_offset <= flushed_offset]
    assert found[: len(kept)] == kept
    rest = iter([batch.data for batch in batches if batch.next_offset > start])
    assert all(any(survivor == batch for batch in rest) for survivor in found)
