"""What a broker keeps of its classic groups: the records of `__consumer_offsets`, as any consumer can read them."""

from __future__ import annotations

from typing import Any

from ottla.groups.entries import GROUP_RECORD_TYPES, GroupMetadataKey, GroupMetadataValue
from ottla.ledger.entries import UnknownRecordType
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.protocol.schema import Struct
from ottla.records import read_records

TOPIC = "__consumer_offsets"
FETCH_VERSION = 12
MAX_BYTES = 1 << 24


def fetch_request() -> FetchRequest:
    """Everything in the topic's first partition, at once."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=MAX_BYTES)
    return FetchRequest(max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic=TOPIC, partitions=[partition])])


def kept_of(group: str, answer: FetchResponse) -> list[tuple[int, Any]]:
    """The records about one classic group, in order: the version of each, and what it says but for the time."""
    records = read_records(bytes(answer.responses[0].partitions[0].records or b""))
    kept: list[tuple[int, Any]] = []
    for record in records:
        try:
            entry = GROUP_RECORD_TYPES.decode(record.key, record.value)
        except UnknownRecordType:
            continue
        if not isinstance(entry.key, GroupMetadataKey) or entry.key.group != group:
            continue
        if isinstance(entry.value, GroupMetadataValue):
            assert entry.value.current_state_timestamp > 0
            entry.value.current_state_timestamp = 0
        kept.append((entry.version, plain(entry.value)))
    return kept


def plain(value: object) -> Any:
    """A message as dicts and lists, by the names of its fields."""
    if isinstance(value, Struct):
        return {field.name: plain(getattr(value, field.name)) for field in type(value).FIELDS}
    return [plain(element) for element in value] if isinstance(value, list) else value
