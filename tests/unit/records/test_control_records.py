"""Control batches: the markers that end a transaction."""

from __future__ import annotations

import pytest

from ottla.records import (
    ControlType,
    CorruptRecord,
    EndTransactionMarker,
    Record,
    build_batch,
    build_end_transaction,
    control_type,
    inspect_batches,
    read_control_batch,
    read_end_transaction,
    read_records,
)


@pytest.mark.parametrize("kind", list(ControlType))
def test_a_marker_comes_back(kind: ControlType) -> None:
    marker = EndTransactionMarker(kind, coordinator_epoch=9)
    batch = build_end_transaction(
        marker, producer_id=5, producer_epoch=2, timestamp=1_234, base_offset=8, leader_epoch=3
    )
    assert read_control_batch(batch) == marker
    (header,) = inspect_batches(batch)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 2, -1)
    assert (header.base_offset, header.partition_leader_epoch, header.max_timestamp) == (8, 3, 1_234)
    (record,) = read_records(batch)
    assert record.key == bytes([0, 0, 0, kind])
    assert record.value == bytes([0, 0, 0, 0, 0, 9])


def test_unknown_types_have_a_number_but_are_no_end_of_a_transaction() -> None:
    record = Record(key=bytes([0, 0, 0, 6]), value=bytes(6))
    assert control_type(record.key) == 6
    with pytest.raises(CorruptRecord, match="control record type 6 came"):
        read_end_transaction(record)


def test_later_versions_may_have_more_fields() -> None:
    record = Record(key=bytes([0, 1, 0, 1, 99]), value=bytes([0, 1, 0, 0, 0, 7, 99, 99]))
    assert read_end_transaction(record) == EndTransactionMarker(ControlType.COMMIT, 7, version=1)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, bytes(6)),
        (b"\x00\x00\x00", bytes(6)),
        (b"\xff\xff\x00\x00", bytes(6)),
        (bytes(4), None),
        (bytes(4), bytes(5)),
        (bytes(4), b"\xff\xff" + bytes(4)),
    ],
)
def test_what_is_no_marker_is_corrupt(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(CorruptRecord):
        read_end_transaction(Record(key=key, value=value))


def test_a_control_batch_has_one_record() -> None:
    marker = Record(timestamp=1, key=bytes(4), value=bytes(6))
    with pytest.raises(CorruptRecord, match="one record expected, 2 came"):
        read_control_batch(build_batch([marker, marker], control=True))
