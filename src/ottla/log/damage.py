"""Bytes of a segment that are no batch any more, and how the batches behind them are found again.

A disk may change bytes that were stored and synced. What was destroyed is gone, and nothing else may go with it:

| where                                  | what recovery does                                                        |
|----------------------------------------|---------------------------------------------------------------------------|
| below the recovery point, clean stop   | the bad bytes stay where they are; the batches behind them are kept       |
| the same, but nothing good follows     | a whole batch with a wrong CRC stays, anything else at the end is cut off |
| above the recovery point               | the log ends there: what a crash tore was never promised to be durable    |

Offsets never change, so a reader of a destroyed batch gets CORRUPT_MESSAGE or a batch with a wrong CRC, as with Kafka,
and one that asks for any other offset gets its records.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from ottla.log.batch_scan import CHUNK_BYTES, scan_batches
from ottla.records import HEADER_BYTES, BatchHeader, check_crc, read_header
from ottla.records.errors import CorruptRecord
from ottla.runtime import File

_BASE_OFFSET = struct.Struct(">q")
_MAGIC = b"\x02"
_MAGIC_AT = 16


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that are no good batch, and which offsets may have been in them; they were `cut` off or left in place."""

    path: str
    position: int
    size_bytes: int
    first_offset: int
    next_offset: int | None
    cut: bool

    def __str__(self) -> str:
        last = "the end" if self.next_offset is None else f"offset {self.next_offset - 1}"
        what = "were cut off" if self.cut else "are damaged and stay unreadable"
        offsets = f"from offset {self.first_offset} to {last}"
        return f"{self.path}: {self.size_bytes} bytes at {self.position}, {offsets}, {what}"


def find_next_batch(file: File, position: int, end: int, base_offset: int) -> tuple[int, BatchHeader] | None:
    """The first whole batch at or after `position` that has a right CRC and begins at `base_offset` or later."""
    upper = base_offset >> 32
    halves = tuple(struct.pack(">I", half & 0xFFFF_FFFF) for half in (upper, upper + 1))
    while end - position >= HEADER_BYTES:
        chunk = file.read_at(position, min(CHUNK_BYTES, end - position))
        at = chunk.find(_MAGIC, _MAGIC_AT)
        while at >= 0:
            start = at - _MAGIC_AT
            # Few bytes that are no header look like one: the upper half of the base offset, and no negative length.
            if chunk[start : start + 4] in halves and chunk[start + 8] < 0x80:
                (found_offset,) = _BASE_OFFSET.unpack_from(chunk, start)
                header = _good_batch_at(file, position + start, end) if found_offset >= base_offset else None
                if header is not None:
                    return position + start, header
            at = chunk.find(_MAGIC, at + 1)
        if len(chunk) < HEADER_BYTES:
            return None
        position += len(chunk) - HEADER_BYTES + 1
    return None


def _good_batch_at(file: File, position: int, end: int) -> BatchHeader | None:
    header = _header_at(file, position, end)
    if header is None:
        return None
    batch = file.read_at(position, header.size_bytes)
    try:
        return header if check_crc(batch, 0, header) else None
    except CorruptRecord:
        return None


def _header_at(file: File, position: int, end: int) -> BatchHeader | None:
    """The header of a batch that ends before `end`, by its own account."""
    try:
        header = read_header(file.read_at(position, HEADER_BYTES))
    except CorruptRecord:
        return None
    return header if position + header.size_bytes <= end else None


def scan_readable(file: File, position: int, end: int, base_offset: int) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of every batch that can be told apart, damage left out; `base_offset` is the smallest there.

    CRCs are only looked at where something is wrong. A batch may be among them whose offsets are damaged: what comes
    before and after it is not.
    """
    certain = expected = base_offset
    last = None
    while position < end:
        for place, header in scan_batches(file, position, end, verify=False):
            if header.base_offset >= expected:
                certain = expected
            elif header.base_offset < certain or _good_batch_at(file, place, end) is None:
                break
            yield place, header
            last, expected, position = place, header.next_offset, place + header.size_bytes
        if position >= end:
            return
        # The batch before may be the one whose length is wrong.
        is_suspect = last is not None and _good_batch_at(file, last, end) is None
        following = _following(file, last if is_suspect and last is not None else position, end, certain)
        if following is None:
            return
        position, last = following[0], None
        expected = certain


def _following(file: File, position: int, end: int, base_offset: int) -> tuple[int, BatchHeader] | None:
    """The next good batch behind bad bytes at `position`: where these say that they end, or wherever there is one."""
    bad = _header_at(file, position, end)
    if bad is not None:
        after = position + bad.size_bytes
        header = _good_batch_at(file, after, end)
        if header is not None and header.base_offset >= base_offset:
            return after, header
    return find_next_batch(file, position + 1, end, base_offset)


def batches_to_keep(
    file: File, expected_offset: int, offset_limit: int, trusted_offset: int, damage: list[Damage]
) -> Iterator[tuple[int, BatchHeader, bool]]:
    """(position, header, whether it is good) of the batches that recovery keeps; `damage` grows by what lies between.

    Below `trusted_offset` everything was on the device once. Ends in front of what has to be cut off.
    """
    position, end = 0, file.size
    while position < end:
        for place, header in scan_batches(file, position, end, verify=True):
            # The CRC does not cover the base offset.
            if not expected_offset <= header.base_offset <= header.last_offset <= offset_limit:
                break
            if expected_offset < trusted_offset and _lies_about_its_offset(file, place, end, header, expected_offset):
                break
            yield place, header, True
            expected_offset, position = header.next_offset, place + header.size_bytes
        if position >= end or expected_offset >= trusted_offset:
            return
        following = _following(file, position, end, expected_offset)
        bad = _header_at(file, position, end)
        if bad is not None and _is_kept(bad, position, end, expected_offset, following, trusted_offset):
            damage.append(Damage(file.path, position, bad.size_bytes, bad.base_offset, bad.next_offset, cut=False))
            yield position, bad, False
            expected_offset, position = bad.next_offset, position + bad.size_bytes
        elif following is not None:
            start, header = following
            size_bytes = start - position
            damage.append(Damage(file.path, position, size_bytes, expected_offset, header.base_offset, cut=False))
            position = start
        else:
            return


def _lies_about_its_offset(file: File, position: int, end: int, header: BatchHeader, expected_offset: int) -> bool:
    """A batch that leaves a gap, and that the one behind it contradicts."""
    if header.base_offset == expected_offset:
        return False
    after = _good_batch_at(file, position + header.size_bytes, end)
    return after is not None and expected_offset <= after.base_offset < header.next_offset


def _is_kept(
    bad: BatchHeader,
    position: int,
    end: int,
    expected_offset: int,
    following: tuple[int, BatchHeader] | None,
    trusted_offset: int,
) -> bool:
    """Whether a bad batch stays in its place under its own offsets: when what is around it confirms them."""
    after = position + bad.size_bytes
    if following is None:
        fits, next_offset = after == end, trusted_offset
    else:
        fits, next_offset = following[0] == after, following[1].base_offset
    is_consistent = bad.record_count == bad.last_offset_delta + 1
    return fits and is_consistent and bad.base_offset == expected_offset and bad.next_offset <= next_offset
