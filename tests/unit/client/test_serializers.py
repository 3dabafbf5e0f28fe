"""Serializers give the bytes of Kafka's own, and take them back."""

import struct
import uuid
from typing import Any

import pytest

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
