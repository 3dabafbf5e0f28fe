"""The 61-byte header of a batch, in pure Python: reading it, checking it, and the few fields that are rewritten.

0 base offset int64          12 leader epoch int32      27 base timestamp int64    51 producer epoch int16
8 length int32 (after here)  16 magic int8              35 max timestamp int64     53 base sequence int32
                             17 crc uint32 (after here) 43 producer id int64       57 record count int32
                             21 attributes int16
                             23 last offset delta int32                            61 records
"""

import struct

from crc32c import crc32c as _package_crc32c

from ottla.records import errors
from ottla.records._pure_header import HEADER_BYTES, BatchHeader
from ottla.records.types import Buffer

_HEADER = struct.Struct(">qiibIhiqqqhii")
_OFFSET_AND_EPOCH = struct.Struct(">q4xi")
_CRC = struct.Struct(">I")
_ATTRIBUTES = struct.Struct(">h")
_TIMESTAMP = struct.Struct(">q")
_AFTER_CRC = struct.Struct(">hiqqqhii")
_BEFORE_CRC = struct.Struct(">qiibI")

_BEFORE_LENGTH_ENDS = 12
_SMALLEST_LENGTH = HEADER_BYTES - _BEFORE_LENGTH_ENDS
_LENGTH_AT = 8
_MAGIC_AT = 16
_CRC_AT = 17
_CRC_FROM = 21
_MAX_TIMESTAMP_AT = 35
_LOG_APPEND_TIME_BIT = 0x08
_LARGEST_PAYLOAD = 2**31 - 1 - HEADER_BYTES


def _view(buffer: Buffer, *, writable: bool = False) -> memoryview:
    view = memoryview(buffer)
    if not view.c_contiguous:
        raise BufferError("memoryview: underlying buffer is not C-contiguous")
    if writable and view.readonly:
        raise BufferError("Object is not writable.")
    return view.cast("B")


def _need(position: int) -> None:
    if position < 0:
        raise ValueError(f"a position of 0 or more expected, {position} came")


def _header_at(view: memoryview, position: int) -> BatchHeader:
    remaining = len(view) - position
    if remaining <= _MAGIC_AT:
        raise errors.short_header(position, max(remaining, 0), HEADER_BYTES)
    if view[position + _MAGIC_AT] != 2:
        magic = view[position + _MAGIC_AT]
        raise errors.unknown_magic(position, magic - 256 if magic > 127 else magic)
    if remaining < HEADER_BYTES:
        raise errors.short_header(position, remaining, HEADER_BYTES)
    header = BatchHeader.__new__(BatchHeader)
    (
        header.base_offset,
        length,
        header.partition_leader_epoch,
        header.magic,
        header.crc,
        header.attributes,
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.record_count,
    ) = _HEADER.unpack_from(view, position)
    if length < _SMALLEST_LENGTH:
        raise errors.impossible_length(position, length, _SMALLEST_LENGTH)
    header.size_bytes = length + _BEFORE_LENGTH_ENDS
    return header


def _scan(buffer: Buffer, ignore_partial_tail: bool, check: bool) -> list[BatchHeader]:
    headers: list[BatchHeader] = []
    position = 0
    with _view(buffer) as view:
        while position < len(view):
            remaining = len(view) - position
            if ignore_partial_tail and remaining < HEADER_BYTES:
                break
            header = _header_at(view, position)
            if header.size_bytes > remaining:
                if ignore_partial_tail:
                    break
                raise errors.cut_batch(position, header.size_bytes, remaining)
            if check:
                computed = crc32c(view[position + _CRC_FROM : position + header.size_bytes])
                if computed != header.crc:
                    raise errors.wrong_crc(position, header.crc, computed)
            headers.append(header)
            position += header.size_bytes
    return headers


def crc32c(data: Buffer, value: int = 0) -> int:
    """The CRC-32C of `data`, going on from `value`."""
    return _package_crc32c(data, value)


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`; the rest of its batch need not be in the buffer."""
    _need(position)
    return _header_at(_view(buffer), position)


def scan_headers(buffer: Buffer, ignore_partial_tail: bool = False) -> list[BatchHeader]:
    """The headers of a buffer of whole batches."""
    return _scan(buffer, ignore_partial_tail, False)


def inspect_batches(buffer: Buffer, ignore_partial_tail: bool = False) -> list[BatchHeader]:
    """The headers of a buffer of whole batches, each one's CRC checked."""
    return _scan(buffer, ignore_partial_tail, True)


def check_crc(buffer: Buffer, position: int, header: BatchHeader) -> bool:
    """Whether the whole batch is there and its bytes give the CRC in `header`."""
    _need(position)
    view = _view(buffer)
    if header.size_bytes < HEADER_BYTES or header.size_bytes > len(view) - position:
        return False
    return crc32c(view[position + _CRC_FROM : position + header.size_bytes]) == header.crc


def assign_offset(buffer: Buffer, position: int, base_offset: int, leader_epoch: int) -> None:
    """Write base offset and leader epoch of the batch at `position`; both lie outside the CRC."""
    _need(position)
    view = _view(buffer, writable=True)
    if len(view) - position < HEADER_BYTES:
        raise errors.short_header(position, max(len(view) - position, 0), HEADER_BYTES)
    length = bytes(view[position + _LENGTH_AT : position + _BEFORE_LENGTH_ENDS])
    packed = _packed(_OFFSET_AND_EPOCH, base_offset, leader_epoch)
    view[position : position + _MAGIC_AT] = packed[:_LENGTH_AT] + length + packed[_BEFORE_LENGTH_ENDS:]


def set_log_append_time(buffer: Buffer, position: int, timestamp_ms: int) -> None:
    """Give the batch at `position` log-append time, and the CRC that goes with it."""
    _need(position)
    view = _view(buffer, writable=True)
    header = _header_at(view, position)
    if header.size_bytes > len(view) - position:
        raise errors.cut_batch(position, header.size_bytes, len(view) - position)
    timestamp = _packed(_TIMESTAMP, timestamp_ms)
    _ATTRIBUTES.pack_into(view, position + _CRC_FROM, header.attributes | _LOG_APPEND_TIME_BIT)
    view[position + _MAX_TIMESTAMP_AT : position + _MAX_TIMESTAMP_AT + 8] = timestamp
    computed = crc32c(view[position + _CRC_FROM : position + header.size_bytes])
    _CRC.pack_into(view, position + _CRC_AT, computed)


def frame_batch(
    payload: Buffer,
    base_offset: int,
    leader_epoch: int,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    record_count: int,
) -> bytes:
    """A whole batch: the header with its CRC, then `payload`, which is compressed already if it is to be."""
    view = _view(payload)
    if len(view) > _LARGEST_PAYLOAD:
        raise errors.payload_too_large(len(view))
    checked = _packed(
        _AFTER_CRC,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )
    crc = crc32c(view, crc32c(checked))
    return _packed(_BEFORE_CRC, base_offset, _SMALLEST_LENGTH + len(view), leader_epoch, 2, crc) + checked + view


def frame_passing_batch(payload: Buffer, *fields: int) -> Buffer:
    """`frame_batch` for a batch that is sent and forgotten; there is no difference here."""
    return frame_batch(payload, *fields)


def joined(parts: list[bytes]) -> Buffer:
    """One piece of several."""
    return b"".join(parts)


def _packed(layout: struct.Struct, *fields: int) -> bytes:
    try:
        return layout.pack(*fields)
    except struct.error as error:
        raise OverflowError(f"a number does not fit its field in the batch header: {error}") from None
