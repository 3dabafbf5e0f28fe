"""What a producer may append."""

import struct

import pytest
from tests.unit.log.support import START_MS, batch_of

from ottla.log.config import LogConfig
from ottla.log.validation import validate_for_append
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.records import Codec, crc32c, read_header, read_records


def changed(batch: memoryview, fmt: str, position: int, value: int) -> memoryview:
    """The batch with one field of its header overwritten and the CRC made to fit."""
    data = bytearray(batch)
    struct.pack_into(fmt, data, position, value)
    struct.pack_into(">I", data, 17, crc32c(data[21:]))
    return memoryview(data)


def refused(batch: memoryview, config: LogConfig | None = None) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        validate_for_append(batch, config or LogConfig(), START_MS)
    assert str(caught.value)
    return caught.value.code


def test_a_good_batch_is_given_back_as_it_is() -> None:
    batch = batch_of([b"a", b"b"], codec=Codec.LZ4)
    records, headers = validate_for_append(batch, LogConfig(), START_MS)
    assert records is batch
    assert headers == [read_header(batch)]


@pytest.mark.parametrize(
    ("fmt", "position", "value"),
    [
        (">q", 0, 5),  # base offset
        (">i", 57, 1),  # fewer records than offsets
        (">i", 57, 3),
        (">i", 57, 0),
        (">i", 57, -1),
        (">i", 23, -1),  # last offset delta
        (">h", 21, 0x20),  # control
        (">q", 43, 9),  # producer without a sequence
    ],
)
def test_headers_that_contradict_themselves(fmt: str, position: int, value: int) -> None:
    assert refused(changed(batch_of([b"a", b"b"]), fmt, position, value)) == ErrorCode.INVALID_RECORD


def test_a_codec_that_does_not_exist() -> None:
    assert refused(changed(batch_of([b"a", b"b"]), ">h", 21, 5)) == ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("size", [1, 12, 16, 17, 60])
def test_a_piece_of_a_batch_is_no_batch(size: int) -> None:
    assert refused(batch_of([b"a"])[:size]) == ErrorCode.INVALID_RECORD


def test_batches_are_counted_before_they_are_looked_at() -> None:
    good, wrong_crc = batch_of([b"a"]), changed(batch_of([b"a"]), ">I", 17, 1)
    struct.pack_into(">I", wrong_crc, 17, 1)
    assert refused(memoryview(bytes(good) + bytes(wrong_crc))) == ErrorCode.INVALID_RECORD
    assert refused(memoryview(bytes(good) + bytes(30))) == ErrorCode.CORRUPT_MESSAGE
    assert refused(memoryview(bytes(80))) == ErrorCode.CORRUPT_MESSAGE


def test_more_records_than_bytes_can_hold() -> None:
    batch = changed(changed(batch_of([b"a"]), ">i", 57, 2**31 - 1), ">i", 23, 2**31 - 2)
    assert refused(batch) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    ("magic", "code"), [(0, ErrorCode.INVALID_RECORD), (1, ErrorCode.INVALID_RECORD), (3, ErrorCode.CORRUPT_MESSAGE)]
)
def test_other_message_formats(magic: int, code: ErrorCode) -> None:
    batch = batch_of([b"a"])
    batch[16] = magic
    assert refused(batch) == code


def test_nothing_or_too_many() -> None:
    batch = bytes(batch_of([b"a"]))
    assert refused(memoryview(b"")) == ErrorCode.INVALID_RECORD
    assert refused(memoryview(batch[:-1])) == ErrorCode.INVALID_RECORD
    assert refused(memoryview(batch + batch)) == ErrorCode.INVALID_RECORD


def test_a_piece_of_a_batch_at_the_end_is_dropped() -> None:
    batch = bytes(batch_of([b"a"]))
    records, headers = validate_for_append(memoryview(batch + batch[:30]), LogConfig(), START_MS)
    assert bytes(records) == batch
    assert len(headers) == 1


def test_a_wrong_crc_and_an_impossible_length() -> None:
    batch = batch_of([b"abc"])
    batch[-3] ^= 1
    assert refused(batch) == ErrorCode.CORRUPT_MESSAGE
    batch = batch_of([b"abc"])
    batch[8:12] = struct.pack(">i", 10)
    assert refused(batch) == ErrorCode.CORRUPT_MESSAGE


def test_size() -> None:
    batch = batch_of([b"x" * 100])
    assert refused(batch, LogConfig(max_message_bytes=len(batch) - 1)) == ErrorCode.MESSAGE_TOO_LARGE
    validate_for_append(batch, LogConfig(max_message_bytes=len(batch)), START_MS)


def test_times_too_far_ahead() -> None:
    config = LogConfig(message_timestamp_after_max_ms=1000)
    validate_for_append(batch_of([b"a"], timestamp=START_MS + 1000), config, START_MS)
    assert refused(batch_of([b"a"], timestamp=START_MS + 1001), config) == ErrorCode.INVALID_TIMESTAMP


def test_times_too_far_back_are_looked_for_in_the_records() -> None:
    config = LogConfig(message_timestamp_before_max_ms=1000)
    good = [START_MS, START_MS - 1000]
    validate_for_append(batch_of([b"a", b"b"], timestamps=good), config, START_MS)
    bad = [START_MS, START_MS - 1001]
    assert refused(batch_of([b"a", b"b"], timestamps=bad, codec=Codec.ZSTD), config) == ErrorCode.INVALID_TIMESTAMP
    validate_for_append(batch_of([b"a"], timestamp=-1), config, START_MS)


def test_a_client_may_not_stamp_append_time() -> None:
    for kind in ("CreateTime", "LogAppendTime"):
        batch = changed(batch_of([b"a"]), ">h", 21, 0x08)
        assert refused(batch, LogConfig(message_timestamp_type=kind)) == ErrorCode.INVALID_TIMESTAMP


def test_compacted_topics_want_keys() -> None:
    for policy in (("compact",), ("compact", "delete")):
        config = LogConfig(cleanup_policy=policy)
        assert refused(batch_of([b"a"], codec=Codec.GZIP), config) == ErrorCode.INVALID_RECORD
        validate_for_append(batch_of([b"a"], key=b"k"), config, START_MS)
    validate_for_append(batch_of([b"a"]), LogConfig(cleanup_policy=()), START_MS)


@pytest.mark.parametrize("readonly", [True, False])
def test_append_time_is_stamped(readonly: bool) -> None:
    batch = batch_of([b"a", b"b"], timestamp=5)
    view = memoryview(bytes(batch)) if readonly else batch
    config = LogConfig(message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms=0)
    records, headers = validate_for_append(view, config, START_MS)
    assert headers[0].has_log_append_time
    assert headers[0].max_timestamp == START_MS
    assert [record.timestamp for record in read_records(records)] == [START_MS] * 2


@pytest.mark.parametrize("source", list(Codec))
@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd", "producer"])
def test_the_topics_codec_is_used(source: Codec, target: str) -> None:
    values = [b"value " * 20] * 5
    batch = batch_of(values, codec=source, producer_id=3, producer_epoch=1, base_sequence=8)
    records, headers = validate_for_append(batch, LogConfig(compression_type=target), START_MS)
    known = {"producer": source, "uncompressed": Codec.NONE}
    expected = known[target] if target in known else Codec.from_name(target)
    assert headers == [read_header(records)]
    assert headers[0].compression == expected
    assert (headers[0].producer_id, headers[0].producer_epoch, headers[0].base_sequence) == (3, 1, 8)
    assert [record.value for record in read_records(records)] == values


def test_a_batch_that_grows_too_large_by_decompression_is_refused() -> None:
    batch = batch_of([b"a" * 5000], codec=Codec.LZ4)
    config = LogConfig(compression_type="uncompressed", max_message_bytes=1000)
    assert len(batch) < 1000
    assert refused(batch, config) == ErrorCode.MESSAGE_TOO_LARGE
