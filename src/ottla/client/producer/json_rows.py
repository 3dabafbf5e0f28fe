"""Rows of an Arrow table as JSON objects, column by column: no Python object for a row.

| column                      | in JSON                                                       |
|-----------------------------|---------------------------------------------------------------|
| integers, decimals, floats  | numbers; null for NaN and the infinities, which JSON lacks    |
| booleans, nulls             | as they are                                                   |
| strings, binary of UTF-8    | strings                                                       |
| timestamps                  | strings: 2024-05-01T12:00:00.000, with Z where they have a zone |
| dates, times                | strings: 2024-05-01, 12:00:00                                 |
| durations                   | numbers, in the unit of the column                            |
"""

import json
from typing import TYPE_CHECKING, Any

from ottla.client.errors import SerializationError

if TYPE_CHECKING:
    import pyarrow as pa

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SPECIAL = {**_ESCAPES, **{chr(code): f"\\u{code:04x}" for code in range(32) if chr(code) not in _ESCAPES}}
_NEEDS_ESCAPE = '[\\x00-\\x1f"\\\\]'


def json_rows(batch: "pa.RecordBatch", names: list[str]) -> "pa.Array":
    """A column of text: for every row the object of the named columns."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not names:
        return pa.repeat(pa.scalar("{}", pa.large_string()), batch.num_rows)
    pieces: list[Any] = []
    for index, name in enumerate(names):
        opening = ("{" if index == 0 else ",") + json.dumps(name, ensure_ascii=False) + ":"
        column = _as_json(batch.column(name), name)
        pieces += (pa.scalar(opening, pa.large_string()), column.cast(pa.large_string()))
    pieces.append(pa.scalar("}", pa.large_string()))
    return pc.binary_join_element_wise(*pieces, pa.scalar("", pa.large_string()))


def _as_json(column: "pa.Array", name: str) -> "pa.Array":
    """Every value as JSON text, `null` for null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    types = pa.types
    if types.is_dictionary(kind):
        return _as_json(column.dictionary_decode(), name)
    if types.is_null(kind):
        return pa.repeat(pa.scalar("null"), len(column))
    if types.is_floating(kind):
        wide = column.cast(pa.float64())
        text = pc.if_else(pc.is_finite(wide), wide, pa.scalar(None, pa.float64())).cast(pa.string())
    elif types.is_integer(kind) or types.is_boolean(kind) or types.is_decimal(kind):
        text = column.cast(pa.string())
    elif types.is_duration(kind):
        text = column.cast(pa.int64()).cast(pa.string())
    elif types.is_timestamp(kind):
        text = _quoted(pc.replace_substring(column.cast(pa.string()), " ", "T", max_replacements=1))
    elif types.is_date(kind) or types.is_time(kind):
        text = _quoted(column.cast(pa.string()))
    else:
        text = _quoted(_escaped(_text(column, name)))
    return pc.fill_null(text, "null")


def _text(column: "pa.Array", name: str) -> "pa.Array":
    import pyarrow as pa

    try:
        return column.cast(pa.large_string())
    except pa.ArrowInvalid as error:
        raise SerializationError(f"column {name}: UTF-8 expected for JSON, other bytes came: {error}") from None
    except pa.ArrowNotImplementedError:
        raise SerializationError(
            f"column {name}: {column.type} has no place in flat JSON: make a column of bytes, and name it as value"
        ) from None


def _escaped(column: "pa.Array") -> "pa.Array":
    import pyarrow.compute as pc

    if not pc.any(pc.match_substring_regex(column, _NEEDS_ESCAPE)).as_py():
        return column
    for character, escape in _SPECIAL.items():
        if character == "\\" or pc.any(pc.match_substring(column, character)).as_py():
            column = pc.replace_substring(column, character, escape)
    return column


def _quoted(column: "pa.Array") -> "pa.Array":
    import pyarrow as pa
    import pyarrow.compute as pc

    quote = pa.scalar('"', column.type)
    return pc.binary_join_element_wise(quote, column, quote, pa.scalar("", column.type))
