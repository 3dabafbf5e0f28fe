"""The header of a batch: what is read, what is refused, what is rewritten in place."""

from __future__ import annotations

import struct
from typing import Any

import crc32c as reference_crc32c
import pytest

from ottla.protocol.errors import ErrorCode
from ottla.records import Codec, CorruptRecord, Record, UnsupportedMagic, build_batch
from ottla.records._native import crc32c_portable

# Written by hand from the format's description: one record, key "k", value "v", no headers.
_RECORD = bytes([16, 0, 0, 0, 2]) + b"k" + bytes([2]) + b"v" + bytes([0])
_CHECKED = struct.pack(">hiqqqhii", 0x10, 0, 1_000, 1_000, 77, 3, 5, 1) + _RECORD
GOLDEN = (
    struct.pack(">qiib", 42, 9 + len(_CHECKED), 7, 2) + struct.pack(">I", reference_crc32c.crc32c(_CHECKED)) + _CHECKED
)
NAMES = (
    "base_offset", "size_bytes", "partition_leader_epoch", "magic", "crc", "attributes", "last_offset_delta",
    "base_timestamp", "max_timestamp", "producer_id", "producer_epoch", "base_sequence", "record_count",
)  # fmt: skip


def batch(count: int = 1, **options: Any) -> bytearray:
    return bytearray(build_batch([Record(timestamp=5, value=b"x" * 20)] * count, **options))


def test_golden_bytes_are_built_and_read(twin: Any) -> None:
    built = build_batch(
        [Record(key=b"k", value=b"v")],
        base_offset=42,
        leader_epoch=7,
        timestamp=1_000,
        producer_id=77,
        producer_epoch=3,
        base_sequence=5,
        transactional=True,
    )
    assert built == GOLDEN
    header = twin.read_header(GOLDEN)
    crc = struct.unpack_from(">I", GOLDEN, 17)[0]
    assert [getattr(header, name) for name in NAMES] == [
        42, len(GOLDEN), 7, 2, crc, 0x10, 0, 1_000, 1_000, 77, 3, 5, 1
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        (0, (Codec.NONE, False, False, False)),
        (0x01, (Codec.GZIP, False, False, False)),
        (0x0A, (Codec.SNAPPY, True, False, False)),
        (0x13, (Codec.LZ4, False, True, False)),
        (0x34, (Codec.ZSTD, False, True, True)),
    ],
)
def test_attributes(twin: Any, attributes: int, expected: tuple[object, ...]) -> None:
    header = twin.BatchHeader(attributes=attributes)
    came = (header.compression, header.has_log_append_time, header.is_transactional, header.is_control)
    assert came == expected


@pytest.mark.parametrize("number", [5, 6, 7])
def test_an_unknown_codec_is_corrupt(twin: Any, number: int) -> None:
    with pytest.raises(CorruptRecord, match=f"from 0 to 4 expected, {number} came"):
        _ = twin.BatchHeader(attributes=number).compression


def test_offsets_and_sequences(twin: Any) -> None:
    header = twin.BatchHeader(base_offset=10, last_offset_delta=4, base_sequence=2**31 - 3, producer_id=0)
    assert (header.last_offset, header.next_offset) == (14, 15)
    assert header.last_sequence == 1
    assert header.has_producer
    without = twin.BatchHeader(last_offset_delta=4)
    assert without.last_sequence == -1
    assert not without.has_producer
    edge = twin.BatchHeader(base_offset=2**63 - 1, last_offset_delta=1)
    assert edge.next_offset == 2**63 + 1


def test_headers_compare_by_value_and_show_all_fields(twin: Any) -> None:
    header = twin.read_header(GOLDEN)
    assert header == twin.read_header(GOLDEN)
    assert header != twin.BatchHeader()
    assert (header == "header") is False
    assert all(f"{name}={getattr(header, name)}" in repr(header) for name in NAMES)


def test_scanning_finds_every_batch(twin: Any) -> None:
    parts = [batch(count, base_offset=10 * count) for count in (1, 2, 3)]
    headers = twin.inspect_batches(b"".join(parts))
    assert [header.base_offset for header in headers] == [10, 20, 30]
    assert [header.size_bytes for header in headers] == [len(part) for part in parts]
    assert headers == twin.scan_headers(memoryview(b"".join(parts)))
    assert twin.inspect_batches(b"") == []


@pytest.mark.parametrize("cut", [1, 16, 17, 60, 61, 80])
def test_a_cut_batch_is_corrupt_unless_a_partial_tail_is_allowed(twin: Any, cut: int) -> None:
    whole = bytes(batch())
    buffer = whole + whole[:cut]
    with pytest.raises(CorruptRecord, match=f"batch at {len(whole)}: .* {cut} bytes came"):
        twin.inspect_batches(buffer)
    assert len(twin.inspect_batches(buffer, ignore_partial_tail=True)) == 1
    assert len(twin.scan_headers(buffer, ignore_partial_tail=True)) == 1


def test_every_flipped_bit_behind_the_crc_is_found(twin: Any) -> None:
    good = batch()
    for position in range(17, len(good)):
        bad = bytearray(good)
        bad[position] ^= 0x10
        with pytest.raises(CorruptRecord, match="batch at 0: CRC-32C 0x") as caught:
            twin.inspect_batches(bad)
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
        header = twin.read_header(bad)
        assert not twin.check_crc(bad, 0, header)
    assert twin.check_crc(good, 0, twin.read_header(good))


def test_a_batch_that_is_not_all_there_has_no_valid_crc(twin: Any) -> None:
    good = batch()
    header = twin.read_header(good)
    assert not twin.check_crc(good[:-1], 0, header)
    assert not twin.check_crc(good, 1, header)
    assert twin.check_crc(b"123" + good, 3, header)
    assert not twin.check_crc(good, 0, twin.BatchHeader(size_bytes=3))


@pytest.mark.parametrize("length", [-1, 0, 48])
def test_an_impossible_length_is_corrupt(twin: Any, length: int) -> None:
    bad = batch()
    struct.pack_into(">i", bad, 8, length)
    with pytest.raises(CorruptRecord, match=f"a length of 49 or more expected, {length} came"):
        twin.read_header(bad)
    with pytest.raises(CorruptRecord):
        twin.scan_headers(bad, ignore_partial_tail=True)


@pytest.mark.parametrize(
    ("magic", "kind", "code"),
    [
        (0, UnsupportedMagic, ErrorCode.INVALID_RECORD),
        (1, UnsupportedMagic, ErrorCode.INVALID_RECORD),
        (3, CorruptRecord, ErrorCode.CORRUPT_MESSAGE),
        (-1, CorruptRecord, ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_other_formats_are_refused(twin: Any, magic: int, kind: type[CorruptRecord], code: ErrorCode) -> None:
    bad = batch()
    struct.pack_into(">b", bad, 16, magic)
    with pytest.raises(CorruptRecord, match=f"magic 2 expected, {magic} came") as caught:
        twin.inspect_batches(bad[:30])
    assert type(caught.value) is kind
    assert caught.value.code is code


def test_a_header_is_read_where_it_is_and_without_its_body(twin: Any) -> None:
    whole = bytes(batch(base_offset=9))
    assert twin.read_header(b"abc" + whole[:61], 3).base_offset == 9
    with pytest.raises(CorruptRecord, match="batch at 3: a header of 61 bytes expected, 60 bytes came"):
        twin.read_header(b"abc" + whole[:60], 3)
    with pytest.raises(CorruptRecord, match="0 bytes came"):
        twin.read_header(whole, len(whole) + 5)


@pytest.mark.parametrize("call", ["read_header", "check_crc", "assign_offset", "set_log_append_time"])
def test_a_negative_position_is_a_mistake_of_the_caller(twin: Any, call: str) -> None:
    arguments = {
        "check_crc": (twin.BatchHeader(),),
        "assign_offset": (0, 0),
        "set_log_append_time": (0,),
    }.get(call, ())
    with pytest.raises(ValueError, match="a position of 0 or more expected, -1 came"):
        getattr(twin, call)(batch(), -1, *arguments)


def test_assigning_an_offset_leaves_everything_else(twin: Any) -> None:
    first, second = batch(), batch(3)
    buffer = first + second
    twin.assign_offset(memoryview(buffer), len(first), 2**40, 12)
    one, two = twin.inspect_batches(buffer)
    assert (one.base_offset, one.partition_leader_epoch) == (0, -1)
    assert (two.base_offset, two.partition_leader_epoch) == (2**40, 12)
    assert buffer[:12] + buffer[16:] != first + second
    assert bytes(buffer[len(first) + 16 :]) == bytes(second[16:])
    assert bytes(buffer[len(first) + 8 : len(first) + 12]) == bytes(second[8:12])


def test_log_append_time_is_set_with_a_new_crc(twin: Any) -> None:
    first, second = batch(), batch(3, transactional=True, producer_id=4)
    buffer = first + second
    twin.set_log_append_time(buffer, len(first), 123_456)
    one, two = twin.inspect_batches(buffer)
    assert (one.has_log_append_time, one.max_timestamp) == (False, 5)
    assert (two.has_log_append_time, two.max_timestamp, two.base_timestamp) == (True, 123_456, 5)
    assert two.is_transactional


def test_what_is_rewritten_must_be_there_and_writable(twin: Any) -> None:
    with pytest.raises(CorruptRecord, match="60 bytes came"):
        twin.assign_offset(batch()[:60], 0, 1, 1)
    with pytest.raises(CorruptRecord, match="80 bytes came"):
        twin.set_log_append_time(batch()[:80], 0, 1)
    with pytest.raises(BufferError):
        twin.assign_offset(bytes(batch()), 0, 1, 1)
    with pytest.raises(BufferError):
        twin.set_log_append_time(bytes(batch()), 0, 1)


def test_numbers_that_do_not_fit_are_refused_and_nothing_is_written(twin: Any) -> None:
    target = batch()
    before = bytes(target)
    for offset, epoch in ((2**63, 0), (0, 2**31)):
        with pytest.raises(OverflowError):
            twin.assign_offset(target, 0, offset, epoch)
    with pytest.raises(OverflowError):
        twin.set_log_append_time(target, 0, 2**63)
    assert bytes(target) == before
    good = (0, -1, 0, 0, 0, 0, -1, -1, -1, 0)
    for place, number in enumerate((2**63, 2**31, 2**15, 2**31, 2**63, 2**63, 2**63, 2**15, 2**31, 2**31)):
        with pytest.raises(OverflowError):
            twin.frame_batch(b"", *good[:place], number, *good[place + 1 :])


def test_only_contiguous_buffers_are_taken(twin: Any) -> None:
    with pytest.raises(BufferError):
        twin.inspect_batches(memoryview(bytes(batch()))[::2])
    for nothing in (None, "text", 5):
        with pytest.raises(TypeError):
            twin.inspect_batches(nothing)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 170, 767, 768, 769, 5_000, 12_287, 12_288, 12_289, 300_000])
def test_crc32c_is_the_same_in_every_implementation(twin: Any, size: int) -> None:
    data = bytes((index * 131 + index // 251) & 0xFF for index in range(size))
    expected = reference_crc32c.crc32c(data)
    assert twin.crc32c(data) == expected
    assert crc32c_portable(data) == expected
    middle = size // 3
    assert twin.crc32c(data[middle:], twin.crc32c(data[:middle])) == expected
    assert crc32c_portable(data[middle:], crc32c_portable(data[:middle])) == expected


def test_crc32c_of_the_standard_check_word(twin: Any) -> None:
    assert twin.crc32c(b"123456789") == crc32c_portable(b"123456789") == 0xE3069283
