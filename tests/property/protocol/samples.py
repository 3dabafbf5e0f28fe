"""Messages made up at random, for any class and version, and the list of all there are to make."""

from __future__ import annotations

from random import Random
from typing import Any

from ottla.protocol.message import Message
from ottla.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from ottla.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from ottla.protocol.registry import BROKER_APIS, request_class
from ottla.protocol.schema import Field, StructType

_INTEGER_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_TEXTS = (
    "",
    "a",
    "topic-1",
    "Ljubljana",
    "Čez potok",
    "\u65e5\u672c",
    "\U0001f987",
    "\0",
    "x" * 126,
    "y" * 127,
    "ž" * 70,
)


def all_messages() -> list[type[Message]]:
    messages: list[type[Message]] = [ConsumerProtocolAssignment, ConsumerProtocolSubscription]
    for key in BROKER_APIS:
        request = request_class(key)
        assert request is not None
        messages += [request, request.RESPONSE]
    return messages


ALL_MESSAGES = all_messages()


def versions_of(cls: type[Message]) -> range:
    return range(cls.MIN_VERSION, cls.MAX_VERSION + 1)


def random_message(cls: type[Message], version: int, random: Random) -> Any:
    return random_struct(cls, version, random, 0)


def random_struct(cls: StructType, version: int, random: Random, depth: int) -> Any:
    """A struct whose fields hold anything that the version can carry; what it lacks keeps its default."""
    values = {}
    for one in cls.FIELDS:
        if version in one.versions and not (one.tag is not None and random.random() < 0.4):
            values[one.name] = _random_field(one, version, random, depth)
    return cls(**values)


def _random_field(one: Field, version: int, random: Random, depth: int) -> Any:
    if one.nullable_in(version) and random.random() < 0.25:
        return None
    if one.is_array:
        count = random.choice((0, 1, 1, 2, 3) if depth < 2 else (0, 1, 1, 2))
        if not isinstance(one.type, StructType) and random.random() < 0.05:
            count = 200
        return [_random_value(one.type, version, random, depth + 1) for _ in range(count)]
    return _random_value(one.type, version, random, depth + 1)


def _random_value(kind: Any, version: int, random: Random, depth: int) -> Any:
    if isinstance(kind, StructType):
        return random_struct(kind, version, random, depth)
    match kind.name:
        case "string":
            return random.choice(_TEXTS)
        case "bytes":
            return random.randbytes(random.choice((0, 1, 16, 130)))
        case "records":
            return memoryview(random.randbytes(random.choice((0, 1, 61, 126, 127, 300))))
        case "bool":
            return random.random() < 0.5
        case "uuid":
            return random.randbytes(16)
        case "float64":
            return random.choice((0.0, -1.5, 1e300, random.random()))
        case "uint16":
            return random.choice((0, 1, 65535, random.randrange(65536)))
    limit = 1 << (_INTEGER_BITS[kind.name] - 1)
    return random.choice((0, 1, -1, limit - 1, -limit, random.randrange(-limit, limit)))
