"""Tables of other libraries as Arrow tables: pandas, polars, and whatever has Arrow's stream of C data.

A pandas index is no column: it is left out. Columns of views, which polars has, become plain ones: not all that is done
with columns afterwards knows views.
"""

import sys
from typing import TYPE_CHECKING, Any

from ottla.client.errors import SerializationError

if TYPE_CHECKING:
    import pyarrow as pa


def is_arrow(table: object) -> bool:
    """Whether it is Arrow's own already. Whoever has one of those has imported pyarrow."""
    pa = sys.modules.get("pyarrow")
    return pa is not None and isinstance(table, pa.Table | pa.RecordBatch)


def as_arrow(table: Any) -> "pa.Table":
    """The table in Arrow's form; SerializationError for what is none. It may take long for a large one."""
    import pyarrow as pa

    pandas = sys.modules.get("pandas")
    try:
        if pandas is not None and isinstance(table, pandas.DataFrame):
            return pa.Table.from_pandas(table, preserve_index=False)
        if hasattr(table, "__arrow_c_stream__"):
            return _without_views(pa.RecordBatchReader.from_stream(table).read_all())
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError) as error:
        raise SerializationError(f"the table cannot be sent: {error}") from error
    hint = ": collect() it first" if hasattr(table, "collect") else ""
    raise SerializationError(
        f"table: an Arrow table, a frame of pandas or polars, or another object with __arrow_c_stream__ expected, "
        f"{type(table).__module__}.{type(table).__qualname__} came{hint}"
    )


def _without_views(table: "pa.Table") -> "pa.Table":
    for index, field in enumerate(table.schema):
        plain = _plain(field.type)
        if plain != field.type:
            chunks = [_cast(chunk, plain) for chunk in table.column(index).chunks]
            table = table.set_column(index, field.name, _chunked(chunks, plain))
    return table


def _chunked(chunks: "list[pa.Array]", kind: "pa.DataType") -> "pa.ChunkedArray":
    import pyarrow as pa

    return pa.chunked_array(chunks, kind)


def _cast(chunk: "pa.Array", plain: "pa.DataType") -> "pa.Array":
    import pyarrow as pa

    if pa.types.is_dictionary(chunk.type):
        return pa.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary.cast(plain)).dictionary_decode()
    return chunk.cast(plain)


def _plain(kind: "pa.DataType") -> "pa.DataType":
    """The same type without views."""
    import pyarrow as pa

    types = pa.types
    if types.is_string_view(kind):
        return pa.large_string()
    if types.is_binary_view(kind):
        return pa.large_binary()
    if types.is_dictionary(kind):
        inner = _plain(kind.value_type)
        return kind if inner == kind.value_type else inner
    if types.is_struct(kind):
        return pa.struct([pa.field(one.name, _plain(one.type), one.nullable) for one in kind])
    if types.is_list(kind):
        return pa.list_(_plain(kind.value_type))
    if types.is_large_list(kind):
        return pa.large_list(_plain(kind.value_type))
    return kind
