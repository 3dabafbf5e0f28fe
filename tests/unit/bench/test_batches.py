"""What is sent has to be what the table says: exact sizes, records of 100 bytes, CRCs that a broker accepts."""

from __future__ import annotations

import pytest
from bench.batches import RECORD_BYTES, filled, one_record
from bench.settings import KIB, MIB

from ottla.records import check_crc, read_header, read_records


@pytest.mark.parametrize("size_bytes", [16 * KIB, 64 * KIB, MIB])
def test_filled_batch_has_exactly_the_size(size_bytes: int) -> None:
    batch = filled(size_bytes)
    header = read_header(batch.data)
    assert len(batch.data) == header.size_bytes == size_bytes
    assert header.record_count == batch.record_count == header.last_offset_delta + 1
    assert check_crc(batch.data, 0, header)
    sizes = [len(record.value or b"") for record in read_records(batch.data)]
    assert set(sizes[:-1]) == {RECORD_BYTES}
    assert RECORD_BYTES <= sizes[-1] < 4 * RECORD_BYTES


def test_one_record_is_one_record_of_100_bytes() -> None:
    (record,) = read_records(one_record().data)
    assert len(record.value or b"") == RECORD_BYTES
