"""Serializers give the bytes of Kafka's own, and take them back."""

import functools
import json
import operator
import struct
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.serialization import (
    IntegerDeserializer,
    IntegerSerializer,
    MessageField,
    SerializationContext,
    Serializer,
    StringDeserializer,
    StringSerializer,
)

from ottla.client.errors import ConfigError, SerializationError
from ottla.client.serializers import deserialize, deserializer_of, serialize, serializer_of

ID = uuid.UUID("12345678-1234-5678-1234-567812345678")
SAMPLES: list[tuple[Any, Any, bytes]] = [
    ("bytes", b"\x00x", b"\x00x"),
    ("str", "ü", "ü".encode()),
    ("short", -2, struct.pack(">h", -2)),
    ("int", 42, b"\x00\x00\x00\x2a"),
    ("long", -1, b"\xff" * 8),
    ("float", 1.5, struct.pack(">f", 1.5)),
    ("double", 0.1, struct.pack(">d", 0.1)),
    ("uuid", ID, str(ID).encode()),
    ("json", {"a": [1, None, "ü"]}, '{"a":[1,null,"ü"]}'.encode()),
    (str, "x", b"x"),
    (int, 5, (5).to_bytes(8, "big")),
    (float, 2.0, struct.pack(">d", 2.0)),
    ("org.apache.kafka.common.serialization.StringSerializer", "x", b"x"),
    ("org.apache.kafka.common.serialization.IntegerSerializer", 1, b"\x00\x00\x00\x01"),
    ("org.apache.kafka.common.serialization.ByteArraySerializer", b"x", b"x"),
]


@pytest.mark.parametrize(("given", "value", "data"), SAMPLES, ids=[str(sample[0]) for sample in SAMPLES])
def test_there_and_back(given: Any, value: Any, data: bytes) -> None:
    assert serialize(serializer_of(given, "key.serializer"), "t", value, "key") == data
    name = given.replace("Serializer", "Deserializer") if isinstance(given, str) else given
    assert deserialize(deserializer_of(name, "key.deserializer"), "t", data, "key") == value


def test_none_stays_none_and_a_callable_is_used_with_the_topic() -> None:
    def shout(topic: str, value: str) -> bytes:
        return f"{topic}:{value.upper()}".encode()

    found = serializer_of(shout, "value.serializer")
    assert serialize(found, "t", "x", "value") == b"t:X"
    assert serialize(found, "t", None, "value") is None
    assert deserialize(deserializer_of("str", ""), "t", None, "value") is None
    assert serializer_of(None, "value.serializer") is None


def test_what_does_not_fit_is_told_with_topic_and_value() -> None:
    with pytest.raises(SerializationError, match=r"orders: the key 'x' could not be serialized"):
        serialize(serializer_of("int", ""), "orders", "x", "key")
    with pytest.raises(SerializationError, match=r"orders: a value of 3 bytes could not be deserialized"):
        deserialize(deserializer_of("int", ""), "orders", b"abc", "value")
    with pytest.raises(ConfigError, match=r"key\.serializer: a callable or one of bytes, double"):
        serializer_of("avro", "key.serializer")


class _Upper:
    def __call__(self, obj: str, ctx: object = None) -> bytes:
        return obj.upper().encode()


def _with_rest(value: str, *rest: object, **more: object) -> bytes:
    return value.upper().encode()


def _scaled(factor: int, value: int) -> bytes:
    return str(factor * value).encode()


VALUE_ALONE: list[tuple[Callable[..., Any], Any, bytes]] = [
    (lambda value: value.encode(), "x", b"x"),
    (lambda v: json.dumps(v).encode(), [1], b"[1]"),
    (lambda topic: topic.encode(), "x", b"x"),
    (str.encode, "x", b"x"),
    (operator.methodcaller("encode"), "x", b"x"),
    (functools.partial(_scaled, 2), 4, b"8"),
    (functools.partial(str.encode, encoding="utf-16-le"), "x", b"x\0"),
    (_Upper(), "x", b"X"),
    (_Upper().__call__, "x", b"X"),
    (_with_rest, "x", b"X"),
    (bytearray.fromhex, "ff", b"\xff"),
]


@pytest.mark.parametrize(("given", "value", "data"), VALUE_ALONE)
def test_a_function_of_one_parameter_is_called_with_the_value(given: Any, value: Any, data: bytes) -> None:
    assert serialize(serializer_of(given, "value.serializer"), "t", value, "value") == data


@pytest.mark.parametrize(
    "given",
    [
        lambda topic, value: f"{topic}{value}".encode(),
        lambda _, value: f"t{value}".encode(),
        lambda t, v: f"{t}{v}".encode(),
        lambda topic, value, strict=True: f"{topic}{value}".encode(),
        lambda topic, value=None: f"{topic}{value}".encode(),
        lambda topic, *values: f"{topic}{values[0]}".encode(),
    ],
)
def test_a_function_of_two_parameters_is_called_with_topic_and_value(given: Any) -> None:
    assert serialize(serializer_of(given, "value.serializer"), "t", "x", "value") == b"tx"
    assert deserialize(deserializer_of(given, "value.deserializer"), "t", "x", "value") == b"tx"  # type: ignore[arg-type]


async def _later(value: str) -> bytes:
    return value.encode()


@pytest.mark.parametrize(
    "given",
    [
        lambda obj, ctx: b"",
        lambda value, topic: b"",
        lambda data, context: b"",
        lambda key, headers: b"",
        lambda *everything: b"",
        lambda: b"",
        lambda a, b, c: b"",
        lambda value, *, schema: b"",
    ],
)
def test_what_takes_its_arguments_otherwise_is_refused_when_the_client_is_made(given: Any) -> None:
    with pytest.raises(ConfigError, match=r"value\.serializer: .*\(topic, value\) expected.*as in lambda value: "):
        serializer_of(given, "value.serializer")
    with pytest.raises(ConfigError, match=r"key\.deserializer: .*\(topic, data\) expected.*as in lambda data: "):
        deserializer_of(given, "key.deserializer")


def test_a_coroutine_function_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"value\.serializer: a plain function expected"):
        serializer_of(_later, "value.serializer")


def test_a_serializer_of_confluent_kafka_is_called_with_value_and_context() -> None:
    seen: list[tuple[Any, str, str]] = []

    class Seeing(Serializer):
        def __call__(self, obj: Any, ctx: SerializationContext | None = None) -> bytes:
            assert ctx is not None
            seen.append((obj, ctx.topic, ctx.field))
            return b"made"

    for part in ("key", "value"):
        assert serialize(serializer_of(Seeing(), f"{part}.serializer"), "t", 5, part) == b"made"
    assert seen == [(5, "t", MessageField.KEY), (5, "t", MessageField.VALUE)]


def test_serializers_of_confluent_kafka_go_there_and_back() -> None:
    data = serialize(serializer_of(IntegerSerializer(), "key.serializer"), "t", 5, "key")
    assert deserialize(deserializer_of(IntegerDeserializer(), "key.deserializer"), "t", data, "key") == 5
    data = serialize(serializer_of(StringSerializer("utf-16"), "key.serializer"), "t", "ü", "key")
    assert deserialize(deserializer_of(StringDeserializer("utf-16"), "key.deserializer"), "t", data, "key") == "ü"


def test_classes_of_confluent_kafka_and_their_opposites_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"an instance expected.*StringSerializer\(\.\.\.\)"):
        serializer_of(StringSerializer, "value.serializer")
    with pytest.raises(ConfigError, match="a Deserializer expected, StringSerializer came"):
        deserializer_of(StringSerializer(), "value.deserializer")


def test_a_serializer_that_gives_text_is_told_to_encode_it() -> None:
    with pytest.raises(SerializationError, match=r"returned a str.*lambda value: json\.dumps\(value\)\.encode\(\)"):
        serialize(serializer_of(json.dumps, "value.serializer"), "t", {"a": 1}, "value")
