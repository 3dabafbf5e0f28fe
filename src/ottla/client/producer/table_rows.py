"""The rows of a table as batches of records, each for a partition: work that needs no loop, and little of the GIL."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.client.errors import ConfigError, SerializationError
from ottla.client.producer._twin import twin
from ottla.client.producer.json_rows import json_rows
from ottla.records import Buffer, Codec, binary_column, compress, encode_rows

if TYPE_CHECKING:
    import pyarrow as pa

ANY_PARTITION = -1


class EncodedBatch(NamedTuple):
    """`partition` is ANY_PARTITION for rows without a key."""

    partition: int
    payload: Buffer
    row_count: int
    base_timestamp: int
    max_timestamp: int


@dataclass(frozen=True, slots=True)
class TablePlan:
    """What becomes of the columns."""

    key: str | None
    value: str | None
    json_columns: tuple[str, ...]
    headers: str | None
    timestamp: str | int | None
    partition: str | int | None
    partition_count: int
    ignores_keys: bool
    batch_bytes: int
    codec: Codec
    level: int | None


def plan_columns(schema: "pa.Schema", **used: Any) -> tuple[str, ...]:
    """The columns that go into the JSON objects; ConfigError for a name that is none of the table's."""
    names = list(schema.names)
    for role, name in used.items():
        if isinstance(name, str) and name not in names:
            raise ConfigError(f"{role}={name!r} is no column of the table: it has {', '.join(names)}")
        if isinstance(name, str) and names.count(name) > 1:
            raise ConfigError(f"{role}={name!r} names more than one column")
    return tuple(name for name in names if name not in used.values())


def encode_slice(batch: "pa.RecordBatch", plan: TablePlan, now_ms: int) -> list[EncodedBatch]:
    """The batches of some rows. Rows of a partition keep their order."""
    records = _record_columns(batch, plan)
    encoded = []
    timestamp = plan.timestamp if isinstance(plan.timestamp, int) else now_ms
    for partition, rows in _by_partition(batch, records, plan):
        for one in encode_rows(records, max_batch_bytes=plan.batch_bytes, timestamp=timestamp, rows=rows):
            payload = compress(plan.codec, one.payload, plan.level)
            encoded.append(EncodedBatch(partition, payload, one.row_count, one.base_timestamp, one.max_timestamp))
    return encoded


def _record_columns(batch: "pa.RecordBatch", plan: TablePlan) -> "pa.RecordBatch":
    """The columns under the names that records have."""
    import pyarrow as pa

    columns: dict[str, Any] = {}
    if plan.key is not None:
        columns["key"] = _bytes_column(batch.column(plan.key), plan.key)
    if plan.value is not None:
        columns["value"] = _bytes_column(batch.column(plan.value), plan.value)
    else:
        columns["value"] = json_rows(batch, list(plan.json_columns))
    if plan.headers is not None:
        columns["headers"] = batch.column(plan.headers)
    if isinstance(plan.timestamp, str):
        columns["timestamp"] = batch.column(plan.timestamp)
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _bytes_column(column: "pa.Array", name: str) -> "pa.Array":
    """Bytes and text as they are; whole numbers as their decimal digits, as JSON would have them."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if types.is_integer(column.type):
        return column.cast(pa.string())
    if types.is_null(column.type):
        return column.cast(pa.binary())
    try:
        binary_column(column, name)
    except TypeError as error:
        raise SerializationError(str(error)) from None
    return column


def _by_partition(
    batch: "pa.RecordBatch", records: "pa.RecordBatch", plan: TablePlan
) -> Iterator[tuple[int, Buffer | None]]:
    """Partitions and the numbers of their rows; None for all."""
    if isinstance(plan.partition, int):
        yield plan.partition, None
    elif plan.partition is not None:
        yield from _by_column(batch.column(plan.partition), records, plan)
    else:
        yield from _by_key(records, plan)


def _by_column(column: "pa.Array", records: "pa.RecordBatch", plan: TablePlan) -> Iterator[tuple[int, Buffer | None]]:
    """Where the column says; a row without a partition goes where its key, or nothing, would have sent it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_null(column.type) or (column.null_count == len(column) and pa.types.is_integer(column.type)):
        yield from _by_key(records, plan)
        return
    if not pa.types.is_integer(column.type):
        raise SerializationError(f"partition: a column of whole numbers expected, {column.type} came")
    for partition in sorted(pc.unique(column.drop_null()).to_pylist()):
        if not 0 <= partition < plan.partition_count:
            raise ConfigError(f"partition {partition}: the topic has 0 to {plan.partition_count - 1}")
    if column.null_count:
        column = pc.coalesce(column.cast(pa.int32()), _partitions_of_rows(records, plan))
    for partition in sorted(pc.unique(column).to_pylist()):
        rows = pc.indices_nonzero(pc.equal(column, partition)).cast(pa.int64())
        yield partition, memoryview(rows.buffers()[1]).cast("B")[: len(rows) * 8]


def _partitions_of_rows(records: "pa.RecordBatch", plan: TablePlan) -> "pa.Array":
    """The partition of every row by its key, so that rows which share one keep their order."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows, partitions = [], []
    for partition, numbers in _by_key(records, plan):
        if numbers is None:
            return pa.repeat(pa.scalar(partition, pa.int32()), records.num_rows)
        found = pa.Array.from_buffers(pa.int64(), len(memoryview(numbers)) // 8, [None, pa.py_buffer(numbers)])
        rows.append(found)
        partitions.append(pa.repeat(pa.scalar(partition, pa.int32()), len(found)))
    return pa.concat_arrays(partitions).take(pc.sort_indices(pa.concat_arrays(rows)))


def _by_key(records: "pa.RecordBatch", plan: TablePlan) -> Iterator[tuple[int, Buffer | None]]:
    if plan.key is None or plan.ignores_keys:
        yield ANY_PARTITION, None
        return
    key = binary_column(records.column("key"), "key")
    if key is None:
        yield ANY_PARTITION, None
        return
    grouped, counts = twin.rows_by_partition(key, records.num_rows, plan.partition_count)
    rows = memoryview(grouped)
    start = 0
    for partition, count in enumerate(counts):
        end = start + count * 8
        if count:
            yield (ANY_PARTITION if partition == plan.partition_count else partition), rows[start:end]
        start = end
