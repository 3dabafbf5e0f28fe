"""The columns of the source, which of them a schema asks for, and their exact Arrow types.

Spark compares the Arrow schema of the first batch of a task with the one it derives from the DataFrame's, down to the
names and the nullability of inner fields, and reads all later batches as if they had it. So batches are put together
here with Spark's own schema. Nothing is copied: arrays get another type over the same buffers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ottla.spark.source.failures import SchemaError

_HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
COLUMNS: Final[Mapping[str, DataType]] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": _HEADERS,
}


def connector_schema(*, has_headers: bool) -> StructType:
    """That of Spark's Kafka connector."""
    return StructType([StructField(name, kind) for name, kind in COLUMNS.items() if has_headers or name != "headers"])


@dataclass(frozen=True)
class Projection:
    """From a schema to where each of its fields comes from: `sources` has, by field, the record's column, or None for
    a field of the value. `schema` is what Spark was told."""

    schema: StructType
    sources: Mapping[str, str | None]

    @property
    def record_columns(self) -> list[str]:
        """What has to be made of records."""
        names = {source for source in self.sources.values() if source is not None}
        if None in self.sources.values():
            names.add("value")
        return sorted(names)

    @property
    def value_fields(self) -> StructType:
        return StructType([field for field in self.schema.fields if self.sources[field.name] is None])

    def field_of(self, column: str) -> str | None:
        """The name that a record's column has for the user."""
        return next((name for name, source in self.sources.items() if source == column), None)

    def arrow_schema(self) -> pa.Schema:
        from pyspark.sql.pandas.types import to_arrow_schema

        return to_arrow_schema(self.schema, timezone="UTC")


def projection_of(schema: StructType, value_format: Literal["json"] | None) -> Projection:
    """SchemaError for a field that is no column of the source, or not of its type.

    With a value format, fields that are not columns of the record are fields of the value; `_offset` is then the
    record's column where the value has an `offset` of its own that is wanted.
    """
    if not schema.fields:
        raise SchemaError(f"the schema has no columns: name some of {', '.join(COLUMNS)}")
    names = [field.name for field in schema.fields]
    if len(set(names)) < len(names):
        raise SchemaError("the schema names a column twice")
    if value_format is None:
        for field in schema.fields:
            _check(field)
        return Projection(schema, {name: name for name in names})
    hidden = {name[1:] for name in names if name.startswith("_") and name[1:] in COLUMNS}
    sources: dict[str, str | None] = {}
    for field in schema.fields:
        bare = field.name[1:] if field.name.startswith("_") else field.name
        if bare in COLUMNS and _same(field.dataType, COLUMNS[bare]) and (field.name != bare or bare not in hidden):
            sources[field.name] = bare
        else:
            sources[field.name] = None
    return Projection(schema, sources)


def _check(field: StructField) -> None:
    if field.name not in COLUMNS:
        raise SchemaError(
            f"the schema has a column {field.name!r}, which the source has not: there are {', '.join(COLUMNS)}; for "
            "fields of JSON values set valueFormat to json"
        )
    wanted = COLUMNS[field.name]
    if not _same(field.dataType, wanted):
        raise SchemaError(
            f"the schema has {field.name} as {field.dataType.simpleString()}: it is {wanted.simpleString()}, and "
            "DataFrame functions such as cast make something else of it"
        )


def _same(given: DataType, wanted: DataType) -> bool:
    return given.simpleString() == wanted.simpleString()


def spark_headers(headers: pa.Array, kind: pa.DataType) -> pa.Array:
    """As Spark's connector has them: null where a record has none, and names that might be null."""
    import pyarrow.compute as pc

    pairs = headers.values
    assert (headers.offset, pairs.offset) == (0, 0), "whole columns are retyped, not slices of them"
    names_and_values = [pairs.field(0), pairs.field(1)]
    retyped = pa.Array.from_buffers(kind.value_type, len(pairs), [None], 0, children=names_and_values)
    has_any = pc.greater(pc.list_value_length(headers), 0)
    buffers = [has_any.buffers()[1], headers.buffers()[1]]
    return pa.Array.from_buffers(kind, len(headers), buffers, children=[retyped])
