"""Producer snapshots: the producer state at an offset, in the file `<offset>.snapshot`.

Big endian: version (int16, 1), CRC-32C of all that follows it (uint32), count (int32), then 46 bytes per producer.
Only the last batch of a producer is kept; the older four are a convenience for retries that are under way.
"""

import struct
from collections.abc import Iterable

from ottla.log.producer_state import NO_OFFSET, NO_SEQUENCE, ProducerEntry, StoredBatch
from ottla.records import crc32c

VERSION = 1
# producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, first offset of the txn
_ENTRY = struct.Struct(">qhiqiqiq")
_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")


class CorruptSnapshot(ValueError):
    """A snapshot that does not read; the state is rebuilt from an older one and the log."""


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    packed: list[bytes] = []
    for entry in entries:
        last = entry.batches[-1] if entry.batches else None
        packed.append(
            _ENTRY.pack(
                entry.producer_id,
                entry.epoch,
                last.last_sequence if last else NO_SEQUENCE,
                last.last_offset if last else NO_OFFSET,
                last.last_offset - last.first_offset if last else 0,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.current_txn_first_offset,
            )
        )
    body = _COUNT.pack(len(packed)) + b"".join(packed)
    return _HEAD.pack(VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes) -> list[ProducerEntry]:
    smallest = _HEAD.size + _COUNT.size
    if len(data) < smallest:
        raise CorruptSnapshot(f"at least {smallest} bytes expected, {len(data)} came")
    version, crc = _HEAD.unpack_from(data)
    if version != VERSION:
        raise CorruptSnapshot(f"version {VERSION} expected, {version} came")
    body = memoryview(data)[_HEAD.size :]
    if crc32c(body) != crc:
        raise CorruptSnapshot(f"CRC {crc} expected, {crc32c(body)} computed")
    (count,) = _COUNT.unpack_from(body)
    if count < 0 or len(body) != _COUNT.size + count * _ENTRY.size:
        raise CorruptSnapshot(f"{count} entries of {_ENTRY.size} bytes expected, {len(body) - _COUNT.size} bytes came")
    return [_entry(*fields) for fields in _ENTRY.iter_unpack(body[_COUNT.size :])]


def _entry(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    current_txn_first_offset: int,
) -> ProducerEntry:
    batches = []
    if last_offset >= 0:
        # Sequences count up with the offsets of a batch and wrap after 2^31 - 1.
        first_sequence = (last_sequence - offset_delta) & 0x7FFF_FFFF
        first_offset = last_offset - offset_delta
        batches.append(StoredBatch(first_sequence, last_sequence, first_offset, last_offset, timestamp))
    return ProducerEntry(producer_id, epoch, coordinator_epoch, timestamp, current_txn_first_offset, batches)
