"""Records as JSON lines, in and out.

    {"topic": "orders", "partition": 0, "offset": 7, "timestamp": 1767225600000, "key": "42", "value": "tea",
     "headers": [["source", "shop"]]}

A key, a value or a header is a string where its bytes are UTF-8, null where it is null, and {"base64": "..."} where it
is neither: what was written is read back byte for byte. Where values are asked for as JSON, one that is JSON stands in
the line as it is. On the way in, any other JSON (objects, numbers ...) is written compactly as the value.
"""

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass

from ottla.cli.formats import Header, RecordLike

BASE64 = "base64"
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
    line = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _out(record.key, is_key_json),
        "value": _out(record.value, is_value_json),
        "headers": [[name, _out(content, False)] for name, content in record.headers],
    }
    return json.dumps(line, ensure_ascii=False)


def from_json(line: str | bytes) -> RecordToSend:
    try:
        given = json.loads(line)
    except ValueError as error:
        raise WrongLine(f"this is no JSON: {error}") from None
    if not isinstance(given, dict):
        raise WrongLine("a record is a JSON object with the fields key, value, headers ...")
    unknown = sorted(set(given) - set(_FIELDS))
    if unknown:
        raise WrongLine(f"{unknown[0]!r} is no field of a record: it has {', '.join(_FIELDS)}")
    if "value" not in given:
        raise WrongLine("the field 'value' is missing; null makes a tombstone")
    return RecordToSend(
        _in(given["value"], "value"),
        _in(given.get("key"), "key"),
        _headers_in(given.get("headers")),
        _text(given, "topic"),
        _number(given, "partition"),
        _number(given, "timestamp"),
    )


def _out(content: bytes | None, is_json: bool) -> object:
    if content is None:
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return {BASE64: base64.b64encode(content).decode()}
    if is_json:
        try:
            found = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            return text
        # A string would be read back without its quotes, a null as a tombstone, the object as bytes: these stay text.
        if not isinstance(found, str) and found is not None and not _is_base64(found):
            return found
    return text


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


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
    return _utf8(json.dumps(given, ensure_ascii=False, separators=(",", ":")), field)


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


def _number(given: dict[str, object], field: str) -> int | None:
    content = given.get(field)
    if content is None or (isinstance(content, int) and not isinstance(content, bool)):
        return content
    raise WrongLine(f"{field!r} is {content!r}: it must be a whole number")
