"""Record batches as Arrow tables and Arrow tables as record batches, column by column, with no object for a record.

The columns have the names of Spark's Kafka source:

| column          | type                                    | notes                                              |
|-----------------|-----------------------------------------|----------------------------------------------------|
| `key`, `value`  | binary                                  | null where the record has none                     |
| `topic`         | string                                  | only when given                                    |
| `partition`     | int32                                   | only when given                                    |
| `offset`        | int64                                   |                                                    |
| `timestamp`     | timestamp in ms or us, UTC              |                                                    |
| `timestampType` | int32                                   | 0 given by the producer, 1 by the broker's log     |
| `headers`       | list<struct<key: string, value: binary>> | empty where the record has none                   |

pyarrow is an optional extra: it is imported inside the functions that need it.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from ottla.records import compression
from ottla.records._twin import twin, warn_if_fallback
from ottla.records.batches import HEADER_BYTES, BatchHeader
from ottla.records.codec import Codec
from ottla.records.compression import MAX_DECOMPRESSED_BYTES
from ottla.records.types import BinaryColumn, Buffer, DecodedColumns, EncodedRows, ListColumn, NumberColumn

if TYPE_CHECKING:
    import pyarrow as pa

DEFAULT_MAX_BATCH_BYTES = 1_000_000

_INT64_MIN = -(2**63)
_INT64_MAX = 2**63 - 1
_TRANSACTIONAL_BIT = 0x10
_SEQUENCES = 2**31
_SMALLEST_RECORD_BYTES = 7
# Of a column that tables share, and how many of them are kept.
_MOST_SHARED_BYTES = 4 * 1024 * 1024
_MOST_SHARED = 8
_TIMESTAMP_FACTORS = {"ms": 1, "us": 1000}


def _binary_array(column: BinaryColumn, row_count: int, kind: "pa.DataType") -> "pa.Array":
    import pyarrow as pa

    validity = None if column.validity is None else pa.py_buffer(column.validity)
    data = pa.py_buffer(b"" if column.data is None else column.data)
    buffers = [validity, pa.py_buffer(column.offsets), data]
    return pa.Array.from_buffers(kind, row_count, buffers, column.null_count)


def _number_array(data: Buffer, row_count: int, kind: "pa.DataType") -> "pa.Array":
    import pyarrow as pa

    return pa.Array.from_buffers(kind, row_count, [None, pa.py_buffer(data)], 0)


def _headers_array(columns: DecodedColumns) -> "pa.Array":
    import pyarrow as pa

    count = columns.header_count
    pair = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])
    names = _binary_array(columns.header_name, count, pa.string())
    values = _binary_array(columns.header_value, count, pa.binary())
    pairs = pa.Array.from_buffers(pair, count, [None], 0, children=[names, values])
    offsets = pa.py_buffer(columns.header_offsets)
    return pa.Array.from_buffers(pa.list_(pair), columns.row_count, [None, offsets], 0, children=[pairs])


def to_arrow(
    buffers: Buffer | Iterable[Buffer],
    *,
    topic: str | None = None,
    partition: int | None = None,
    headers: bool = True,
    first_offset: int | None = None,
    end_offset: int | None = None,
    timestamp_unit: Literal["ms", "us"] = "ms",
    keep_batch: Callable[[BatchHeader], bool] | None = None,
    check_crc: bool = True,
    ignore_partial_tail: bool = False,
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
) -> "pa.RecordBatch":
    """The records of buffers of whole batches, as one Arrow batch; control batches have no place in it.

    Records before `first_offset` and from `end_offset` on are left out: a fetch answers with whole batches, so it may
    begin too early. `keep_batch` can refuse a batch by its header, an aborted transaction's for example.
    """
    first = _INT64_MIN if first_offset is None else first_offset
    end = _INT64_MAX if end_offset is None else end_offset
    rows = ArrowRows(
        headers=headers,
        first_offset=first_offset,
        end_offset=end_offset,
        timestamp_unit=timestamp_unit,
        max_decompressed_bytes=max_decompressed_bytes,
    )
    inspect = twin.inspect_batches if check_crc else twin.scan_headers
    for buffer in [buffers] if isinstance(buffers, bytes | bytearray | memoryview) else buffers:
        position = 0
        view = memoryview(buffer).cast("B")
        for header in inspect(view, ignore_partial_tail):
            start, position = position, position + header.size_bytes
            if header.is_control or header.last_offset < first or header.base_offset >= end:
                continue
            if keep_batch is None or keep_batch(header):
                rows.add(header, view[start + HEADER_BYTES : position])
    return rows.finish(topic, partition)


class ArrowRows:
    """Rows of batches that are added one after the other, in the columns above."""

    def __init__(
        self,
        *,
        headers: bool = True,
        first_offset: int | None = None,
        end_offset: int | None = None,
        timestamp_unit: Literal["ms", "us"] = "ms",
        max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
    ) -> None:
        warn_if_fallback()
        first = _INT64_MIN if first_offset is None else first_offset
        end = _INT64_MAX if end_offset is None else end_offset
        self._headers = headers
        self._timestamp_unit = timestamp_unit
        self._max_decompressed_bytes = max_decompressed_bytes
        self._decoder = twin.ArrowDecoder(first, end, _TIMESTAMP_FACTORS[timestamp_unit], headers)
        self.payload_bytes = 0

    def add(self, header: BatchHeader, stored: Buffer, *, expected_bytes: int = 0, expected_rows: int = 0) -> None:
        """The records of a batch, as they are stored behind its header.

        The first one may tell what is expected of all that will be added, so that room is made only once: how many
        rows at most, and how many bytes at most, none of them compressed.
        """
        with compression.decompressed(header.compression, stored, self._max_decompressed_bytes) as payload:
            if expected_rows > header.record_count > 0:
                # A header may promise anything: no record is smaller than this.
                each_bytes = max(len(payload) // header.record_count + 1, _SMALLEST_RECORD_BYTES)
                rows = min(expected_rows, (expected_bytes + len(payload)) // each_bytes)
                self._decoder.reserve(rows, rows * each_bytes)
            self._decoder.add(payload, header)
            self.payload_bytes += len(payload)

    def finish(self, topic: str | None = None, partition: int | None = None) -> "pa.RecordBatch":
        """What was added, as one Arrow batch; nothing can be added any more."""
        return _record_batch(self._decoder.finish(), topic, partition, self._timestamp_unit, self._headers)


def _repeated(value: str | int, rows: int) -> "pa.Array":
    """A column of one value: the beginning of one that other tables begin with, too. Neither is copied."""
    length = 1 << (rows - 1).bit_length() if rows else 0
    row_bytes = 4 + (len(value.encode()) if isinstance(value, str) else 0)
    if length * row_bytes > _MOST_SHARED_BYTES:
        return _column_of(value, rows)
    return _shared_column_of(value, length).slice(0, rows)


def _column_of(value: str | int, rows: int) -> "pa.Array":
    """Made of its buffers: a scalar of pyarrow loads all of pandas first, if that is installed."""
    import pyarrow as pa

    if isinstance(value, int):
        return _number_array(memoryview(array("i", [value]) * rows), rows, pa.int32())
    text = value.encode()
    offsets = array("i", range(0, len(text) * rows + 1, len(text)) if text else bytes(4 * (rows + 1)))
    return _binary_array(BinaryColumn(None, memoryview(offsets), text * rows), rows, pa.string())


_shared_column_of = lru_cache(maxsize=_MOST_SHARED)(_column_of)


def _record_batch(
    columns: DecodedColumns, topic: str | None, partition: int | None, timestamp_unit: str, headers: bool
) -> "pa.RecordBatch":
    import pyarrow as pa

    rows = columns.row_count
    arrays: dict[str, Any] = {
        "key": _binary_array(columns.key, rows, pa.binary()),
        "value": _binary_array(columns.value, rows, pa.binary()),
    }
    if topic is not None:
        arrays["topic"] = _repeated(topic, rows)
    if partition is not None:
        arrays["partition"] = _repeated(partition, rows)
    arrays["offset"] = _number_array(columns.offset, rows, pa.int64())
    arrays["timestamp"] = _number_array(columns.timestamp, rows, pa.timestamp(timestamp_unit, "UTC"))
    arrays["timestampType"] = _number_array(columns.timestamp_type, rows, pa.int32())
    if headers:
        arrays["headers"] = _headers_array(columns)
    return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))


def _as_binary(array: "pa.Array", what: str) -> "pa.Array | None":
    """The column as binary or string, small or large; None for a column of nothing but nulls."""
    import pyarrow as pa

    kind = array.type
    if pa.types.is_null(kind):
        return None
    if pa.types.is_dictionary(kind):
        return _as_binary(array.dictionary_decode(), what)
    if any(check(kind) for check in (pa.types.is_binary, pa.types.is_string)):
        return array
    if any(check(kind) for check in (pa.types.is_large_binary, pa.types.is_large_string)):
        return array
    if pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        return array.cast(pa.large_binary())
    if pa.types.is_string_view(kind):
        return array.cast(pa.large_string())
    raise TypeError(f"column {what}: binary or string expected, {kind} came")


def binary_column(array: "pa.Array | None", what: str) -> BinaryColumn | None:
    """The buffers of a column of bytes or text; None where there is none, or nothing but nulls."""
    import pyarrow as pa

    found = None if array is None else _as_binary(array, what)
    if found is None:
        return None
    validity, offsets, data = found.buffers()
    is_wide = pa.types.is_large_binary(found.type) or pa.types.is_large_string(found.type)
    return BinaryColumn(validity, b"" if offsets is None else offsets, data, found.null_count, found.offset, is_wide)


def _timestamp_column(array: "pa.Array | None") -> NumberColumn | None:
    import pyarrow as pa

    if array is None or pa.types.is_null(array.type):
        return None
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.timestamp("ms", array.type.tz), safe=False)
    elif not pa.types.is_integer(array.type):
        raise TypeError(f"column timestamp: a timestamp or milliseconds as an integer expected, {array.type} came")
    else:
        array = array.cast(pa.int64())
    validity, data = array.buffers()
    return NumberColumn(validity, b"" if data is None else data, array.offset)


def _header_columns(
    array: "pa.Array | None",
) -> tuple[ListColumn | None, int, BinaryColumn | None, BinaryColumn | None]:
    import pyarrow as pa

    if array is None or pa.types.is_null(array.type):
        return None, 0, None, None
    kind = array.type
    if pa.types.is_map(kind):
        names, values = array.keys, array.items
    elif (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and pa.types.is_struct(kind.value_type):
        pairs = array.values
        if kind.value_type.num_fields != 2 or pairs.null_count:
            raise TypeError(f"column headers: structs of key and value, none of them null, expected, {kind} came")
        names, values = pairs.field(0), pairs.field(1)
    else:
        raise TypeError(f"column headers: a list of structs of key and value, or a map, expected, {kind} came")
    validity, offsets = array.buffers()[:2]
    lists = ListColumn(validity, b"" if offsets is None else offsets, array.offset, pa.types.is_large_list(kind))
    return lists, len(names), binary_column(names, "headers.key"), binary_column(values, "headers.value")


def from_arrow(
    table: "pa.Table | pa.RecordBatch",
    *,
    max_batch_bytes: int = DEFAULT_MAX_BATCH_BYTES,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    timestamp: int = -1,
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
) -> list[bytes]:
    """The rows as batches, none larger than `max_batch_bytes` before compression unless one row alone is.

    Of the columns above `key`, `value`, `timestamp` and `headers` are used, and each may be missing; `timestamp` is
    for rows without one. Offsets, and sequence numbers if there are any, go on from batch to batch.
    """
    warn_if_fallback()
    batches: list[bytes] = []
    attributes = codec | (_TRANSACTIONAL_BIT if transactional else 0)
    for rows in encode_rows(table, max_batch_bytes=max_batch_bytes, timestamp=timestamp):
        batches.append(
            twin.frame_batch(
                compression.compress(codec, rows.payload, level),
                base_offset,
                leader_epoch,
                attributes,
                rows.row_count - 1,
                rows.base_timestamp,
                rows.max_timestamp,
                producer_id,
                producer_epoch,
                base_sequence,
                rows.row_count,
            )
        )
        base_offset += rows.row_count
        if base_sequence >= 0:
            base_sequence = (base_sequence + rows.row_count) % _SEQUENCES
    return batches


def encode_rows(
    table: "pa.Table | pa.RecordBatch",
    *,
    max_batch_bytes: int = DEFAULT_MAX_BATCH_BYTES,
    timestamp: int = -1,
    rows: Buffer | None = None,
) -> Iterator[EncodedRows]:
    """The rows as the payloads of batches, not compressed and without headers: see `from_arrow`.

    `rows` are the numbers of the rows to take, 64 bits each, of a single RecordBatch.
    """
    import pyarrow as pa

    if rows is not None and isinstance(table, pa.Table):
        raise TypeError("rows are those of a RecordBatch: a Table may have several")
    for chunk in table.combine_chunks().to_batches() if isinstance(table, pa.Table) else [table]:
        encoder = _encoder(chunk, timestamp, rows)
        while (encoded := encoder.next_batch(max_batch_bytes)) is not None:
            yield encoded


def _encoder(chunk: "pa.RecordBatch", timestamp: int, rows: Buffer | None = None) -> "twin.ArrowEncoder":
    names: Sequence[str] = chunk.schema.names

    def column(name: str) -> "pa.Array | None":
        return chunk.column(name) if name in names else None

    return twin.ArrowEncoder(
        chunk.num_rows,
        binary_column(column("key"), "key"),
        binary_column(column("value"), "value"),
        _timestamp_column(column("timestamp")),
        timestamp,
        *_header_columns(column("headers")),
        rows,
    )
