"""Values that are JSON objects, as typed columns.

The values of a table become the lines of one JSON document, which Arrow reads in one go. The columns of the objects
take the place of `value`; a column of the record that has the name of one of them gets an underscore before it
(`_key`). Null values (tombstones) are rows of nulls.
"""

import json
from typing import TYPE_CHECKING, Any

from ottla.client.errors import SerializationError

if TYPE_CHECKING:
    import pyarrow as pa

_SMALLEST_BLOCK_BYTES = 1 << 20
_LARGEST_BLOCK_BYTES = (1 << 31) - 1


class JsonColumns:
    """A decoder of tables. With `schema` (a pyarrow.Schema) the columns are exactly its fields; without one they are
    those that a table's values have, with types found by Arrow, and so may differ from table to table."""

    def __init__(self, schema: Any = None) -> None:
        self._schema = schema

    def __call__(self, table: "pa.Table") -> "pa.Table":
        import pyarrow as pa

        if not table.num_rows:
            columns = pa.table({}) if self._schema is None else self._schema.empty_table()
        else:
            columns = self._parse(table)
        names = set(columns.column_names)
        for name in table.column_names:
            if name != "value":
                columns = columns.append_column(f"_{name}" if name in names else name, table.column(name))
        return columns

    def _parse(self, table: "pa.Table") -> "pa.Table":
        import pyarrow as pa
        import pyarrow.compute as pc
        from pyarrow import json as arrow_json

        values = pc.fill_null(table.column("value"), b"{}").combine_chunks()
        if isinstance(values, pa.ChunkedArray):
            values = pa.concat_arrays(values.chunks)
        lines = pc.binary_join_element_wise(values, b"", b"\n")
        longest = pc.max(pc.binary_length(values)).as_py()
        block_bytes = min(max(2 * longest + 2, _SMALLEST_BLOCK_BYTES), _LARGEST_BLOCK_BYTES)
        parsing = arrow_json.ParseOptions(
            explicit_schema=self._schema,
            newlines_in_values=True,
            unexpected_field_behavior="infer" if self._schema is None else "ignore",
        )
        document = lines.buffers()[2]
        try:
            columns = arrow_json.read_json(
                pa.BufferReader(document), arrow_json.ReadOptions(block_size=block_bytes), parsing
            )
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise _refusal(table, str(error)) from error
        if columns.num_rows != table.num_rows:
            if columns.num_columns == 0 and columns.num_rows == 0:
                # Objects without a single field have no columns, and so no rows either.
                return pa.table({"value": pa.nulls(table.num_rows)}).select([])
            raise _refusal(table, f"{table.num_rows} objects expected, {columns.num_rows} came")
        return columns


def _refusal(table: "pa.Table", why: str) -> SerializationError:
    """The first row that is to blame, where one can be found."""
    for row, value in enumerate(table.column("value").to_pylist()):
        if value is None:
            continue
        try:
            found = json.loads(value)
        except ValueError as error:
            return SerializationError(f"{_place(table, row)} is no JSON: {error}")
        if not isinstance(found, dict):
            return SerializationError(
                f"{_place(table, row)} is JSON, but no object: {type(found).__name__} has no columns; use decoder="
            )
    return SerializationError(
        f"the values of {_place(table, 0)} and those behind it do not fit into one table ({why}): give a schema"
    )


def _place(table: "pa.Table", row: int) -> str:
    names = ("topic", "partition", "offset")
    topic, partition, offset = (table.column(name)[row].as_py() for name in names)
    return f"the value of {topic}-{partition} at offset {offset}"
