"""The records of a batch, in pure Python; it is also the readable account of their format.

    record  = length:varint  attributes:int8  timestamp delta:varlong  offset delta:varint
              key length:varint key  value length:varint value  header count:varint header*
    header  = key length:varint key  value length:varint value

Varints are zigzag, a length of -1 is null (never for a header's key). Every field lies inside its record and every
record inside its payload; the order of the checks is that of `_wire.h`, so both twins find the same fault first.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ottla.records import errors
from ottla.records._pure_header import HEADER_BYTES, BatchHeader
from ottla.records.errors import Fault
from ottla.records.types import Buffer, RecordHeaders, RecordLike

_INT32_MAX = 2**31 - 1
_INT64_MIN = -(2**63)
_INT64_MAX = 2**63 - 1
_SMALLEST_RECORD = 7
_NO_TIMESTAMP = -1


class Record:
    """One record. `offset` and `timestamp` are -1 where none was given; `headers` are pairs of name and bytes."""

    __slots__ = ("headers", "key", "offset", "timestamp", "value")

    def __init__(
        self,
        offset: int = -1,
        timestamp: int = -1,
        key: Buffer | None = None,
        value: Buffer | None = None,
        headers: RecordHeaders = (),
    ) -> None:
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = headers

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return (self.offset, self.timestamp, self.key, self.value, self.headers) == (
            other.offset,
            other.timestamp,
            other.key,
            other.value,
            other.headers,
        )

    def __repr__(self) -> str:
        return (
            f"Record(offset={self.offset}, timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}, "
            f"headers={self.headers!r})"
        )


class ParsedRecord(NamedTuple):
    """A record as the walk finds it; header names are still bytes."""

    offset: int
    timestamp: int
    offset_delta: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[bytes, bytes | None]]


class _Found(Exception):
    """Carries a fault from the parser to the walk, which knows the record's index."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault


def _varint(data: bytes, position: int, end: int, bits: int = 32) -> tuple[int, int]:
    """A zigzag number of at most `bits` bits, and the position after it."""
    raw = 0
    for shift in range(0, bits, 7):
        if position >= end:
            raise _Found(Fault.VARINT)
        byte = data[position]
        position += 1
        if shift + 7 > bits and byte >> (bits - shift):
            raise _Found(Fault.VARINT)
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), position
    raise _Found(Fault.VARINT)


def _field(data: bytes, position: int, end: int, fault: Fault) -> tuple[bytes | None, int]:
    size, position = _varint(data, position, end)
    if size < 0:
        if size != -1:
            raise _Found(fault)
        return None, position
    if size > end - position:
        raise _Found(fault)
    return data[position : position + size], position + size


def _header(data: bytes, position: int, end: int) -> tuple[bytes, bytes | None, int]:
    name, position = _field(data, position, end, Fault.HEADER_KEY_LENGTH)
    if name is None:
        raise _Found(Fault.HEADER_KEY_LENGTH)
    value, position = _field(data, position, end, Fault.HEADER_VALUE_LENGTH)
    return name, value, position


def _parse(data: bytes, position: int, header: BatchHeader) -> tuple[ParsedRecord, int]:
    length, position = _varint(data, position, len(data))
    if length < _SMALLEST_RECORD - 1 or length > len(data) - position:
        raise _Found(Fault.RECORD_LENGTH)
    end = position + length
    timestamp_delta, position = _varint(data, position + 1, end, bits=64)
    offset_delta, position = _varint(data, position, end)
    key, position = _field(data, position, end, Fault.KEY_LENGTH)
    value, position = _field(data, position, end, Fault.VALUE_LENGTH)
    header_count, position = _varint(data, position, end)
    if header_count < 0 or header_count > (end - position) // 2:
        raise _Found(Fault.HEADER_COUNT)
    headers: list[tuple[bytes, bytes | None]] = []
    for _ in range(header_count):
        name, header_value, position = _header(data, position, end)
        headers.append((name, header_value))
    if position != end:
        raise _Found(Fault.RECORD_SIZE)
    offset = header.base_offset + offset_delta
    if not _INT64_MIN <= offset <= _INT64_MAX:
        raise _Found(Fault.OFFSET_RANGE)
    timestamp = header.max_timestamp if header.has_log_append_time else header.base_timestamp + timestamp_delta
    if not _INT64_MIN <= timestamp <= _INT64_MAX:
        raise _Found(Fault.TIMESTAMP_RANGE)
    return ParsedRecord(offset, timestamp, offset_delta, key, value, headers), end


def walk(payload: Buffer, header: BatchHeader) -> Iterator[ParsedRecord]:
    """The records of a decompressed payload, checked one by one; CorruptRecord at the first fault."""
    data = bytes(payload)
    if not 0 <= header.record_count <= len(data) // _SMALLEST_RECORD:
        raise errors.record_fault(Fault.RECORD_COUNT, 0)
    position = 0
    for index in range(header.record_count):
        try:
            record, position = _parse(data, position, header)
        except _Found as found:
            raise errors.record_fault(found.fault, index) from None
        yield record
    if position != len(data):
        raise errors.record_fault(Fault.TRAILING_BYTES, header.record_count)


def decode_records(payload: Buffer, header: BatchHeader) -> list[Record]:
    """The records of a decompressed payload."""
    return [
        Record(
            record.offset,
            record.timestamp,
            record.key,
            record.value,
            tuple((name.decode("utf-8", "replace"), value) for name, value in record.headers),
        )
        for record in walk(payload, header)
    ]


def check_records(payload: Buffer, header: BatchHeader) -> None:
    """Walk all records: lengths, count, and offset deltas that count from 0 to the header's last offset delta."""
    for index, record in enumerate(walk(payload, header)):
        if record.offset_delta != index:
            raise errors.record_fault(Fault.OFFSET_ORDER, index)
    if header.last_offset_delta != header.record_count - 1:
        raise errors.last_offset_delta_differs(header.last_offset_delta, header.record_count)


def find_refused(
    payload: Buffer, header: BatchHeader, needs_key: bool, earliest_ms: int, latest_ms: int, limit: int
) -> tuple[list[int], list[int]]:
    """The places of records without a key, where one is needed, and of other records whose time is out of limits.

    The walk ends with the record that makes `limit` of them. -1, which is no time, is within all limits.
    """
    keyless: list[int] = []
    mistimed: list[int] = []
    records = enumerate(walk(payload, header))
    while len(keyless) + len(mistimed) < limit and (found := next(records, None)) is not None:
        place, record = found
        if needs_key and record.key is None:
            keyless.append(place)
        elif record.timestamp != _NO_TIMESTAMP and not earliest_ms <= record.timestamp <= latest_ms:
            mistimed.append(place)
    return keyless, mistimed


def first_at_or_after(payload: Buffer, header: BatchHeader, target_ms: int) -> tuple[int, int] | None:
    """Offset and timestamp of the first record whose timestamp is not before `target_ms`."""
    for record in walk(payload, header):
        if record.timestamp >= target_ms:
            return record.offset, record.timestamp
    return None


def latest_timestamp(payload: Buffer, header: BatchHeader) -> tuple[int, int]:
    """Offset and timestamp of the first record with the largest timestamp; (-1, -1) without records."""
    records = [(record.timestamp, record.offset) for record in walk(payload, header)]
    if not records:
        return -1, -1
    timestamp, offset = max(records, key=lambda pair: pair[0])
    return offset, timestamp


def put_varint(out: bytearray, value: int) -> None:
    raw = value << 1 if value >= 0 else (~value << 1) | 1
    while raw >= 0x80:
        out.append((raw & 0x7F) | 0x80)
        raw >>= 7
    out.append(raw)


def _as_bytes(data: Buffer | None) -> bytes | None:
    if data is None or type(data) is bytes:
        return data
    return bytes(memoryview(data))


def _put_field(out: bytearray, data: bytes | None) -> None:
    if data is None:
        out.append(0x01)
    else:
        put_varint(out, len(data))
        out += data


def encode_record(
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[bytes, bytes | None]],
) -> bytearray:
    """One record with its length before it."""
    body = bytearray(1)
    put_varint(body, timestamp_delta)
    put_varint(body, offset_delta)
    _put_field(body, key)
    _put_field(body, value)
    put_varint(body, len(headers))
    for name, header_value in headers:
        _put_field(body, name)
        _put_field(body, header_value)
    record = bytearray()
    put_varint(record, len(body))
    record += body
    return record


class RecordEncoder:
    """Grows the payload of one batch record by record. A refused record leaves it as it was."""

    def __init__(self) -> None:
        self._data = bytearray()
        self.record_count = 0
        self.last_offset_delta = -1
        self.base_timestamp = -1
        self.max_timestamp = -1

    @property
    def size_bytes(self) -> int:
        """The size of the batch so far, if it is not compressed."""
        return len(self._data) + HEADER_BYTES

    def _append(
        self,
        timestamp: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: Iterable[tuple[str, Buffer | None]],
        offset_delta: int,
    ) -> None:
        if not _INT64_MIN <= timestamp <= _INT64_MAX:
            raise OverflowError(f"a 64-bit timestamp expected, {timestamp} came")
        base_timestamp = self.base_timestamp if self.record_count else timestamp
        if not _INT64_MIN <= timestamp - base_timestamp <= _INT64_MAX:
            raise errors.timestamp_distance(base_timestamp, timestamp)
        if not self.last_offset_delta < offset_delta <= _INT32_MAX:
            raise ValueError(f"an offset delta after {self.last_offset_delta} expected, {offset_delta} came")
        pairs = [(str.encode(name, "utf-8"), _as_bytes(header_value)) for name, header_value in headers]
        record = encode_record(timestamp - base_timestamp, offset_delta, _as_bytes(key), _as_bytes(value), pairs)
        if len(self._data) + len(record) > _INT32_MAX - HEADER_BYTES:
            raise errors.payload_too_large(len(self._data) + len(record))
        self._data += record
        self.max_timestamp = max(self.max_timestamp, timestamp) if self.record_count else timestamp
        self.base_timestamp = base_timestamp
        self.last_offset_delta = offset_delta
        self.record_count += 1

    def append(
        self,
        timestamp: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: Iterable[tuple[str, Buffer | None]] = (),
    ) -> int:
        """Add a record with the next offset; gives the size of the batch with it, uncompressed."""
        self._append(timestamp, key, value, headers, self.last_offset_delta + 1)
        return self.size_bytes

    def append_at(
        self,
        offset_delta: int,
        timestamp: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: Iterable[tuple[str, Buffer | None]] = (),
    ) -> int:
        """Add a record at an offset of its own, after the last one's (a compacted batch has gaps)."""
        self._append(timestamp, key, value, headers, offset_delta)
        return self.size_bytes

    def extend(
        self, records: Iterable[RecordLike], default_timestamp: int = -1, base_offset: int | None = None
    ) -> None:
        """Add records; those without a timestamp get the default. With a base offset they keep their offsets."""
        for record in records:
            timestamp = default_timestamp if record.timestamp == -1 else record.timestamp
            offset_delta = self.last_offset_delta + 1 if base_offset is None else record.offset - base_offset
            if not _INT64_MIN <= offset_delta <= _INT64_MAX:
                raise OverflowError(f"a 64-bit offset delta expected, {record.offset} after {base_offset} came")
            self._append(timestamp, record.key, record.value, record.headers, offset_delta)

    def payload(self) -> bytes:
        """The records so far, as bytes of their own."""
        return bytes(self._data)
