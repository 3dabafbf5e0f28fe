"""From records to Arrow buffers and back, in pure Python: the same buffers and payloads as the compiled twin's."""

import struct
from collections.abc import Sequence

from ottla.records import errors
from ottla.records._pure_header import HEADER_BYTES, BatchHeader
from ottla.records._pure_records import encode_record, walk
from ottla.records.errors import Fault
from ottla.records.types import BinaryColumn, Buffer, DecodedColumns, EncodedRows, ListColumn, NumberColumn

_INT32_MAX = 2**31 - 1
_INT64_MIN = -(2**63)
_INT64_MAX = 2**63 - 1


class _Binary:
    """One growing binary column."""

    def __init__(self) -> None:
        self.offsets = [0]
        self._data = bytearray()
        self._valid: list[bool] = []

    def put(self, data: bytes | None) -> None:
        if data is not None:
            if len(self._data) + len(data) > _INT32_MAX:
                raise errors.column_full()
            self._data += data
        self._valid.append(data is not None)
        self.offsets.append(len(self._data))

    def finish(self) -> BinaryColumn:
        bitmap = bytearray((len(self._valid) + 7) // 8)
        for row, valid in enumerate(self._valid):
            bitmap[row >> 3] |= valid << (row & 7)
        null_count = self._valid.count(False)
        return BinaryColumn(
            bytes(bitmap) if null_count else None, _numbers("i", self.offsets), bytes(self._data), null_count
        )


def _numbers(kind: str, numbers: list[int]) -> bytes:
    return struct.pack(f"={len(numbers)}{kind}", *numbers)


class ArrowDecoder:
    """Collects records as Arrow buffers. After an exception the decoder is spent.

    Rows outside [first_offset, end_offset) are left out; timestamps are multiplied by `timestamp_factor`.
    """

    def __init__(self, first_offset: int, end_offset: int, timestamp_factor: int, with_headers: bool) -> None:
        self._first_offset = first_offset
        self._end_offset = end_offset
        self._factor = timestamp_factor
        self._with_headers = with_headers
        self._key = _Binary()
        self._value = _Binary()
        self._header_name = _Binary()
        self._header_value = _Binary()
        self._offset: list[int] = []
        self._timestamp: list[int] = []
        self._timestamp_type: list[int] = []
        self._header_offsets = [0]

    def _scaled(self, timestamp: int, index: int) -> int:
        if self._factor == 1:
            return timestamp
        if abs(timestamp) > _INT64_MAX // self._factor:
            raise errors.record_fault(Fault.TIMESTAMP_RANGE, index)
        return timestamp * self._factor

    def reserve(self, rows: int, payload_bytes: int) -> None:
        """Room for rows that come; lists of Python make it by themselves."""

    def add(self, payload: Buffer, header: BatchHeader) -> None:
        """The records of one decompressed payload, as further rows."""
        for index, record in enumerate(walk(payload, header)):
            if not self._first_offset <= record.offset < self._end_offset:
                continue
            timestamp = self._scaled(record.timestamp, index)
            self._key.put(record.key)
            self._value.put(record.value)
            self._offset.append(record.offset)
            self._timestamp.append(timestamp)
            self._timestamp_type.append(int(header.has_log_append_time))
            for name, value in record.headers if self._with_headers else ():
                self._header_name.put(name.decode("utf-8", "replace").encode())
                self._header_value.put(value)
            self._header_offsets.append(len(self._header_name.offsets) - 1)

    def finish(self) -> DecodedColumns:
        """The columns; the decoder is spent."""
        return DecodedColumns(
            row_count=len(self._offset),
            key=self._key.finish(),
            value=self._value.finish(),
            offset=_numbers("q", self._offset),
            timestamp=_numbers("q", self._timestamp),
            timestamp_type=_numbers("i", self._timestamp_type),
            header_offsets=_numbers("i", self._header_offsets),
            header_count=len(self._header_name.offsets) - 1,
            header_name=self._header_name.finish(),
            header_value=self._header_value.finish(),
        )


def _loaded(buffer: Buffer, least_bytes: int, what: str) -> memoryview:
    view = memoryview(buffer).cast("B")
    if len(view) < least_bytes:
        raise errors.short_column(what)
    return view


class _Rows:
    """What all columns have: rows that may be null. A column that is not there is null in every row."""

    def __init__(self, source: BinaryColumn | NumberColumn | ListColumn | None, rows: int, what: str) -> None:
        self._present = source is not None
        self.first_row = 0
        self._validity: memoryview | None = None
        if source is None:
            return
        if source.first_row < 0 or rows < 0:
            raise errors.short_column(what)
        self.first_row = source.first_row
        if source.validity is not None:
            self._validity = _loaded(source.validity, (self.first_row + rows + 7) // 8, what)

    def is_null(self, row: int) -> bool:
        if not self._present:
            return True
        bit = self.first_row + row
        return self._validity is not None and not self._validity[bit >> 3] >> (bit & 7) & 1


class _Ranges(_Rows):
    """A column of ranges: of bytes in its data, or of items in a list's child."""

    def __init__(self, source: BinaryColumn | ListColumn | None, rows: int, what: str) -> None:
        super().__init__(source, rows, what)
        self._offsets: Sequence[int] = ()
        self._data = memoryview(b"")
        if source is None:
            return
        if rows:
            width = 8 if source.is_wide else 4
            needed = (self.first_row + rows + 1) * width
            self._offsets = _loaded(source.offsets, needed, what)[:needed].cast("q" if source.is_wide else "i")
        if isinstance(source, BinaryColumn) and source.data is not None:
            self._data = _loaded(source.data, 0, what)

    def range_of(self, row: int, limit: int) -> tuple[int, int] | None:
        if self.is_null(row):
            return None
        start, end = self._offsets[self.first_row + row], self._offsets[self.first_row + row + 1]
        if start < 0 or end < start or end > limit:
            raise _Broken
        return start, end

    def bytes_of(self, row: int) -> bytes | None:
        found = self.range_of(row, len(self._data))
        return None if found is None else bytes(self._data[found[0] : found[1]])


class _Broken(Exception):
    """Offsets outside their data; whoever catches it knows which row of the table it is."""


class _Nameless(Exception):
    """A header without a name; caught where the row is known."""


class ArrowEncoder:
    """Turns the rows of one Arrow batch into payloads, in order, each as large as allowed.

    Columns are BinaryColumn, NumberColumn or ListColumn, or None where there is none. A null timestamp becomes the
    default one, a null list of headers no headers. `rows` are the numbers of the rows to take, 64 bits each, in that
    order; all where there are none.
    """

    def __init__(
        self,
        row_count: int,
        key: BinaryColumn | None,
        value: BinaryColumn | None,
        timestamp: NumberColumn | None,
        default_timestamp: int,
        headers: ListColumn | None,
        header_count: int,
        header_name: BinaryColumn | None,
        header_value: BinaryColumn | None,
        rows: Buffer | None = None,
    ) -> None:
        self._table_rows = row_count
        self._rows: Sequence[int] = range(row_count) if rows is None else memoryview(rows).cast("B").cast("q")
        self._row_count = len(self._rows)
        self._header_count = header_count
        self._default_timestamp = default_timestamp
        self._next_row = 0
        self._key = _Ranges(key, row_count, "key")
        self._value = _Ranges(value, row_count, "value")
        self._timestamp = _Rows(timestamp, row_count, "timestamp")
        self._timestamps: Sequence[int] = ()
        if timestamp is not None:
            needed = (timestamp.first_row + row_count) * 8
            self._timestamps = _loaded(timestamp.data, needed, "timestamp")[:needed].cast("q")
        self._headers = _Ranges(headers, row_count, "headers")
        if headers is not None:
            self._header_name = _Ranges(header_name, header_count, "headers.key")
            self._header_value = _Ranges(header_value, header_count, "headers.value")

    def _timestamp_of(self, row: int) -> int:
        if self._timestamp.is_null(row):
            return self._default_timestamp
        return self._timestamps[self._timestamp.first_row + row]

    def _headers_of(self, row: int) -> list[tuple[bytes, bytes | None]]:
        found = self._headers.range_of(row, self._header_count)
        pairs: list[tuple[bytes, bytes | None]] = []
        for header in range(*(found or (0, 0))):
            name = self._header_name.bytes_of(header)
            if name is None:
                raise _Nameless
            pairs.append((name, self._header_value.bytes_of(header)))
        return pairs

    def _record_of(self, row: int, timestamp_delta: int, offset_delta: int) -> bytearray:
        try:
            key, value = self._key.bytes_of(row), self._value.bytes_of(row)
            return encode_record(timestamp_delta, offset_delta, key, value, self._headers_of(row))
        except _Broken:
            raise errors.broken_column(row) from None
        except _Nameless:
            raise errors.nameless_header(row) from None

    def _row_at(self, index: int) -> int:
        row = self._rows[index]
        if not 0 <= row < self._table_rows:
            raise errors.broken_column(row)
        return row

    def next_batch(self, max_bytes: int) -> EncodedRows | None:
        """The next rows as a payload whose batch is at most `max_bytes`, or one larger row; None after the last."""
        first = self._next_row
        if first >= self._row_count:
            return None
        payload = bytearray()
        base_timestamp = max_timestamp = self._timestamp_of(self._row_at(first))
        while self._next_row < self._row_count:
            row = self._row_at(self._next_row)
            timestamp = self._timestamp_of(row)
            if not _INT64_MIN <= timestamp - base_timestamp <= _INT64_MAX:
                raise errors.timestamp_distance(base_timestamp, timestamp)
            record = self._record_of(row, timestamp - base_timestamp, self._next_row - first)
            size_bytes = HEADER_BYTES + len(payload) + len(record)
            if self._next_row > first and size_bytes > min(max_bytes, _INT32_MAX):
                break
            if size_bytes > _INT32_MAX:
                raise errors.row_too_large(row)
            payload += record
            max_timestamp = max(max_timestamp, timestamp)
            self._next_row += 1
        return EncodedRows(bytes(payload), self._next_row - first, base_timestamp, max_timestamp)
