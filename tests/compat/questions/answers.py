"""Answers as plain values that two brokers must share, and the differences between two of them.

What only one broker can know is replaced by its shape: ids, the port, times of now, free disk space, the wording of
messages. Beside an error any message will do, and none as well; elsewhere null, empty and given stay apart. Elements
of an array that carry a name or a number are compared by it, whatever their order. Compressed records are compared as
they are before compression.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ottla.protocol.errors import ErrorCode
from ottla.protocol.schema import RECORDS, ZERO_UUID, Struct, StructType
from ottla.records import HEADER_BYTES, BatchHeader, Codec, CorruptRecord, scan_headers
from ottla.records.compression import decompress

Plain = Any

ANY_TEXT = "<any text>"
DAY_MS = 24 * 3600 * 1000
FIRST_CHOSEN_PRODUCER_ID = 1_000_000
"""Questions use ids from here on; those below are given out by brokers."""
_LOG_APPEND_TIME = 0x08
_CONTROL = 0x20
_LENGTH, _CRC, _TIMES, _PRODUCER = slice(8, 12), slice(17, 21), slice(27, 43), slice(43, 51)
_KEYS = (
    "name",
    "topic",
    "topic_name",
    "topic_id",
    "partition_index",
    "partition",
    "partition_id",
    "index",
    "resource_type",
    "resource_name",
    "node_id",
    "broker_id",
    "api_key",
    "entity_type",
    "log_dir",
    "key",
    "producer_id",
    "batch_index",
    "group_id",
    "member_id",
    "transactional_id",
)
_TEXTS = frozenset({"error_message", "documentation"})
_ERRORS = frozenset({"error_code", "partition_error_code"})
_SETS = frozenset({"subscribed_topic_names"})


@dataclass(frozen=True)
class Known:
    """What one side knows by itself: placeholders by what they stand for there."""

    names: Mapping[bytes, bytes]
    port: int
    data: str
    now_ms: int
    members: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Difference:
    """`path` names fields only, `place` also which elements; the values are as text."""

    path: str
    place: str
    kafka: str
    ottla: str

    def __str__(self) -> str:
        return f"{self.place}: Kafka {self.kafka}, Ottla {self.ottla}"


class Keyed(dict[str, list[Plain]]):
    """An array whose elements have keys."""


def plain(value: Any, version: int, known: Known) -> Plain:
    """A decoded message as nested dictionaries, lists and values, with its fields of this version."""
    found = {
        one.name: _field(one.name, getattr(value, one.name), one.type, version, known)
        for one in value.FIELDS
        if version in one.versions
    }
    if found.get("error_code", "NONE") != "NONE" and "error_message" in found:
        found["error_message"] = ANY_TEXT
    return found


def _field(name: str, value: Any, kind: Any, version: int, known: Known) -> Plain:
    if value is None:
        return None
    if isinstance(value, list):
        if isinstance(kind, StructType):
            return _array([plain(element, version, known) for element in value])
        found = [_value(name, element, known) for element in value]
        return sorted(found) if name in _SETS else found
    if isinstance(value, Struct):
        return plain(value, version, known)
    if kind is RECORDS:
        return _records(bytes(value), known)
    return _value(name, value, known)


def _array(elements: list[Plain]) -> Plain:
    if not elements:
        return Keyed()
    names = [name for name in _KEYS if name in elements[0] and not isinstance(elements[0][name], list | dict)]
    if not names:
        return elements
    keyed = Keyed()
    for element in elements:
        same = keyed.setdefault(",".join(str(element[name]) for name in names), [])
        if not (same and _joins(same[-1], element)):
            same.append(element)
    return keyed


def _joins(first: Plain, other: Plain) -> bool:
    """Put the elements of one topic together that an answer has in several places, as Kafka's do after errors."""
    parts = [name for name, value in other.items() if isinstance(value, Keyed)]
    rest = first.keys() - set(parts)
    if len(parts) != 1 or any(first[name] != other[name] for name in rest) or first[parts[0]].keys() & other[parts[0]]:
        return False
    first[parts[0]].update(other[parts[0]])
    return True


def _value(name: str, value: Any, known: Known) -> Plain:
    if name == "batch_index_error_message":
        return ANY_TEXT
    if name in _TEXTS:
        return "<text>" if value else value
    if name in _ERRORS:
        return ErrorCode(value).name if value in ErrorCode._value2member_map_ else value
    if isinstance(value, bytes):
        return _id(value, known) if len(value) == len(ZERO_UUID) else value
    if isinstance(value, str):
        return _text(name, value, known)
    if isinstance(value, int) and not isinstance(value, bool):
        return _number(name, value, known)
    return value


def _id(value: bytes, known: Known) -> Plain:
    return known.names.get(value, "<id>") if value != ZERO_UUID else "<none>"


def _text(name: str, value: str, known: Known) -> str:
    if name == "cluster_id":
        return "<cluster>"
    if name == "host" and value in ("127.0.0.1", "localhost"):
        return "<host>"
    if name in ("member_id", "leader"):
        return known.members.get(value, value)
    value = value.replace(known.data, "@data")
    return re.sub(rf":{known.port}\b", ":<port>", value)


def _number(name: str, value: int, known: Known) -> Plain:
    if name == "port":
        return "<port>" if value == known.port else value
    if name == "session_id":
        return "<session>" if value else 0
    if name == "producer_id" and 0 <= value < FIRST_CHOSEN_PRODUCER_ID:
        return "<id>"
    if name in ("total_bytes", "usable_bytes") and value > 0:
        return "<bytes>"
    if ("time" in name or "expiration" in name) and abs(value - known.now_ms) < DAY_MS:
        return "<now>"
    return value


def _records(data: bytes, known: Known) -> Plain:
    """Batches by their bytes; where the broker put its time into one, the time and the CRC over it are left out."""
    if not data:
        return []
    batches = []
    position = 0
    try:
        headers = scan_headers(data)
    except CorruptRecord:
        return data
    for header in headers:
        batch = bytearray(data[position : position + header.size_bytes])
        if header.compression is not Codec.NONE:
            batch = _decompressed(batch, header)
        if header.attributes & _LOG_APPEND_TIME and abs(header.max_timestamp - known.now_ms) < DAY_MS:
            batch[_CRC] = bytes(4)
            batch[_TIMES] = bytes(16)
        if 0 <= header.producer_id < FIRST_CHOSEN_PRODUCER_ID:
            batch[_CRC] = bytes(4)
            batch[_PRODUCER] = bytes(8)
        if header.attributes & _CONTROL:
            batch[_CRC] = bytes(4)
            batch[_TIMES] = bytes(16)
        batches.append({"base_offset": header.base_offset, "bytes": bytes(batch)})
        position += header.size_bytes
    if position < len(data):
        batches.append({"base_offset": -1, "bytes": data[position:]})
    return batches


def _decompressed(batch: bytearray, header: BatchHeader) -> bytearray:
    """Two libraries compress the same records to other bytes, so the records count, not their length nor the CRC."""
    try:
        records = decompress(header.compression, bytes(batch[HEADER_BYTES:]))
    except CorruptRecord:
        return batch
    batch[_LENGTH] = bytes(4)
    batch[_CRC] = bytes(4)
    return batch[:HEADER_BYTES] + bytearray(records)


def differences(kafka: Plain, ottla: Plain, path: str = "", place: str = "") -> Iterator[Difference]:
    """Every field in which two answers differ."""
    if isinstance(kafka, Keyed) and isinstance(ottla, Keyed):
        for key in kafka.keys() | ottla.keys():
            yield from _elements(kafka.get(key, []), ottla.get(key, []), path, f"{place}[{key}]")
    elif isinstance(kafka, dict) and isinstance(ottla, dict) and kafka.keys() == ottla.keys():
        for name in kafka:
            yield from differences(kafka[name], ottla[name], _joined(path, name), _joined(place, name))
    elif isinstance(kafka, list) and isinstance(ottla, list):
        yield from _elements(kafka, ottla, path, place)
    elif kafka != ottla or type(kafka) is not type(ottla):
        yield Difference(path, place, _shown(kafka), _shown(ottla))


def _elements(kafka: list[Plain], ottla: list[Plain], path: str, place: str) -> Iterator[Difference]:
    """Elements of one key, or of an array without keys, in their order."""
    for mine, other in zip(kafka, ottla, strict=False):
        yield from differences(mine, other, path, place)
    if len(kafka) != len(ottla):
        path = _joined(path, "length")
        yield Difference(path, _joined(place, "length"), str(len(kafka)), str(len(ottla)))


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _shown(value: Plain) -> str:
    if isinstance(value, bytes):
        return value.hex() if len(value) <= 24 else f"{value[:80].hex()}... of {len(value)} bytes"
    return str(value)
