"""How a record is written out: format strings with kcat's tokens.

| token        | stands for                                                                                         |
|--------------|----------------------------------------------------------------------------------------------------|
| `%t %p %o`   | topic, partition, offset                                                                           |
| `%k %s`      | key and value, as the bytes they are                                                               |
| `%K %S`      | their lengths; -1 for null                                                                         |
| `%R`         | the length of the value as 4 bytes, most significant first; -1 for null                            |
| `%T`         | the timestamp in milliseconds                                                                      |
| `%h`         | the headers, `name=value` separated by commas                                                      |
| `%%`         | a percent sign                                                                                     |
| `\\n \\r \\t \\\\ \\0 \\x41` | characters                                                                         |

A format is compiled once into a list of pieces; writing a record out only joins them.
"""

import re
import struct
from collections.abc import Callable, Sequence
from typing import Protocol

_LENGTH = struct.Struct(">i")
_PIECES = re.compile(r"%(.)|\\x([0-9a-fA-F]{2})|\\(.)|%$|\\$", re.S)
_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\", "0": b"\0", "a": b"\a", "b": b"\b", "f": b"\f", "v": b"\v"}

TOKENS = "%t %p %o %k %s %K %S %R %T %h %%"

Header = tuple[str, bytes | None]


class WrongFormat(ValueError):
    """A format string with a token that does not exist."""


class RecordLike(Protocol):
    """What is written out of a record."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[Header]: ...


Formatter = Callable[[RecordLike], bytes]


def compile_format(text: str, null: bytes = b"") -> Formatter:
    """A function from a record to the bytes of a format; `null` stands for a key or value that is null."""
    writers: list[bytes | Formatter] = []
    position = 0
    for match in _PIECES.finditer(text):
        writers.append(typed_bytes(text[position : match.start()]))
        writers.append(_piece(match, null))
        position = match.end()
    writers.append(typed_bytes(text[position:]))
    pieces = _without_seams(writers)

    def write(record: RecordLike) -> bytes:
        return b"".join([piece if isinstance(piece, bytes) else piece(record) for piece in pieces])

    return write


def _piece(match: re.Match[str], null: bytes) -> bytes | Formatter:
    token, hexadecimal, escape = match.groups()
    if hexadecimal is not None:
        return bytes([int(hexadecimal, 16)])
    if escape is not None:
        if escape not in _ESCAPES:
            raise WrongFormat(rf"'\{escape}' is no escape of a format: use \n \r \t \\ \0 or \x41")
        return _ESCAPES[escape]
    writer = _writers(null).get(token) if token is not None else None
    if writer is None:
        raise WrongFormat(f"{match.group()!r} is no token of a format: use {TOKENS}")
    return writer


def _writers(null: bytes) -> dict[str, bytes | Formatter]:
    def key(record: RecordLike) -> bytes:
        return null if record.key is None else record.key

    def value(record: RecordLike) -> bytes:
        return null if record.value is None else record.value

    return {
        "%": b"%",
        "t": lambda record: record.topic.encode(),
        "p": lambda record: b"%d" % record.partition,
        "o": lambda record: b"%d" % record.offset,
        "T": lambda record: b"%d" % record.timestamp,
        "k": key,
        "s": value,
        "K": lambda record: b"%d" % _length(record.key),
        "S": lambda record: b"%d" % _length(record.value),
        "R": lambda record: _LENGTH.pack(_length(record.value)),
        "h": lambda record: b",".join(
            name.encode() + b"=" + (b"NULL" if content is None else content) for name, content in record.headers
        ),
    }


def _length(content: bytes | None) -> int:
    return -1 if content is None else len(content)


def _without_seams(pieces: list[bytes | Formatter]) -> list[bytes | Formatter]:
    """Neighbouring constants as one, and no empty ones."""
    joined: list[bytes | Formatter] = []
    for piece in pieces:
        if isinstance(piece, bytes) and joined and isinstance(last := joined[-1], bytes):
            joined[-1] = last + piece
        elif piece != b"":
            joined.append(piece)
    return joined


def typed_bytes(text: str) -> bytes:
    """What was typed, byte for byte: a command line may hold bytes that are no text, which Python keeps its own way."""
    return text.encode("utf-8", "surrogateescape")


def unescape(text: str) -> bytes:
    """A delimiter as a user writes it: `\\t`, `\\x1f`, `: `."""
    parts: list[bytes] = []
    position = 0
    for match in re.finditer(r"\\x([0-9a-fA-F]{2})|\\(.)", text, re.S):
        parts.append(typed_bytes(text[position : match.start()]))
        hexadecimal, escape = match.groups()
        if hexadecimal is None and escape not in _ESCAPES:
            raise WrongFormat(rf"'\{escape}' is no escape: use \n \r \t \\ \0 or \x41")
        parts.append(bytes([int(hexadecimal, 16)]) if hexadecimal is not None else _ESCAPES[escape])
        position = match.end()
    parts.append(typed_bytes(text[position:]))
    return b"".join(parts)
