"""Keys and values as bytes and back, in the forms of Kafka's own serializers.

| name      | Python          | bytes                                                            |
|-----------|-----------------|------------------------------------------------------------------|
| `bytes`   | bytes           | as they are                                                      |
| `str`     | str             | UTF-8                                                            |
| `short`, `int`, `long` | int | 2, 4 or 8 bytes, big-endian (Java's short, int, long)           |
| `float`, `double` | float   | 4 or 8 bytes, big-endian (Java's float, double)                  |
| `uuid`    | uuid.UUID       | its text                                                         |
| `json`    | what JSON has   | UTF-8, no spaces                                                 |

A serializer is any callable `(value) -> bytes | None` or `(topic, value) -> bytes | None`, a deserializer the same with
the data in place of the value; `serializer_calls` says which is called how. Both are named by strings or Python's types
as well: `key_serializer="int"`, `value_serializer=str`. None stays None: a record without a key, or a tombstone, is
never serialized.
"""

import json
import struct
import uuid
from collections.abc import Callable
from typing import Any

from ottla.client.errors import ConfigError, SerializationError
from ottla.client.serializer_calls import refuse_class, with_topic

Serializer = Callable[[str, Any], bytes | None]
Deserializer = Callable[[str, bytes], Any]

_NUMBERS = {"short": ">h", "int": ">i", "long": ">q", "float": ">f", "double": ">d"}
_TYPES: dict[object, str] = {bytes: "bytes", str: "str", int: "long", float: "double", dict: "json", uuid.UUID: "uuid"}


def _bytes_in(topic: str, value: Any) -> bytes:
    return bytes(memoryview(value))


def _bytes_out(topic: str, data: bytes) -> bytes:
    return data


def _text_in(topic: str, value: str) -> bytes:
    return value.encode()


def _text_out(topic: str, data: bytes) -> str:
    return str(data, "utf-8")


def _uuid_in(topic: str, value: uuid.UUID) -> bytes:
    return str(value).encode()


def _uuid_out(topic: str, data: bytes) -> uuid.UUID:
    return uuid.UUID(str(data, "utf-8"))


def _json_in(topic: str, value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _json_out(topic: str, data: bytes) -> Any:
    return json.loads(data)


def _number_in(layout: str) -> Serializer:
    pack = struct.Struct(layout).pack

    def serialize(topic: str, value: Any) -> bytes:
        return pack(value)

    return serialize


def _number_out(layout: str) -> Deserializer:
    unpack = struct.Struct(layout).unpack

    def deserialize(topic: str, data: bytes) -> Any:
        return unpack(data)[0]

    return deserialize


SERIALIZERS: dict[str, Serializer] = {
    "bytes": _bytes_in,
    "str": _text_in,
    "uuid": _uuid_in,
    "json": _json_in,
    **{name: _number_in(layout) for name, layout in _NUMBERS.items()},
}
DESERIALIZERS: dict[str, Deserializer] = {
    "bytes": _bytes_out,
    "str": _text_out,
    "uuid": _uuid_out,
    "json": _json_out,
    **{name: _number_out(layout) for name, layout in _NUMBERS.items()},
}


def _name_of(given: object) -> object:
    """The short name: Java's class names mean the same ones."""
    if isinstance(given, str):
        plain = given.rpartition(".")[2].lower().removesuffix("deserializer").removesuffix("serializer")
        return {"string": "str", "integer": "int", "bytearray": "bytes", "bytebuffer": "bytes"}.get(plain, plain)
    return _TYPES.get(given) if isinstance(given, type) else None


def _find(given: Any, known: dict[str, Any], what: str) -> Any:
    name = _name_of(given)
    if name in known:
        return known[str(name)]
    if isinstance(given, type):
        refuse_class(given, what)
    elif callable(given):
        return with_topic(given, what)
    raise ConfigError(f"{what}: a callable or one of {', '.join(sorted(known))} expected, {given!r} came")


def serializer_of(given: Any, what: str) -> Serializer | None:
    """The serializer for a setting; None for none: bytes go as they are."""
    found: Serializer | None = None if given is None else _find(given, SERIALIZERS, what)
    return found


def deserializer_of(given: Any, what: str) -> Deserializer | None:
    """The deserializer for a setting; None for none: bytes come as they are."""
    found: Deserializer | None = None if given is None else _find(given, DESERIALIZERS, what)
    return found


def serialize(serializer: Serializer | None, topic: str, value: Any, what: str) -> Any:
    """`value` as bytes; SerializationError when the serializer does not take it."""
    if serializer is None or value is None:
        return value
    try:
        made = serializer(topic, value)
        if isinstance(made, str):
            raise SerializationError(
                f"{topic}: the {what}_serializer returned a str, and bytes are expected: encode it, as in "
                f'`lambda {what}: json.dumps({what}).encode()`, or write {what}_serializer="json" or "str"'
            )
        return made
    except SerializationError:
        raise
    except Exception as error:
        shown = repr(value)
        shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
        raise SerializationError(f"{topic}: the {what} {shown} could not be serialized: {error!r}") from error


def deserialize(deserializer: Deserializer | None, topic: str, data: bytes | None, what: str) -> Any:
    """The value of `data`; SerializationError when the deserializer does not take it."""
    if deserializer is None or data is None:
        return data
    try:
        return deserializer(topic, data)
    except SerializationError:
        raise
    except Exception as error:
        raise SerializationError(
            f"{topic}: a {what} of {len(data)} bytes could not be deserialized: {error!r}"
        ) from error
