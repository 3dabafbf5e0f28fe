"""Values that are JSON objects as typed columns, with the meaning of Spark's `from_json` in its permissive mode.

A field that the object does not have is null; one that is not of its type is null, and the others are kept; a value
that is no JSON object, and a null value, is a row of nulls. Fields that the schema does not name are left out.

Arrow reads a whole batch at once when nothing in it is wrong. Each value is wrapped as `{"v": value}`: a line then is
either one row or an error, so a value with two objects, or with half of one, cannot push others out of their rows.
Values that a pattern finds odd are set aside before, and read one by one: a broken record now and then does not make
the others slow. The pattern only guesses. Where Arrow refuses all the same, every value is read one by one.
"""

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from ottla.spark.source.failures import SchemaError

_QUICK: Final = (BooleanType, LongType, DoubleType, StringType)
_INTEGER_BITS: Final[Mapping[type[DataType], int]] = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}
# What no value of the type begins with; each may be null.
_ODD_BEGINNINGS: Final[Mapping[type[DataType], str]] = {
    BooleanType: r"[^tfn\s]",
    LongType: r"(?:[^-0-9n\s]|-?[0-9]+[.eE])",
    DoubleType: r"[^-0-9n\s]",
    StringType: r"[^\"n\s]",
    StructType: r"[^{n\s]",
    ArrayType: r"[^\[n\s]",
}
_LARGEST_BLOCK_BYTES = (1 << 31) - 1
_SMALLEST_BLOCK_BYTES = 1 << 20

Reading = Callable[[Any], Any]


class JsonFields:
    """The columns of `fields`. SchemaError for a type that JSON cannot give."""

    def __init__(self, fields: StructType) -> None:
        self._fields = fields
        self._read_row = _reading_struct(fields, "value")
        self._arrow_fields = [pa.field(one.name, to_arrow_type(one.dataType, timezone="UTC")) for one in fields.fields]
        self._struct = pa.struct(self._arrow_fields)
        self._is_quick = all(_is_quick(one.dataType) for one in fields.fields)
        self._odd_pattern = _odd_pattern(fields)

    def columns(self, values: pa.Array) -> dict[str, pa.Array]:
        found = self._mostly_at_once(values) if self._is_quick and len(values) else None
        if found is None:
            rows = [self._row(value) for value in values.to_pylist()]
            found = pa.array(rows, self._struct)
        return {field.name: array for field, array in zip(self._arrow_fields, found.flatten(), strict=True)}

    def _mostly_at_once(self, values: pa.Array) -> pa.StructArray | None:
        """All but the odd ones at once; None where that is not possible."""
        if not _is_text(values):
            # Arrow would take the bytes as they are.
            return None
        is_odd = pc.fill_null(pc.match_substring_regex(values, self._odd_pattern), False)
        if not pc.any(is_odd).as_py():
            return self._at_once(values)
        is_plain = pc.invert(is_odd)
        plain = self._at_once(values.filter(is_plain)) if pc.any(is_plain).as_py() else None
        if plain is None:
            return None
        odd = pa.array([self._row(value) for value in values.filter(is_odd).to_pylist()], self._struct)
        places = pa.concat_arrays([pc.indices_nonzero(is_plain), pc.indices_nonzero(is_odd)])
        return pa.concat_arrays([plain, odd]).take(pc.sort_indices(places))

    def _at_once(self, values: pa.Array) -> pa.StructArray | None:
        """None where something is wrong with one of the values."""
        lines = pc.binary_join_element_wise(b'{"v":', pc.fill_null(values, b"null"), b"}\n", b"")
        longest = pc.max(pc.binary_length(lines)).as_py()
        block_bytes = min(max(2 * longest + 2, _SMALLEST_BLOCK_BYTES), _LARGEST_BLOCK_BYTES)
        parsing = arrow_json.ParseOptions(
            explicit_schema=pa.schema([pa.field("v", self._struct)]),
            newlines_in_values=True,
            unexpected_field_behavior="ignore",
        )
        reading = arrow_json.ReadOptions(block_size=block_bytes)
        try:
            table = arrow_json.read_json(pa.BufferReader(lines.buffers()[2]), reading, parsing)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        if table.num_rows != len(values) or table.num_columns != 1:
            return None
        column = table.column(0)
        return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)

    def _row(self, value: bytes | None) -> dict[str, Any] | None:
        if value is None:
            return None
        try:
            found = _DECODER.decode(value.decode())
        except (ValueError, RecursionError):
            return None
        row: dict[str, Any] | None = self._read_row(found)
        return row


class _Number(str):
    """A number with a fraction or an exponent, as it was written: a Decimal has to have all of its digits."""

    __slots__ = ()


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


# To make one takes longer than to decode a small value.
_DECODER: Final = json.JSONDecoder(parse_float=_Number, parse_constant=_no_constant)


def _is_text(values: pa.Array) -> bool:
    """Whether all of it is UTF-8."""
    try:
        values.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def _is_quick(kind: DataType) -> bool:
    """Whether Arrow reads it as Spark would."""
    if isinstance(kind, StructType):
        return all(_is_quick(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _is_quick(kind.elementType)
    return isinstance(kind, _QUICK)


def _odd_pattern(fields: StructType) -> str:
    """Of values that are no whole object, or where what follows a field's name does not begin as its type does."""
    names: dict[str, list[str]] = {}
    for name, kind in _named(fields):
        names.setdefault(_ODD_BEGINNINGS.get(type(kind), ""), []).append(re.escape(name))
    wrong = [f'"(?:{"|".join(some)})"\\s*:\\s*{beginning}' for beginning, some in names.items() if beginning]
    return "|".join([r"^\s*[^{\s]", r"[^}\s]\s*$", r"^\s*$", *wrong])


def _named(kind: DataType) -> Iterator[tuple[str, DataType]]:
    """All fields, also those of objects in objects and in lists."""
    if isinstance(kind, ArrayType):
        yield from _named(kind.elementType)
    if isinstance(kind, StructType):
        for field in kind.fields:
            yield field.name, field.dataType
            yield from _named(field.dataType)


def _reading(kind: DataType, name: str) -> Reading:
    """A function from what JSON has to what the column has, None for what does not fit."""
    match kind:
        case StructType():
            return _reading_struct(kind, name)
        case ArrayType():
            element = _reading(kind.elementType, name)
            return lambda found: [element(one) for one in found] if isinstance(found, list) else None
        case MapType() if isinstance(kind.keyType, StringType):
            entry = _reading(kind.valueType, name)
            return lambda found: [(key, entry(one)) for key, one in found.items()] if isinstance(found, dict) else None
        case ByteType() | ShortType() | IntegerType() | LongType():
            bits = _INTEGER_BITS[type(kind)]
            return lambda found: _whole(found, bits)
        case DecimalType():
            return lambda found: _decimal(found, kind)
    simple = _SIMPLE.get(type(kind))
    if simple is None:
        raise SchemaError(f"the schema has {name} as {kind.simpleString()}, which valueFormat json cannot read")
    return simple


def _reading_struct(kind: StructType, name: str) -> Reading:
    readings = {field.name: _reading(field.dataType, f"{name}.{field.name}") for field in kind.fields}

    def read(found: Any) -> dict[str, Any] | None:
        if not isinstance(found, dict):
            return None
        return {field: None if (one := found.get(field)) is None else to(one) for field, to in readings.items()}

    return read


def _whole(found: Any, bits: int) -> int | None:
    if isinstance(found, bool) or not isinstance(found, int):
        return None
    return found if -(1 << (bits - 1)) <= found < 1 << (bits - 1) else None


def _double(found: Any) -> float | None:
    if isinstance(found, _Number):
        return float(found)
    if isinstance(found, str):
        return {
            "NaN": float("nan"),
            "Infinity": float("inf"),
            "+Infinity": float("inf"),
            "INF": float("inf"),
            "-Infinity": float("-inf"),
            "-INF": float("-inf"),
        }.get(found)
    if isinstance(found, bool) or not isinstance(found, int):
        return None
    try:
        return float(found)
    except OverflowError:
        return float("inf") if found > 0 else float("-inf")


def _decimal(found: Any, kind: DecimalType) -> Decimal | None:
    if isinstance(found, bool) or not isinstance(found, int | str):
        return None
    try:
        number = Decimal(found).quantize(Decimal(1).scaleb(-kind.scale))
    except (InvalidOperation, ValueError):
        return None
    return number if number.is_finite() and number.adjusted() < kind.precision - kind.scale else None


def _text(found: Any) -> str:
    """Anything but a string is the JSON that it was."""
    if isinstance(found, str):
        return str(found)
    return json.dumps(_with_floats(found), separators=(",", ":"), ensure_ascii=False)


def _with_floats(found: Any) -> Any:
    """The same, with numbers where only the digits were kept."""
    if isinstance(found, _Number):
        return float(found)
    if isinstance(found, dict):
        return {key: _with_floats(one) for key, one in found.items()}
    return [_with_floats(one) for one in found] if isinstance(found, list) else found


def _timestamp(found: Any) -> datetime | None:
    """ISO 8601; in UTC where no zone is written."""
    if not isinstance(found, str) or isinstance(found, _Number):
        return None
    try:
        time = datetime.fromisoformat(found)
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _date(found: Any) -> date | None:
    if not isinstance(found, str) or isinstance(found, _Number):
        return None
    try:
        return date.fromisoformat(found)
    except ValueError:
        return None


def _binary(found: Any) -> bytes | None:
    if not isinstance(found, str) or isinstance(found, _Number):
        return None
    try:
        return base64.b64decode(found, validate=True)
    except ValueError:
        return None


_SIMPLE: Final[Mapping[type[DataType], Reading]] = {
    StringType: _text,
    BooleanType: lambda found: found if isinstance(found, bool) else None,
    FloatType: _double,
    DoubleType: _double,
    TimestampType: _timestamp,
    DateType: _date,
    BinaryType: _binary,
}
