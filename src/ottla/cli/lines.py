"""Bytes from a pipe or a file as records: split at a delimiter, and read as key, value and headers."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from ottla.cli.connecting import WrongUsage
from ottla.cli.formats import Header, typed_bytes
from ottla.cli.json_records import RecordToSend, WrongLine, from_json

CHUNK_BYTES = 1 << 18
MAX_RECORD_BYTES = 256 * 1024 * 1024


class Splitter:
    """Pieces of a stream between delimiters, whatever chunks it comes in. What is behind the last delimiter counts
    unless it is empty, so that a file may end with a newline or not."""

    def __init__(self, delimiter: bytes = b"\n", max_bytes: int = MAX_RECORD_BYTES) -> None:
        if not delimiter:
            raise WrongUsage("the delimiter between records is empty: give at least one character")
        self._delimiter = delimiter
        self._max_bytes = max_bytes
        self._rest = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        *pieces, self._rest = (self._rest + chunk).split(self._delimiter)
        if len(self._rest) > self._max_bytes:
            raise WrongLine(f"no delimiter within {self._max_bytes} bytes: is it the right one?")
        return pieces

    def finish(self) -> list[bytes]:
        rest, self._rest = self._rest, b""
        return [rest] if rest else []


@dataclass(frozen=True, slots=True)
class LineFormat:
    """How a line is read. With a `key_separator`, what stands before the first one is the key. `null` is the text that
    stands for null; `is_json` takes the line as a record in JSON; what the line does not say is taken from here."""

    key_separator: bytes | None = None
    key: bytes | None = None
    headers: tuple[Header, ...] = ()
    partition: int | None = None
    null: bytes | None = None
    is_json: bool = False

    def read(self, line: bytes) -> RecordToSend:
        if self.is_json:
            return self._with_defaults(from_json(line, self.key))
        key, value = self.key, line
        if self.key_separator is not None:
            before, found, after = line.partition(self.key_separator)
            if not found:
                raise WrongLine(f"there is no key separator {_shown(self.key_separator)} in {_shown(line)}")
            key, value = before, after
        return RecordToSend(self._unless_null(value), self._unless_null(key), self.headers, None, self.partition)

    def _unless_null(self, content: bytes | None) -> bytes | None:
        return None if content is not None and content == self.null else content

    def _with_defaults(self, record: RecordToSend) -> RecordToSend:
        return RecordToSend(
            record.value,
            record.key,
            record.headers + self.headers,
            None,
            self.partition if record.partition is None else record.partition,
            record.timestamp,
        )


def numbered(lines: list[bytes], first_number: int, line_format: LineFormat) -> Iterator[RecordToSend]:
    """The records of these lines; an error says which line it is. Empty lines between JSON records mean nothing."""
    for number, line in enumerate(lines, first_number):
        if line_format.is_json and not line.strip():
            continue
        try:
            yield line_format.read(line)
        except WrongLine as error:
            raise WrongLine(f"line {number}: {error}") from None


def read_some(stream: BinaryIO) -> bytes:
    """What is there, or comes next; empty at the end. Standard input is read past Python's buffer: a thread that
    holds its lock for ever could not be left behind."""
    try:
        descriptor = stream.fileno()
    except OSError:
        return stream.read(CHUNK_BYTES)
    return os.read(descriptor, CHUNK_BYTES)


def parse_header(text: str) -> Header:
    name, separator, value = text.partition("=")
    if not name:
        raise WrongUsage(f"--header {text}: it must look like name=value")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise WrongUsage(f"--header {_shown(typed_bytes(text))}: the name is no text in UTF-8") from None
    return (name, typed_bytes(value) if separator else None)


def _shown(content: bytes, most: int = 40) -> str:
    text = content.decode(errors="replace")
    return repr(text if len(text) <= most else text[:most] + "...")
