"""The records inside a batch: building, reading, looking, and every way a body can be wrong behind a valid CRC."""

from __future__ import annotations

import struct
from functools import partial
from typing import Any, NamedTuple

import pytest

from ottla.records import (
    BatchBuilder,
    Codec,
    CorruptRecord,
    Record,
    build_batch,
    find_refused,
    find_timestamp,
    inspect_batches,
    max_timestamp_record,
    read_records,
    recompress,
    validate_records,
)
from ottla.records.errors import Fault, record_fault

VARIED = [
    Record(timestamp=1_000, key=b"a", value=b"1"),
    Record(timestamp=900, key=None, value=b""),
    Record(timestamp=1_700, key=b"", value=None, headers=(("name", b"value"), ("name", None), ("žluťoučký", b""))),
    Record(timestamp=1_700, key=b"k" * 300, value=b"v" * 70_000),
]


def numbered(records: list[Record], base_offset: int = 0) -> list[Record]:
    return [
        Record(base_offset + index, record.timestamp, record.key, record.value, record.headers)
        for index, record in enumerate(records)
    ]


def refused(
    batch: bytes,
    needs_key: bool = False,
    earliest_ms: int = -(2**63),
    latest_ms: int = 2**63 - 1,
    limit: int = 100,
) -> tuple[list[int], list[int]]:
    return find_refused(batch, needs_key=needs_key, earliest_ms=earliest_ms, latest_ms=latest_ms, limit=limit)


def refused_in(twin: Any, payload: bytes, header: Any) -> Any:
    return twin.find_refused(payload, header, True, 0, 0, 100)


def payload_of(twin: Any, *bodies: bytes) -> bytes:
    """Records with true lengths around bodies that may be anything."""
    parts = []
    for body in bodies:
        size = len(body) << 1
        prefix = bytes([size]) if size < 0x80 else bytes([size & 0x7F | 0x80, size >> 7])
        parts.append(prefix + body)
    return b"".join(parts)


@pytest.mark.parametrize("codec", list(Codec))
def test_what_goes_in_comes_out(codec: Codec) -> None:
    batch = build_batch(VARIED, base_offset=100, codec=codec)
    assert read_records(batch) == numbered(VARIED, 100)
    (header,) = inspect_batches(batch)
    assert (header.compression, header.record_count, header.last_offset_delta) == (codec, 4, 3)
    assert (header.base_timestamp, header.max_timestamp) == (1_000, 1_700)
    validate_records(batch)


def test_records_of_several_batches_follow_each_other() -> None:
    first, second = build_batch(VARIED[:2], codec=Codec.LZ4), build_batch(VARIED[2:], base_offset=2)
    assert read_records(first + second) == numbered(VARIED)
    assert read_records(first + second[:-1], ignore_partial_tail=True) == numbered(VARIED[:2])
    assert read_records(b"") == []


def test_a_wrong_crc_is_noticed_unless_it_was_checked_before() -> None:
    batch = bytearray(build_batch(VARIED))
    batch[17] ^= 1
    with pytest.raises(CorruptRecord, match="CRC-32C"):
        read_records(batch)
    assert read_records(batch, check_crc=False) == numbered(VARIED)


def test_log_append_time_is_the_timestamp_of_every_record() -> None:
    batch = build_batch(VARIED, log_append_time=5_555)
    assert [record.timestamp for record in read_records(batch)] == [5_555] * 4
    assert refused(batch, earliest_ms=5_555, latest_ms=5_555) == ([], [])
    assert refused(batch, earliest_ms=5_556) == ([], [0, 1, 2, 3])
    assert find_timestamp(batch, 5_555) == (0, 5_555)
    assert max_timestamp_record(batch) == (0, 5_555)


def test_the_default_timestamp_is_for_records_without_one() -> None:
    batch = build_batch([Record(value=b"a"), Record(timestamp=3, value=b"b")], timestamp=77)
    assert [record.timestamp for record in read_records(batch)] == [77, 3]


def test_kept_offsets_may_have_gaps_and_the_range_may_be_wider() -> None:
    kept = [Record(offset=12, timestamp=1), Record(offset=17, timestamp=2)]
    batch = build_batch(kept, base_offset=10, keep_offsets=True, last_offset_delta=9)
    assert [record.offset for record in read_records(batch)] == [12, 17]
    (header,) = inspect_batches(batch)
    assert (header.base_offset, header.last_offset, header.record_count) == (10, 19, 2)
    with pytest.raises(CorruptRecord, match="not the record's place"):
        validate_records(batch)
    with pytest.raises(ValueError, match="an offset delta after 7 expected, 2 came"):
        build_batch(kept[::-1], base_offset=10, keep_offsets=True)
    with pytest.raises(ValueError, match="a last offset delta of 7 or more expected, 6 came"):
        build_batch(kept, base_offset=10, keep_offsets=True, last_offset_delta=6)


def test_a_batch_without_records_can_keep_its_place() -> None:
    batch = build_batch([], base_offset=5, last_offset_delta=4)
    assert read_records(batch) == []
    assert max_timestamp_record(batch) == (-1, -1)
    assert find_timestamp(batch, 0) is None
    assert refused(batch, needs_key=True, earliest_ms=0, latest_ms=0) == ([], [])


def test_questions_about_a_batch() -> None:
    for codec in Codec:
        batch = build_batch(VARIED, base_offset=50, codec=codec)
        assert max_timestamp_record(batch) == (52, 1_700)
        assert find_timestamp(batch, 0) == (50, 1_000)
        assert find_timestamp(batch, 1_001) == (52, 1_700)
        assert find_timestamp(batch, 1_701) is None


@pytest.mark.parametrize("codec", list(Codec))
def test_refused_records_are_found_by_their_place(codec: Codec) -> None:
    keys_and_times = [(None, 5), (b"k", 10), (b"k", -1), (None, 30), (b"k", 31), (b"", 9)]
    batch = build_batch([Record(timestamp=time, key=key) for key, time in keys_and_times], base_offset=50, codec=codec)
    assert refused(batch, needs_key=True) == ([0, 3], [])
    assert refused(batch, earliest_ms=10, latest_ms=30) == ([], [0, 4, 5])
    assert refused(batch, needs_key=True, earliest_ms=10, latest_ms=30) == ([0, 3], [4, 5])
    assert refused(batch, needs_key=True, earliest_ms=10, latest_ms=30, limit=3) == ([0, 3], [4])
    assert refused(batch) == ([], [])


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("target", list(Codec))
def test_recompressing_keeps_records_and_header(codec: Codec, target: Codec) -> None:
    batch = build_batch(
        VARIED, base_offset=9, leader_epoch=4, codec=codec, producer_id=8, producer_epoch=2, base_sequence=6
    )
    again = recompress(batch, target)
    before, after = inspect_batches(batch)[0], inspect_batches(again)[0]
    assert after.compression is target
    assert read_records(again) == read_records(batch)
    for name in ("base_offset", "partition_leader_epoch", "producer_id", "producer_epoch", "base_sequence"):
        assert getattr(after, name) == getattr(before, name)


@pytest.mark.parametrize("question", [validate_records, refused, max_timestamp_record])
def test_questions_are_about_exactly_one_batch(question: Any) -> None:
    batch = build_batch(VARIED)
    with pytest.raises(CorruptRecord, match=f"one batch of {len(batch)} bytes expected"):
        question(batch + b"\x00")
    with pytest.raises(CorruptRecord, match=f"{len(batch)} bytes expected, {len(batch) - 1} bytes came"):
        question(batch[:-1])


class Foreign(NamedTuple):
    """A record of somebody else's making."""

    offset: int
    timestamp: int
    key: bytearray | None
    value: memoryview | None
    headers: list[tuple[str, bytes | None]]


def test_any_object_with_the_fields_is_a_record(twin: Any) -> None:
    foreign = Foreign(7, 1, bytearray(b"k"), memoryview(b"value")[1:3], [("h", b"1")])
    encoder = twin.RecordEncoder()
    encoder.extend([foreign])
    header = twin.BatchHeader(record_count=1, base_timestamp=1)
    assert twin.decode_records(encoder.payload(), header) == [twin.Record(0, 1, b"k", b"al", (("h", b"1"),))]
    keeping = twin.RecordEncoder()
    keeping.extend([foreign], base_offset=2)
    assert keeping.last_offset_delta == 5


def test_an_encoder_counts_and_measures(twin: Any) -> None:
    encoder = twin.RecordEncoder()
    assert (encoder.size_bytes, encoder.record_count, encoder.last_offset_delta) == (61, 0, -1)
    size = encoder.append(10, b"k", b"v")
    assert size == encoder.size_bytes == 61 + len(encoder.payload()) == 70
    assert encoder.append_at(4, 7, None, None) == encoder.size_bytes
    state = (encoder.record_count, encoder.last_offset_delta, encoder.base_timestamp, encoder.max_timestamp)
    assert state == (2, 4, 10, 10)


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ((1, "text", b""), TypeError),
        ((1, b"", 5), TypeError),
        ((1, b"", b"", [("name", "text")]), TypeError),
        ((1, b"", b"", [(b"name", b"")]), TypeError),
        ((1, b"", b"", [(None, b"")]), TypeError),
        ((1, b"", b"", [("name",)]), ValueError),
        ((1, b"", b"", [("\ud800", b"")]), UnicodeEncodeError),
        ((1, b"", b"", None), TypeError),
        ((2**63, b"", b""), OverflowError),
        ((-(2**63), b"", b""), OverflowError),
    ],
)
def test_a_refused_record_leaves_the_encoder_as_it_was(
    twin: Any, arguments: tuple[Any, ...], kind: type[Exception]
) -> None:
    encoder = twin.RecordEncoder()
    encoder.append(5, b"first", b"")
    before = (encoder.payload(), encoder.record_count, encoder.max_timestamp)
    with pytest.raises(kind):
        encoder.append(*arguments)
    assert (encoder.payload(), encoder.record_count, encoder.max_timestamp) == before


def test_the_builder_is_an_encoder_that_builds() -> None:
    builder = BatchBuilder()
    builder.append(1, b"k", b"v")
    assert builder.build(base_offset=3) == build_batch([Record(timestamp=1, key=b"k", value=b"v")], base_offset=3)


GOOD = bytes([0, 0, 0, 1, 1, 0])
BROKEN: list[tuple[bytes, Fault]] = [
    (b"\x80", Fault.VARINT),
    (b"\xff\xff\xff\xff\x1f" + bytes(9), Fault.VARINT),
    (b"\xff\xff\xff\xff\x8f\x01" + bytes(9), Fault.VARINT),
    (b"\x0b" + GOOD, Fault.RECORD_LENGTH),
    (b"\x0a" + GOOD, Fault.RECORD_LENGTH),
    (b"\x0e" + GOOD, Fault.RECORD_LENGTH),
    (b"\xfe\xff\xff\xff\x0f" + GOOD, Fault.RECORD_LENGTH),
    (b"\x18" + bytes([0]) + b"\xff" * 9 + b"\x02" + bytes([1]), Fault.VARINT),
    (b"\x0c" + bytes([0, 0x80, 0x80, 0x80, 0x80, 0x80]), Fault.VARINT),
    (b"\x0c" + bytes([0, 0, 0x80, 0x80, 0x80, 0x80]), Fault.VARINT),
    (b"\x0c" + bytes([0, 0, 0, 3, 1, 0]), Fault.KEY_LENGTH),
    (b"\x0c" + bytes([0, 0, 0, 6, 1, 0]), Fault.KEY_LENGTH),
    (b"\x0c" + bytes([0, 0, 0, 1, 3, 0]), Fault.VALUE_LENGTH),
    (b"\x0c" + bytes([0, 0, 0, 1, 4, 0]), Fault.VALUE_LENGTH),
    (b"\x0c" + bytes([0, 0, 0, 1, 2, 0]), Fault.VARINT),
    (b"\x0c" + bytes([0, 0, 0, 1, 1, 1]), Fault.HEADER_COUNT),
    (b"\x0e" + bytes([0, 0, 0, 1, 1, 2, 0]), Fault.HEADER_COUNT),
    (b"\x10" + bytes([0, 0, 0, 1, 1, 2, 1, 1]), Fault.HEADER_KEY_LENGTH),
    (b"\x10" + bytes([0, 0, 0, 1, 1, 2, 4, 1]), Fault.HEADER_KEY_LENGTH),
    (b"\x10" + bytes([0, 0, 0, 1, 1, 2, 0, 3]), Fault.HEADER_VALUE_LENGTH),
    (b"\x10" + bytes([0, 0, 0, 1, 1, 2, 0, 2]), Fault.HEADER_VALUE_LENGTH),
    (b"\x0e" + GOOD + b"\x00", Fault.RECORD_SIZE),
]


@pytest.mark.parametrize(("body", "fault"), BROKEN)
def test_a_broken_record_is_corrupt_and_says_how(twin: Any, body: bytes, fault: Fault) -> None:
    payload = payload_of(twin, GOOD) + body
    header = twin.BatchHeader(record_count=2)
    # A count that fits the bytes, so that it is the record that is found wanting.
    padded = payload if len(payload) >= 14 else payload + bytes(14 - len(payload))
    expected = str(record_fault(fault, 1))
    for question in (twin.decode_records, partial(refused_in, twin), twin.latest_timestamp):
        with pytest.raises(CorruptRecord) as caught:
            question(padded if fault is not Fault.VARINT else payload + b"\x80" * 7, header)
        assert str(caught.value) == expected


@pytest.mark.parametrize("count", [-1, 3, 2**31 - 1])
def test_an_impossible_count_is_found_before_anything_is_read(twin: Any, count: int) -> None:
    payload = payload_of(twin, GOOD, GOOD)
    with pytest.raises(CorruptRecord, match="declares a record count"):
        twin.decode_records(payload, twin.BatchHeader(record_count=count))


def test_bytes_after_the_last_record_are_corrupt(twin: Any) -> None:
    payload = payload_of(twin, GOOD, GOOD)
    with pytest.raises(CorruptRecord, match="record 1 of the batch: bytes are left over"):
        twin.decode_records(payload, twin.BatchHeader(record_count=1))


def test_sums_beyond_64_bits_are_corrupt(twin: Any) -> None:
    payload = payload_of(twin, bytes([0, 2, 2, 1, 1, 0]))
    largest = 2**63 - 1
    with pytest.raises(CorruptRecord, match="64-bit offset"):
        twin.decode_records(payload, twin.BatchHeader(record_count=1, base_offset=largest))
    with pytest.raises(CorruptRecord, match="64-bit timestamp"):
        twin.decode_records(payload, twin.BatchHeader(record_count=1, base_timestamp=largest))
    appended = twin.BatchHeader(record_count=1, base_timestamp=largest, max_timestamp=3, attributes=8)
    assert twin.decode_records(payload, appended)[0].timestamp == 3


def test_validation_finds_deltas_out_of_order(twin: Any) -> None:
    shuffled = payload_of(twin, bytes([0, 0, 2, 1, 1, 0]), GOOD)
    with pytest.raises(CorruptRecord, match="record 0 of the batch: the offset delta"):
        twin.check_records(shuffled, twin.BatchHeader(record_count=2, last_offset_delta=1))
    with pytest.raises(CorruptRecord, match="a last offset delta of 0 expected for 1 records, 5 came"):
        twin.check_records(payload_of(twin, GOOD), twin.BatchHeader(record_count=1, last_offset_delta=5))
    assert twin.check_records(payload_of(twin, GOOD), twin.BatchHeader(record_count=1)) is None


def test_header_names_that_are_not_utf8_are_replaced_not_refused(twin: Any) -> None:
    body = bytes([0, 0, 0, 1, 1, 2, 4]) + b"\xffa" + bytes([1])
    (record,) = twin.decode_records(payload_of(twin, body), twin.BatchHeader(record_count=1))
    assert record.headers == (("\ufffda", None),)


def test_records_compare_by_value_and_show_themselves(twin: Any) -> None:
    record = twin.Record(1, 2, b"k", None, (("h", b"x"),))
    assert record == twin.Record(offset=1, timestamp=2, key=b"k", headers=(("h", b"x"),))
    assert record != twin.Record()
    assert (record == 5) is False
    assert repr(record) == "Record(offset=1, timestamp=2, key=b'k', value=None, headers=(('h', b'x'),))"


def test_a_body_of_garbage_behind_a_valid_crc_is_corrupt() -> None:
    from ottla.records import _native

    for codec in Codec:
        frame = (0, -1, int(codec), 9, 0, 0, -1, -1, -1, 10)
        batch = _native.frame_batch(struct.pack(">70B", *range(70)), *frame)
        inspect_batches(batch)
        with pytest.raises(CorruptRecord):
            read_records(batch)
