"""Files of records: JSON lines and Parquet, written and read in bounded portions."""

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from ottla.cli.connecting import WrongUsage
from ottla.cli.formats import RecordLike
from ottla.cli.json_records import RecordToSend, to_json
from ottla.cli.lines import LineFormat, Splitter, numbered, read_some
from ottla.cli.places import FileFormat, FilePlace

ROWS_AT_ONCE = 10_000
_PARTIAL = ".partial"


def read_file(place: FilePlace) -> Iterator[tuple[list[RecordToSend], int]]:
    """The records of a file in portions, each with the number of bytes (or rows of Parquet) that it took."""
    return _read_parquet(path_of(place)) if place.format is FileFormat.PARQUET else _read_json(place.path)


def size_of(place: FilePlace) -> int | None:
    """What the portions of `read_file` add up to; None where that is not known."""
    if place.path is None:
        return None
    if place.format is FileFormat.PARQUET:
        with _readable(place.path):
            return int(_parquet().ParquetFile(place.path).metadata.num_rows)
    with _readable(place.path):
        return place.path.stat().st_size


class _NewFile:
    """A file that has its name only when it is whole: what was there before stays until then."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.partial = path.with_name(path.name + _PARTIAL)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            os.replace(self.partial, self.path)
        else:
            with contextlib.suppress(OSError):
                self.partial.unlink()


class JsonSink:
    def __init__(self, path: Path | None) -> None:
        self._new = None if path is None else _NewFile(path)
        self._stream: BinaryIO = sys.stdout.buffer
        if self._new is not None:
            with _writable(self._new.path):
                self._stream = self._new.partial.open("wb")

    def write(self, records: Sequence[RecordLike]) -> None:
        self._stream.write("".join([to_json(record) + "\n" for record in records]).encode())
        if self._new is None:
            self._stream.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._new is not None:
            self._stream.close()
            self._new.__exit__(kind, error, traceback)


class ParquetSink:
    """Columns topic, partition, offset, timestamp (milliseconds, UTC), key, value, headers."""

    def __init__(self, path: Path) -> None:
        self._new = _NewFile(path)
        self._schema = parquet_schema()
        with _writable(path):
            self._writer = _parquet().ParquetWriter(self._new.partial, self._schema, compression="zstd")

    def write(self, table: Any) -> None:
        """A table with these columns, in any order, and maybe others."""
        self._writer.write_table(table.select(self._schema.names).cast(self._schema))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._writer.close()
        self._new.__exit__(kind, error, traceback)


def parquet_schema() -> Any:
    arrow = _arrow()
    header = arrow.struct([arrow.field("key", arrow.string(), False), ("value", arrow.binary())])
    return arrow.schema(
        [
            ("topic", arrow.string()),
            ("partition", arrow.int32()),
            ("offset", arrow.int64()),
            ("timestamp", arrow.timestamp("ms", tz="UTC")),
            ("key", arrow.binary()),
            ("value", arrow.binary()),
            ("headers", arrow.list_(header)),
        ]
    )


def _read_json(path: Path | None) -> Iterator[tuple[list[RecordToSend], int]]:
    splitter = Splitter()
    line_format = LineFormat(is_json=True)
    number = 1
    with contextlib.ExitStack() as stack:
        stream: Any = sys.stdin.buffer
        if path is not None:
            with _readable(path):
                stream = stack.enter_context(path.open("rb"))
        while chunk := read_some(stream):
            lines = splitter.feed(chunk)
            yield list(numbered(lines, number, line_format)), len(chunk)
            number += len(lines)
        yield list(numbered(splitter.finish(), number, line_format)), 0


def _read_parquet(path: Path) -> Iterator[tuple[list[RecordToSend], int]]:
    with _readable(path):
        file = _parquet().ParquetFile(path)
    names = set(file.schema_arrow.names)
    if "value" not in names:
        raise WrongUsage(f"{path} has no column 'value': its columns are {', '.join(sorted(names))}")
    arrow = _arrow()
    for batch in file.iter_batches(ROWS_AT_ONCE):
        if "timestamp" in names:
            column = batch.schema.get_field_index("timestamp")
            times = batch.column(column).cast(arrow.timestamp("ms", tz="UTC")).cast(arrow.int64())
            batch = batch.set_column(column, "timestamp", times)
        yield [_from_row(row) for row in batch.to_pylist()], batch.num_rows


def _from_row(row: dict[str, Any]) -> RecordToSend:
    return RecordToSend(
        _bytes(row["value"]),
        _bytes(row.get("key")),
        tuple((header["key"], _bytes(header["value"])) for header in row.get("headers") or ()),
        row.get("topic"),
        row.get("partition"),
        row.get("timestamp"),
    )


def _bytes(content: object) -> bytes | None:
    if content is None or isinstance(content, bytes):
        return content
    return str(content).encode()


def path_of(place: FilePlace) -> Path:
    if place.path is None:
        raise WrongUsage("Parquet needs a file: it cannot be written in one go from start to end")
    return place.path


def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise WrongUsage("Parquet needs pyarrow: pip install 'ottla[arrow]'") from None
    return pyarrow


def _parquet() -> Any:
    _arrow()
    import pyarrow.parquet

    return pyarrow.parquet


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise WrongUsage(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise WrongUsage(f"{path} cannot be read: {error}") from None


@contextlib.contextmanager
def _writable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise WrongUsage(f"{path} cannot be written: {error.strerror or error}") from None
