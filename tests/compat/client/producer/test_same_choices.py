"""The same keys go to the same partitions as with Kafka's own client, kafka-python and confluent-kafka; values become
the same bytes.

confluent-kafka has another default, `consistent_random`, which is CRC-32: it agrees with `murmur2_random`.
"""

from __future__ import annotations

import random
import subprocess
import warnings
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.serialization import DoubleSerializer, IntegerSerializer, StringSerializer
from tests.compat.client.producer.reading import Place
from tests.peers.java import compile_java, java_command
from tests.peers.paths import KAFKA_LIBS, PeerMissing

from ottla.client.producer._twin import twin
from ottla.client.serializers import SERIALIZERS

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.partitioner.default import DefaultPartitioner

SOURCE = Path(__file__).parents[2] / "java" / "producer" / "Partitions.java"


def _keys() -> list[bytes]:
    dice = random.Random(5)
    return [b"", b"a", b"key", *(dice.randbytes(dice.randrange(1, 40)) for _ in range(300))]


def _picked(key: bytes, count: int) -> int:
    return (twin.murmur2(key) & 0x7FFFFFFF) % count


def test_keys_find_the_partitions_of_kafkas_own_client() -> None:
    try:
        classes = compile_java([SOURCE], KAFKA_LIBS)
    except PeerMissing as missing:
        pytest.skip(str(missing))
    questions = [(count, key) for key in _keys() for count in (1, 3, 12)]
    lines = "".join(f"{count} {key.hex()}\n" for count, key in questions)
    done = subprocess.run(
        java_command("Partitions", [], KAFKA_LIBS, classes), input=lines, capture_output=True, text=True, check=True
    )
    assert [int(line) for line in done.stdout.split()] == [_picked(key, count) for count, key in questions]


class _KnownTopic:
    """As much of kafka-python's metadata as its partitioner looks at."""

    def __init__(self, count: int) -> None:
        self._partitions = set(range(count))

    def topics(self) -> set[str]:
        return {"t"}

    def partitions_for_topic(self, topic: str) -> set[int]:
        return self._partitions

    def available_partitions_for_topic(self, topic: str) -> set[int]:
        return self._partitions


def test_keys_find_the_partitions_of_kafka_python() -> None:
    partitioner = DefaultPartitioner()
    for count in (1, 3, 12):
        for key in _keys():
            picked = partitioner.partition("t", key, key, b"", b"", _KnownTopic(count))
            assert picked == _picked(key, count)


def test_keys_find_the_partitions_of_confluent_kafka(place: Place, topic: str) -> None:
    place.make_topic(topic, 5)
    producer = confluent_kafka.Producer({"bootstrap.servers": place.bootstrap, "partitioner": "murmur2_random"})
    keys = [key for key in _keys() if key]
    for key in keys:
        producer.produce(topic, b"x", key)
    producer.flush(20)
    seen = place.read(topic, 5)
    assert len(seen) == len(keys)
    assert all(one.partition == _picked(one.key or b"", 5) for one in seen)


def test_values_become_the_same_bytes() -> None:
    for number in (0, 1, -1, 2**31 - 1, -(2**31)):
        assert SERIALIZERS["int"]("t", number) == IntegerSerializer()(number)
    for value in (0.0, -1.5, 1e300):
        assert SERIALIZERS["double"]("t", value) == DoubleSerializer()(value)
    for word in ("", "abc", "ü€😀"):
        assert SERIALIZERS["str"]("t", word) == StringSerializer()(word)
