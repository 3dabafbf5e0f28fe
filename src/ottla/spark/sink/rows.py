"""The rows of the sink: which columns they must have, and how they become records, without a Python object for a row.

| column      | type                                      |                                                         |
|-------------|-------------------------------------------|---------------------------------------------------------|
| `value`     | string or binary                          | required; null is a tombstone                           |
| `key`       | string or binary                          | chooses the partition, as every Kafka client does       |
| `topic`     | string                                    | required unless the option `topic` is given, which wins |
| `headers`   | array<struct<key: string, value: binary>> |                                                         |
| `partition` | int                                       | null leaves it to the key                               |

The columns are those of Spark's connector, and as there, others are not looked at.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.types import ArrayType, BinaryType, DataType, IntegerType, StringType, StructType

from ottla.client.errors import ConfigError, SerializationError, Undelivered
from ottla.spark.memory import keep_freed_memory

if TYPE_CHECKING:
    import pyarrow as pa

    from ottla.client.producer.tables import TableDelivery
    from ottla.client.sync.producer import Producer

_TEXT_OR_BYTES = (StringType, BinaryType)

# Spark hands over 10,000 rows at a time unless told otherwise: small rows are gathered until they fill some batches.
_GATHERED_BYTES = 4 * 1024 * 1024
_GATHERED_BATCHES = 64


@dataclass(frozen=True)
class RowShape:
    """Which of the columns are there. `topic` is where all rows go, None where a column says so."""

    topic: str | None
    has_key: bool
    has_headers: bool
    has_partition: bool

    @property
    def columns(self) -> list[str]:
        """Those that become parts of records."""
        named = (("key", self.has_key), ("headers", self.has_headers), ("partition", self.has_partition))
        return ["value", *(name for name, is_there in named if is_there)]


def row_shape(schema: StructType, topic: str | None) -> RowShape:
    """How rows of this schema are written, or ConfigError that names the column and what is expected of it."""
    types = {field.name: field.dataType for field in schema.fields}
    if topic is None:
        if "topic" not in types:
            raise ConfigError(
                "nothing says which topic the rows go to: set the option topic, or give the rows a column topic of "
                "strings"
            )
        _expect("topic", types["topic"], (StringType,), "string")
    if "value" not in types:
        raise ConfigError(
            f"there is no column value among {', '.join(types) or 'none'}: select what is to be written under that "
            "name, such as to_json(struct(*)) AS value"
        )
    for name in ("key", "value"):
        if name in types:
            _expect(name, types[name], _TEXT_OR_BYTES, "string or binary")
    if "headers" in types and not _are_headers(types["headers"]):
        raise _unsupported("headers", types["headers"], "array<struct<key:string,value:binary>>")
    if "partition" in types:
        _expect("partition", types["partition"], (IntegerType,), "int")
    return RowShape(topic, "key" in types, "headers" in types, "partition" in types)


def _expect(name: str, found: DataType, allowed: tuple[type[DataType], ...], described: str) -> None:
    if not isinstance(found, allowed):
        raise _unsupported(name, found, described)


def _unsupported(name: str, found: DataType, described: str) -> ConfigError:
    return ConfigError(
        f"column {name} is {found.simpleString()}, but must be {described}: cast it, or select another one as {name}"
    )


def _are_headers(found: DataType) -> bool:
    if not isinstance(found, ArrayType) or not isinstance(found.elementType, StructType):
        return False
    fields = found.elementType.fields
    return (
        [field.name.lower() for field in fields] == ["key", "value"]
        and isinstance(fields[0].dataType, StringType)
        and isinstance(fields[1].dataType, BinaryType)
    )


class HandedOver(NamedTuple):
    """Rows that tasks gave to the driver, and how they are written."""

    shape: RowShape
    tables: "Sequence[pa.Table]"

    def send_with(self, producer: "Producer[Any, Any]") -> None:
        """All of them, acknowledged."""
        sender = RowSender(self.shape, producer)
        for table in self.tables:
            sender.send(table)
        sender.finish()


class RowSender:
    """Sends the batches that Spark hands to a task. What could not be written is raised by `send` or `finish`."""

    def __init__(self, shape: RowShape, producer: "Producer[Any, Any]") -> None:
        self._shape = shape
        self._producer = producer
        self._waiting: list[TableDelivery] = []
        self.row_count = 0

    def send_all(self, batches: "Iterator[pa.RecordBatch]") -> None:
        """Send everything, and see what became of it so far; the last of it may still be on its way."""
        for table in gathered(batches):
            self.send(table)

    def send(self, table: "pa.Table") -> None:
        for topic, rows in self._by_topic(table):
            self._waiting.append(
                self._producer.send_table(
                    topic,
                    rows.select(self._shape.columns),
                    value="value",
                    key="key" if self._shape.has_key else None,
                    headers="headers" if self._shape.has_headers else None,
                    partition="partition" if self._shape.has_partition else None,
                )
            )
        self.row_count += table.num_rows
        self._settle(everything=False)

    def finish(self) -> None:
        """Wait until all of it is acknowledged."""
        # What failed is raised below, as it is.
        with suppress(Undelivered):
            self._producer.flush()
        self._settle(everything=True)

    def _settle(self, *, everything: bool) -> None:
        """Raise what kept rows from being written, as early as it is known."""
        while self._waiting and (everything or self._waiting[0].done()):
            error = self._waiting.pop(0).exception()
            if error is not None:
                raise error.with_traceback(None)

    def _by_topic(self, table: "pa.Table") -> "Iterator[tuple[str, pa.Table]]":
        if self._shape.topic is not None:
            yield self._shape.topic, table
            return
        import pyarrow.compute as pc

        column = table.column("topic")
        if column.null_count:
            raise SerializationError(
                "column topic is null in some rows: give every row a topic, or set the option topic for all of them"
            )
        topics = pc.unique(column).to_pylist()
        for topic in topics:
            yield topic, table if len(topics) == 1 else table.filter(pc.equal(column, topic))


def gathered(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.Table]":
    """The batches, with small ones put together; empty ones are left out."""
    import pyarrow as pa

    keep_freed_memory()
    pending: list[pa.RecordBatch] = []
    size_bytes = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        pending.append(batch)
        size_bytes += batch.nbytes
        if size_bytes >= _GATHERED_BYTES or len(pending) >= _GATHERED_BATCHES:
            yield pa.Table.from_batches(pending)
            pending, size_bytes = [], 0
    if pending:
        yield pa.Table.from_batches(pending)
