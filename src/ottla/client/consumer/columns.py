"""From chunks to Arrow: whole batches become columns, without an object for a record.

Everything here runs in a worker thread. Most of its time the GIL is not held: checksums, decompression and the copying
of records into columns are native.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ottla.client.consumer.batches import damaged, require_crc
from ottla.client.consumer.values import Entry
from ottla.client.errors import ConfigError, SerializationError
from ottla.records import HEADER_BYTES, ArrowRows, CorruptRecord

if TYPE_CHECKING:
    import pyarrow as pa

METADATA_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")

Decoder = Callable[["pa.Table"], "pa.Table"]

TimestampUnit = Literal["ms", "us"]


class Shape(NamedTuple):
    """Which columns are made of records, and how: `names` of METADATA_COLUMNS, in their order there."""

    names: tuple[str, ...] = METADATA_COLUMNS
    timestamp_unit: TimestampUnit = "ms"


class Slice(NamedTuple):
    """A chunk as a worker gets it: what is there and from where on, whatever becomes of the chunk meanwhile."""

    topic: str
    partition: int
    next_offset: int
    data: memoryview
    entries: tuple[Entry, ...]
    check_crcs: bool


class Piece(NamedTuple):
    """Rows of a slice, and how many of its entries they are of."""

    rows: "pa.RecordBatch"
    entry_count: int


def decode(piece: Slice, end_offset: int | None, shape: Shape, max_bytes: int) -> Piece:
    """The records of a slice from where it stands, up to `end_offset`, and no more entries than it takes to reach
    `max_bytes`: compressed batches may become many times as large as they were fetched."""
    rows = ArrowRows(
        headers="headers" in shape.names,
        first_offset=piece.next_offset,
        end_offset=end_offset,
        timestamp_unit=shape.timestamp_unit,
    )
    expected_rows = sum(entry.header.record_count for entry in piece.entries)
    entry_count = 0
    for entry in piece.entries:
        entry_count += 1
        header = entry.header
        if header.last_offset < piece.next_offset or (end_offset is not None and header.base_offset >= end_offset):
            continue
        try:
            if piece.check_crcs:
                require_crc(piece.data, entry)
            stored = piece.data[entry.start + HEADER_BYTES : entry.end]
            rows.add(header, stored, expected_rows=expected_rows, expected_bytes=max_bytes)
        except CorruptRecord as error:
            place = piece._replace(next_offset=max(piece.next_offset, header.base_offset))
            raise damaged(place, header, error) from error
        expected_rows = 0
        if rows.payload_bytes >= max_bytes:
            break
    batch = rows.finish(
        piece.topic if "topic" in shape.names else None, piece.partition if "partition" in shape.names else None
    )
    if len(shape.names) != batch.num_columns:
        batch = batch.select(list(shape.names))
    return Piece(batch, entry_count)


def shape_of(columns: Iterable[str] | None, headers: bool, timestamp_unit: TimestampUnit) -> Shape:
    """What `tables` was asked for; ConfigError for a column that records do not have."""
    if timestamp_unit not in ("ms", "us"):
        raise ConfigError(f"timestamp_unit is 'ms' or 'us', not {timestamp_unit!r}")
    wanted = set(METADATA_COLUMNS if columns is None else columns)
    if columns is None and not headers:
        wanted.discard("headers")
    if not wanted:
        raise ConfigError("columns names at least one column")
    if unknown := sorted(wanted.difference(METADATA_COLUMNS)):
        raise ConfigError(f"a record has no column {unknown[0]!r}: there are {', '.join(METADATA_COLUMNS)}")
    return Shape(tuple(name for name in METADATA_COLUMNS if name in wanted), timestamp_unit)


def require_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401 - only whether it is there
    except ImportError:
        raise ConfigError("tables need pyarrow: pip install 'ottla[arrow]'") from None


def decoder_for(value_format: str | None, schema: Any, decoder: Decoder | None) -> Decoder | None:
    """What is done with every table before it is handed out."""
    if value_format not in (None, "json"):
        raise ConfigError(f"value_format is 'json' or None, not {value_format!r}; other formats go through decoder=")
    if schema is not None and value_format is None:
        raise ConfigError("a schema needs value_format='json'")
    if value_format is not None and decoder is not None:
        raise ConfigError("give value_format or decoder, not both")
    if value_format == "json":
        from ottla.client.consumer.json_columns import JsonColumns

        return JsonColumns(schema)
    return decoder


def decoded(table: "pa.Table", decoder: Decoder | None) -> "pa.Table":
    """The table as the user wants it; SerializationError where the decoder does not take it."""
    if decoder is None:
        return table
    try:
        made = decoder(table)
    except SerializationError:
        raise
    except Exception as error:
        raise SerializationError(f"the decoder refused a table ({type(error).__name__}: {error})") from error
    if made.num_rows != table.num_rows:
        raise SerializationError(f"the decoder made {made.num_rows} rows of {table.num_rows}: rows must be kept")
    return made
