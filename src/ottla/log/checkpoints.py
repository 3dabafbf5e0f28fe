"""The small text files beside the data: checkpoints, partition metadata, meta.properties.

A checkpoint is a version line, a count line and one line per entry. They are always replaced atomically, so a
broken one means a broken disk; whoever reads it knows what can be done without it.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from ottla.log.files import TopicPartition
from ottla.protocol.uuids import uuid_from_text, uuid_to_text

VERSION = 0


class BadCheckpoint(OSError):
    """A checkpoint file does not read; says which, what was expected and what came. A fault of the disk."""


def _encode(lines: list[str]) -> bytes:
    return "\n".join([str(VERSION), str(len(lines)), *lines, ""]).encode("utf-8")


def _decode(name: str, data: bytes) -> list[list[str]]:
    try:
        lines = data.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise BadCheckpoint(f"{name}: expected text, {error}") from None
    if len(lines) < 2 or lines[0].strip() != str(VERSION):
        raise BadCheckpoint(f"{name}: expected version {VERSION} and a count, found {lines[:2]}")
    (count,) = _numbers(name, lines[1:2])
    entries = [line.split() for line in lines[2:] if line.strip()]
    if len(entries) != count:
        raise BadCheckpoint(f"{name}: expected {count} entries, found {len(entries)}")
    return entries


def _numbers(name: str, words: list[str]) -> list[int]:
    try:
        numbers = [int(word) for word in words]
    except ValueError:
        raise BadCheckpoint(f"{name}: expected numbers, found {' '.join(words)[:100]}") from None
    for number in numbers:
        if not -1 <= number < 1 << 63:
            raise BadCheckpoint(f"{name}: expected a number from -1 to 2^63 - 1, found {number}")
    return numbers


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    return _encode([f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items())])


def decode_offsets(name: str, data: bytes) -> dict[TopicPartition, int]:
    offsets: dict[TopicPartition, int] = {}
    for words in _decode(name, data):
        if len(words) != 3:
            raise BadCheckpoint(f"{name}: expected topic, partition and offset, found {' '.join(words)}")
        partition, offset = _numbers(name, words[1:])
        offsets[TopicPartition(words[0], partition)] = offset
    return offsets


def encode_epochs(entries: Iterable[tuple[int, int]]) -> bytes:
    return _encode([f"{epoch} {start_offset}" for epoch, start_offset in entries])


def decode_epochs(name: str, data: bytes) -> list[tuple[int, int]]:
    entries: list[tuple[int, int]] = []
    for words in _decode(name, data):
        if len(words) != 2:
            raise BadCheckpoint(f"{name}: expected epoch and start offset, found {' '.join(words)}")
        epoch, start_offset = _numbers(name, words)
        if epoch < 0 or start_offset < 0:
            raise BadCheckpoint(f"{name}: expected an epoch and an offset of 0 or more, found {' '.join(words)}")
        entries.append((epoch, start_offset))
    return entries


def encode_partition_metadata(topic_id: bytes) -> bytes:
    return f"version: 0\ntopic_id: {uuid_to_text(topic_id)}".encode("ascii")


@lru_cache(maxsize=16)
def decode_partition_metadata(name: str, data: bytes) -> bytes:
    fields: dict[str, str] = {}
    for line in data.decode("utf-8", "replace").splitlines():
        key, _, value = line.partition(":")
        fields[key.strip()] = value.strip()
    if fields.get("version") != "0" or "topic_id" not in fields:
        raise BadCheckpoint(f"{name}: expected 'version: 0' and a topic_id, found {data[:100]!r}")
    try:
        return uuid_from_text(fields["topic_id"])
    except ValueError as error:
        raise BadCheckpoint(f"{name}: {error}") from None


def encode_properties(properties: Mapping[str, str]) -> bytes:
    """Java's properties format, sorted, without escapes: names and values that were read are written as they were."""
    lines = ["#", *(f"{name}={value}" for name, value in sorted(properties.items())), ""]
    return "\n".join(lines).encode("latin-1")


def decode_properties(data: bytes) -> dict[str, str]:
    properties: dict[str, str] = {}
    for line in data.decode("latin-1").splitlines():
        text = line.strip()
        if text and text[0] not in "#!":
            name, _, value = text.partition("=")
            properties[name.strip()] = value.strip()
    return properties
