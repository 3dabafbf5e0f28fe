"""Records as JSON lines, in and out.

    {"topic": "orders", "partition": 0, "offset": 7, "timestamp": 1767225600000, "key": "42", "value": "tea",
     "headers": [["source", "shop"]]}

A key, a value or a header is a string where its bytes are UTF-8, null where it is null, and {"base64": "..."} where it
is neither: what was written is read back byte for byte. Where values are asked for as JSON, one that is JSON stands in
the line as it is. On the way in, any other JSON (objects, numbers ...) is written compactly as the value. Numbers keep
the digits that they were written with, in either direction.
"""

import base64
import binascii
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from ottla.cli.formats import Header, RecordLike

BASE64 = "base64"
_LARGEST_PARTITION = 2**31 - 1
_LARGEST_TIMESTAMP = 2**63 - 1
# What brokers give to records without a time.
_NO_TIMESTAMP = -1
_FIELDS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")


class WrongLine(ValueError):
    """A line that is no record."""


@dataclass(frozen=True, slots=True)
class RecordToSend:
    """What a line says; None for the fields that it leaves out (a null value has `value` None, too)."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[Header, ...] = ()
    topic: str | None = None
    partition: int | None = None
    timestamp: int | None = None


def to_json(record: RecordLike, *, is_key_json: bool = False, is_value_json: bool = False) -> str:
    """One line, without its end."""
    return (
        f'{{"topic": {_quoted(record.topic)}, "partition": {record.partition}, "offset": {record.offset}, '
        f'"timestamp": {record.timestamp}, "key": {_out(record.key, is_key_json)}, '
        f'"value": {_out(record.value, is_value_json)}, "headers": {headers_json(record.headers)}}}'
    )


def headers_json(headers: Sequence[Header]) -> str:
    """A list of names and values."""
    return "[" + ", ".join([f"[{_quoted(name)}, {_out(content, False)}]" for name, content in headers]) + "]"


def base64_json(content: bytes) -> str:
    """Bytes that are no text."""
    return f'{{"{BASE64}": "{base64.b64encode(content).decode()}"}}'


def from_json(line: str | bytes, key: bytes | None = None) -> RecordToSend:
    """What a line says; `key` is for a line that leaves the key out, while a null is one."""
    try:
        given = _READER.decode(line if isinstance(line, str) else line.decode("utf-8-sig"))
    except ValueError as error:
        raise WrongLine(f"this is no JSON: {error}") from None
    except RecursionError:
        raise WrongLine("this is nested too deeply") from None
    if not isinstance(given, dict):
        raise WrongLine("a record is a JSON object with the fields key, value, headers ...")
    unknown = sorted(set(given) - set(_FIELDS))
    if unknown:
        raise WrongLine(f"{unknown[0]!r} is no field of a record: it has {', '.join(_FIELDS)}")
    if "value" not in given:
        raise WrongLine("the field 'value' is missing; null makes a tombstone")
    return RecordToSend(
        _in(given["value"], "value"),
        _in(given["key"], "key") if "key" in given else key,
        _headers_in(given.get("headers")),
        _text(given, "topic"),
        _number(given, "partition", _LARGEST_PARTITION),
        None if given.get("timestamp") == _NO_TIMESTAMP else _number(given, "timestamp", _LARGEST_TIMESTAMP),
    )


@dataclass(frozen=True, slots=True)
class _Digits:
    """A number that Python would write in another way than it was, or cannot hold."""

    text: str

    def __repr__(self) -> str:
        return self.text


def _float(text: str) -> object:
    return number if repr(number := float(text)) == text else _Digits(text)


def _finite_float(text: str) -> object:
    if math.isinf(float(text)):
        raise ValueError(f"{text} is more than most readers can hold")
    return _float(text)


def _integer(text: str) -> object:
    return _Digits(text) if text == "-0" or len(text) > _MOST_DIGITS else int(text)


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


# Python refuses to read more of them.
_MOST_DIGITS = 4000
_READER = json.JSONDecoder(parse_float=_float, parse_int=_integer, parse_constant=_refuse_constant)
_CAREFUL_READER = json.JSONDecoder(parse_float=_finite_float, parse_int=_integer, parse_constant=_refuse_constant)
_WRITER = json.JSONEncoder(ensure_ascii=False)
_COMPACT_WRITER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_quoted = _WRITER.encode


def _out(content: bytes | None, is_json: bool) -> str:
    """A piece of the line."""
    if content is None:
        return "null"
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return base64_json(content)
    return (_unquoted(text) if is_json else None) or _quoted(text)


def _unquoted(text: str) -> str | None:
    """None for what has to stay text: what is no JSON or more than readers of JSON can take (numbers without end, half
    characters, too many brackets), and what would not be read back as the bytes that it is (a string would lose its
    quotes, a null would be a tombstone, the object for bytes would be bytes)."""
    try:
        found = _CAREFUL_READER.decode(text)
        if found is None or isinstance(found, str) or _is_base64(found):
            return None
        written = _written(found, _WRITER)
        written.encode()
    except (ValueError, RecursionError):
        return None
    return written


def _written(value: object, writer: json.JSONEncoder) -> str:
    try:
        return writer.encode(value)
    except TypeError:
        return _written_by_hand(value, writer)


def _written_by_hand(value: object, writer: json.JSONEncoder) -> str:
    """As the writer would, if it knew how to write digits."""
    if isinstance(value, _Digits):
        return value.text
    if isinstance(value, list):
        return f"[{writer.item_separator.join([_written_by_hand(one, writer) for one in value])}]"
    if isinstance(value, dict):
        members = [
            f"{writer.encode(name)}{writer.key_separator}{_written_by_hand(one, writer)}" for name, one in value.items()
        ]
        return f"{{{writer.item_separator.join(members)}}}"
    return writer.encode(value)


def _in(given: object, field: str) -> bytes | None:
    if given is None:
        return None
    if isinstance(given, str):
        return _utf8(given, field)
    if _is_base64(given):
        assert isinstance(given, dict)
        try:
            return base64.b64decode(given[BASE64], validate=True)
        except (binascii.Error, ValueError, TypeError):
            raise WrongLine(f"the base64 of {field!r} cannot be read") from None
    try:
        return _utf8(_written(given, _COMPACT_WRITER), field)
    except RecursionError:
        raise WrongLine(f"{field!r} is nested too deeply") from None


def _utf8(text: str, field: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise WrongLine(f"{field!r} has half of a character (an escape from \\ud800 to \\udfff alone)") from None


def _is_base64(given: object) -> bool:
    return isinstance(given, dict) and list(given) == [BASE64]


def _headers_in(given: object) -> tuple[Header, ...]:
    if given is None:
        return ()
    pairs: Sequence[object]
    if isinstance(given, dict):
        pairs = [list(item) for item in given.items()]
    elif isinstance(given, list):
        pairs = given
    else:
        raise WrongLine("'headers' is an object, or a list of [name, value]")
    headers = []
    for pair in pairs:
        if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)):
            raise WrongLine("'headers' is an object, or a list of [name, value]")
        _utf8(pair[0], "headers")
        headers.append((pair[0], _in(pair[1], f"headers.{pair[0]}")))
    return tuple(headers)


def _text(given: dict[str, object], field: str) -> str | None:
    content = given.get(field)
    if content is None or isinstance(content, str):
        return content
    raise WrongLine(f"{field!r} is {content!r}: it must be a string")


def _number(given: dict[str, object], field: str, largest: int) -> int | None:
    content = given.get(field)
    if content is None:
        return None
    if not isinstance(content, int) or isinstance(content, bool):
        raise WrongLine(f"{field!r} is {content!r}: it must be a whole number")
    if not 0 <= content <= largest:
        raise WrongLine(f"{field!r} is {content}: it must be from 0 to {largest}")
    return content
