"""Rows of Parquet files, our own and those of others, as records.

| column      | may be                                                                                           |
|-------------|--------------------------------------------------------------------------------------------------|
| `value`     | anything; must be there. Bytes and text are taken as they are, numbers and times as their text,   |
|             | truth values, lists and structs as JSON                                                          |
| `key`       | the same, and may be left out                                                                    |
| `timestamp` | times, dates, or whole numbers: milliseconds since 1970                                          |
| `headers`   | a list of structs with `key` and `value`, or a map; names are text                               |
| `partition` | whole numbers                                                                                    |

Other columns are not read. What a column may be is checked once, before the first row.
"""

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ottla.cli.connecting import WrongUsage
from ottla.cli.formats import Header
from ottla.cli.json_records import BASE64, RecordToSend

ROWS_AT_ONCE = 10_000
_NO_TIMESTAMP = -1


def read_parquet(path: Path, *, with_partitions: bool) -> Iterator[tuple[list[RecordToSend], int]]:
    """The records in portions, each with its number of rows; fails at once where the file has other columns."""
    file = parquet_module().ParquetFile(path)
    names = file.schema_arrow.names
    if "value" not in names:
        raise WrongUsage(f"{path} has no column 'value': its columns are {', '.join(sorted(names))}")
    wanted = ["value", "key", "timestamp", "headers", *(["partition"] if with_partitions else [])]
    columns = [name for name in wanted if name in names]
    _check_types(path, file.schema_arrow, columns)
    return _portions(path, file, columns)


def _portions(path: Path, file: Any, columns: list[str]) -> Iterator[tuple[list[RecordToSend], int]]:
    for batch in file.iter_batches(ROWS_AT_ONCE, columns=columns):
        if "timestamp" in columns:
            at = batch.schema.get_field_index("timestamp")
            batch = batch.set_column(at, "timestamp", _milliseconds(path, batch.column(at)))
        yield [_from_row(row) for row in batch.to_pylist()], batch.num_rows


def _check_types(path: Path, schema: Any, columns: list[str]) -> None:
    types = arrow_module().types
    checks: dict[str, tuple[Callable[[Any], bool], str]] = {
        "timestamp": (_are_times, "times or whole numbers"),
        "headers": (_are_headers, "a list of structs with key and value, or a map"),
        "partition": (types.is_integer, "whole numbers"),
    }
    for name in set(columns) & set(checks):
        kind = schema.field(name).type
        is_right, expected = checks[name]
        if not (types.is_null(kind) or is_right(kind)):
            raise WrongUsage(f"column {name!r} of {path} is {kind}: it must be {expected}")


def _are_times(kind: Any) -> bool:
    types = arrow_module().types
    return bool(types.is_timestamp(kind) or types.is_date(kind) or types.is_integer(kind))


def _are_headers(kind: Any) -> bool:
    types = arrow_module().types
    if types.is_map(kind):
        return _is_text(kind.key_type)
    if not (types.is_list(kind) or types.is_large_list(kind)) or not types.is_struct(kind.value_type):
        return False
    fields = {field.name: field.type for field in kind.value_type}
    return "value" in fields and "key" in fields and _is_text(fields["key"])


def _is_text(kind: Any) -> bool:
    types = arrow_module().types
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _milliseconds(path: Path, times: Any) -> Any:
    """Milliseconds since 1970; what is finer than that is cut off."""
    import pyarrow.compute as compute

    arrow = arrow_module()
    if not arrow.types.is_integer(times.type):
        times = times.cast(arrow.timestamp("ms"), safe=False) if arrow.types.is_date(times.type) else times
        times = times.cast(arrow.timestamp("ms", tz="UTC"), safe=False)
    numbers = times.cast(arrow.int64())
    least = compute.min(numbers).as_py()
    if least is not None and least < _NO_TIMESTAMP:
        raise WrongUsage(f"column 'timestamp' of {path} has times before 1970, which records cannot have")
    return numbers


def _from_row(row: dict[str, Any]) -> RecordToSend:
    timestamp = row.get("timestamp")
    return RecordToSend(
        _bytes(row["value"]),
        _bytes(row.get("key")),
        tuple(map(_header, row.get("headers") or ())),
        None,
        row.get("partition"),
        None if timestamp == _NO_TIMESTAMP else timestamp,
    )


def _header(given: Any) -> Header:
    name, content = (given["key"], given["value"]) if isinstance(given, dict) else given or (None, None)
    if name is None:
        raise WrongUsage("a header has no name: the column 'headers' has a null where its key should be")
    return name, _bytes(content)


def _bytes(content: object) -> bytes | None:
    if content is None or isinstance(content, bytes):
        return content
    if isinstance(content, dict | list | bool):
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"), default=_plain).encode()
    return str(content).encode()


def _plain(content: object) -> object:
    """What JSON has no form for, within a struct or a list."""
    if not isinstance(content, bytes):
        return str(content)
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {BASE64: base64.b64encode(content).decode()}


def arrow_module() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise WrongUsage("Parquet needs pyarrow: pip install 'ottla[arrow]'") from None
    return pyarrow


def parquet_module() -> Any:
    arrow_module()
    import pyarrow.parquet

    return pyarrow.parquet
