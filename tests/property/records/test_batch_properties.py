"""What is true of every batch: it comes back as it was. Bytes that are none raise CorruptRecord and nothing else."""

from __future__ import annotations

from functools import partial

from hypothesis import given
from hypothesis import strategies as st
from tests.property.records.strategies import CODECS, RECORDS, THOROUGH, TIMESTAMPS, USUAL, batches, mutated

from ottla.records import (
    Codec,
    CorruptRecord,
    Record,
    build_batch,
    crc32c,
    find_refused,
    find_timestamp,
    from_arrow,
    inspect_batches,
    max_timestamp_record,
    read_records,
    recompress,
    to_arrow,
    validate_records,
)

NO_TIMESTAMP = -1


def fields(record: Record) -> tuple[object, ...]:
    return record.timestamp, record.key, record.value, tuple(record.headers)


@USUAL
@given(st.lists(RECORDS, max_size=8), CODECS, st.integers(0, 2**62))
def test_records_come_back_as_they_were(records: list[Record], codec: Codec, base_offset: int) -> None:
    batch = build_batch(records, codec=codec, base_offset=base_offset)
    came = read_records(batch)
    assert [fields(record) for record in came] == [fields(record) for record in records]
    assert [record.offset for record in came] == list(range(base_offset, base_offset + len(records)))
    (header,) = inspect_batches(batch)
    assert header.record_count == len(records)
    assert header.max_timestamp == max((record.timestamp for record in records), default=-1)
    if records:
        validate_records(batch)
        assert header.next_offset == base_offset + len(records)


@USUAL
@given(st.lists(RECORDS, min_size=1, max_size=8), CODECS, TIMESTAMPS)
def test_answers_about_a_batch_are_those_of_its_records(records: list[Record], codec: Codec, target: int) -> None:
    batch = build_batch(records, codec=codec, base_offset=3)
    timestamps = [record.timestamp for record in records]
    assert max_timestamp_record(batch) == (3 + timestamps.index(max(timestamps)), max(timestamps))
    later = [(3 + index, timestamp) for index, timestamp in enumerate(timestamps) if timestamp >= target]
    assert find_timestamp(batch, target) == (later[0] if later else None)
    keyless = [index for index, record in enumerate(records) if record.key is None]
    late = [
        index
        for index, time in enumerate(timestamps)
        if time > target and time != NO_TIMESTAMP and index not in keyless
    ]
    found = find_refused(batch, needs_key=True, earliest_ms=-(2**63), latest_ms=target, limit=8)
    assert found == (keyless, late)


@USUAL
@given(batches(), CODECS)
def test_recompressing_changes_nothing_a_reader_sees(batch: bytes, codec: Codec) -> None:
    assert read_records(recompress(batch, codec)) == read_records(batch)


@USUAL
@given(st.lists(RECORDS, max_size=10), CODECS, st.integers(61, 20_000))
def test_a_table_comes_back_as_it_was(records: list[Record], codec: Codec, max_batch_bytes: int) -> None:
    table = to_arrow(build_batch(records))
    table.validate(full=True)
    made = from_arrow(table, codec=codec, max_batch_bytes=max_batch_bytes)
    assert [fields(record) for batch in made for record in read_records(batch)] == [fields(r) for r in records]
    assert to_arrow(made).equals(table)
    for batch in made:
        plain = recompress(batch, Codec.NONE)
        assert len(plain) <= max_batch_bytes or inspect_batches(plain)[0].record_count == 1


@THOROUGH
@given(st.data())
def test_bytes_that_are_no_batch_raise_corrupt_record_and_nothing_else(data: st.DataObject) -> None:
    broken = data.draw(mutated(data.draw(batches())))
    for read in (read_records, lambda buffer: read_records(buffer, check_crc=False)):
        try:
            read(broken)
        except CorruptRecord:
            continue


@THOROUGH
@given(st.data())
def test_a_broken_body_behind_a_valid_crc_raises_corrupt_record_and_nothing_else(data: st.DataObject) -> None:
    batch = data.draw(batches())
    body = data.draw(mutated(batch[61:]))
    broken = bytearray(batch[:61] + body)
    broken[8:12] = (len(broken) - 12).to_bytes(4, "big")
    broken[17:21] = crc32c(broken[21:]).to_bytes(4, "big")
    inspect_batches(broken)
    refused = partial(find_refused, needs_key=True, earliest_ms=0, latest_ms=2**62, limit=3)
    for read in (read_records, to_arrow, validate_records, refused):
        try:
            read(broken)
        except CorruptRecord:
            continue
