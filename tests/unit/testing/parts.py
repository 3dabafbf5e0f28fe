"""Requests made from the declarations, two of everything that is asked for, and the parts of their answers."""

from collections.abc import Iterator
from typing import Any

from ottla.protocol.errors import ErrorCode
from ottla.protocol.schema import Field, Struct, StructType
from ottla.testing.refusals import ERRORS

FIXED = {"session_id": 0, "session_epoch": -1, "acks": 1, "replica_id": -1}
# What names the parts, in the question and in the answer.
NAMES = {"name", "topic", "topic_id", "partition", "partition_index", "index", "resource_name", "resource_type", "key"}


def sample(kind: StructType, version: int, numbers: Iterator[int]) -> Any:
    fields = [one for one in kind.FIELDS if version in one.versions and one.tag is None]
    return kind(**{one.name: FIXED.get(one.name, _value(one, version, numbers)) for one in fields})


def _value(one: Field, version: int, numbers: Iterator[int]) -> Any:
    return [_one(one.type, version, numbers) for _ in range(2)] if one.is_array else _one(one.type, version, numbers)


def _one(kind: Any, version: int, numbers: Iterator[int]) -> Any:
    if isinstance(kind, StructType):
        return sample(kind, version, numbers)
    number = next(numbers)
    match kind.name:
        case "string":
            return f"name-{number}"
        case "uuid":
            return bytes(15) + bytes([number])
        case "bytes" | "records":
            return b""
        case "bool":
            return False
    return number % 100


def errors(answer: object) -> list[int]:
    """Every error code in an answer, at any depth."""
    if isinstance(answer, list):
        return [code for part in answer for code in errors(part)]
    if not isinstance(answer, Struct):
        return []
    own = [getattr(answer, name) for name in ERRORS if getattr(answer, name, ErrorCode.NONE)]
    return own + [code for one in type(answer).FIELDS for code in errors(getattr(answer, one.name))]


def named(message: object) -> set[object]:
    """Everything that names a part of a message."""
    if isinstance(message, list):
        return set().union(*map(named, message)) if message else set()
    if not isinstance(message, Struct):
        return {message} if isinstance(message, str) else set()
    found: set[object] = set()
    for one in type(message).FIELDS:
        value = getattr(message, one.name)
        if one.name in NAMES and value:
            found.add(value)
        elif one.is_array:
            found |= named(value)
    return found
