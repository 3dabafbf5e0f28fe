"""Control batches: the markers that end a transaction in a partition.

    key   = version:int16  type:int16
    value = version:int16  coordinator epoch:int32

A newer version may have more fields behind these; they are left unread.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum

from ottla.records.batches import Record, build_batch, read_records
from ottla.records.errors import CorruptRecord
from ottla.records.types import Buffer

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")
_VERSION = 0


class ControlType(IntEnum):
    """The kinds of control records that a partition of a topic can have."""

    ABORT = 0
    COMMIT = 1


@dataclass(frozen=True, slots=True)
class EndTransactionMarker:
    """How a transaction ended, and the epoch of the coordinator that said so."""

    control_type: ControlType
    coordinator_epoch: int
    version: int = _VERSION


def control_type(key: Buffer | None) -> int:
    """The type number in a control record's key. Unknown numbers are no error: readers skip such records."""
    if key is None or len(key) < _KEY.size:
        raise CorruptRecord(f"a control record with a key of {_KEY.size} bytes or more expected, {key!r} came")
    version, number = _KEY.unpack_from(key)
    if version < 0:
        raise CorruptRecord(f"a control record of version 0 or later expected, {version} came")
    return int(number)


def read_end_transaction(record: Record) -> EndTransactionMarker:
    """The marker in a control record."""
    number = control_type(record.key)
    if number not in (ControlType.ABORT, ControlType.COMMIT):
        raise CorruptRecord(f"a commit or abort marker expected, control record type {number} came")
    value = record.value
    if value is None or len(value) < _VALUE.size:
        raise CorruptRecord(f"a marker of {_VALUE.size} bytes or more expected, {value!r} came")
    version, coordinator_epoch = _VALUE.unpack_from(value)
    if version < 0:
        raise CorruptRecord(f"a marker of version 0 or later expected, {version} came")
    return EndTransactionMarker(ControlType(number), coordinator_epoch, version)


def build_end_transaction(
    marker: EndTransactionMarker,
    *,
    producer_id: int,
    producer_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytes:
    """The batch that ends the producer's transaction in one partition."""
    record = Record(
        timestamp=timestamp,
        key=_KEY.pack(_VERSION, marker.control_type),
        value=_VALUE.pack(marker.version, marker.coordinator_epoch),
    )
    return build_batch(
        [record],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


def read_control_batch(batch: Buffer) -> EndTransactionMarker:
    """The marker in a control batch, which has exactly one record."""
    records = read_records(batch)
    if len(records) != 1:
        raise CorruptRecord(f"a control batch with one record expected, {len(records)} came")
    return read_end_transaction(records[0])
