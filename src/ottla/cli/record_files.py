"""Files of records: JSON lines and Parquet, written and read in bounded portions, and CSV, which is only written."""

import contextlib
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from ottla.cli.connecting import WrongUsage
from ottla.cli.csv_records import CSV_HEAD, to_csv
from ottla.cli.formats import RecordLike
from ottla.cli.json_records import RecordToSend, to_json
from ottla.cli.lines import LineFormat, Splitter, numbered, read_some
from ottla.cli.output import write_all
from ottla.cli.parquet_rows import arrow_module, parquet_module, read_parquet
from ottla.cli.places import FileFormat, FilePlace

_PARTIAL = ".partial"


def read_file(place: FilePlace, *, with_partitions: bool = True) -> Iterator[tuple[list[RecordToSend], int]]:
    """The records of a file in portions, each with the number of bytes (or rows of Parquet) that it took. What a column
    of partitions holds does not matter to who does not need it."""
    if place.format is not FileFormat.PARQUET:
        return _read_json(place.path)
    path = path_of(place)
    with _readable(path):
        return read_parquet(path, with_partitions=with_partitions)


def size_of(place: FilePlace) -> int | None:
    """What the portions of `read_file` add up to; None where that is not known."""
    if place.path is None:
        return None
    if place.format is FileFormat.PARQUET:
        with _readable(place.path):
            return int(parquet_module().ParquetFile(place.path).metadata.num_rows)
    with _readable(place.path):
        return place.path.stat().st_size


def refuse_directory(path: Path) -> None:
    with _writable(path):
        _is_file(path)


class _NewFile:
    """A file that has its name only when it is whole: what was there before stays until then. Where the name is a link,
    it is the file behind it that is replaced; what is no file (a pipe, a device) is written straight."""

    def __init__(self, path: Path) -> None:
        with _writable(path):
            self.is_replaced = _is_file(path)
            self._path = Path(os.path.realpath(path)) if self.is_replaced else path
            self._partial = self._path.with_name(self._path.name + _PARTIAL) if self.is_replaced else path
            self.stream: BinaryIO = self._partial.open("wb")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        is_whole = False
        try:
            self.stream.close()
            if kind is None and self.is_replaced:
                os.replace(self._partial, self._path)
            is_whole = True
        finally:
            if self.is_replaced and (kind is not None or not is_whole):
                with contextlib.suppress(OSError):
                    self._partial.unlink()


def _is_file(path: Path) -> bool:
    """Whether a file is there, or could be: not for pipes and devices. A directory is refused."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return True
    if stat.S_ISDIR(mode):
        raise WrongUsage(f"{path} cannot be written: it is a directory")
    return stat.S_ISREG(mode)


class TextSink:
    """JSON lines, or CSV."""

    def __init__(self, place: FilePlace) -> None:
        path = place.path
        self._line = to_csv if place.format is FileFormat.CSV else _json_line
        self._new = None if path is None else _NewFile(path)
        self._stream = sys.stdout.buffer if self._new is None else self._new.stream
        self._is_waited_for = self._new is None or not self._new.is_replaced
        self._head = CSV_HEAD if place.format is FileFormat.CSV else ""

    def write(self, records: Sequence[RecordLike]) -> None:
        self._write(self._head + "".join(map(self._line, records)))
        self._head = ""

    def _write(self, text: str) -> None:
        write_all(self._stream, text.encode())
        if self._is_waited_for:
            self._stream.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None and self._head:
            self._write(self._head)
        if self._new is not None:
            self._new.__exit__(kind, error, traceback)


def _json_line(record: RecordLike) -> str:
    return to_json(record) + "\n"


class ParquetSink:
    """Columns topic, partition, offset, timestamp (milliseconds, UTC), key, value, headers."""

    def __init__(self, path: Path) -> None:
        self._schema = parquet_schema()
        writer = parquet_module().ParquetWriter
        self._stack = contextlib.ExitStack()
        stream = self._stack.enter_context(_NewFile(path)).stream
        self._writer = self._stack.enter_context(writer(stream, self._schema, compression="zstd"))

    def write(self, table: Any) -> None:
        """A table with these columns, in any order, and maybe others."""
        self._writer.write_table(table.select(self._schema.names).cast(self._schema))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, traceback)


def parquet_schema() -> Any:
    arrow = arrow_module()
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


def path_of(place: FilePlace) -> Path:
    if place.path is None:
        raise WrongUsage("Parquet needs a file: it cannot be written in one go from start to end")
    return place.path


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
