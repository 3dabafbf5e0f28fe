"""Record batches against Apache Kafka's own classes: what Java writes is read here, what is built here Java reads."""

from __future__ import annotations

import zlib
from typing import Any

import lz4.frame
import pyarrow as pa
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.compat.records.record_oracle import OracleRefused, RecordOracle, records_in
from tests.property.records.strategies import CODECS, RECORDS

from ottla.records import (
    BatchHeader,
    Codec,
    ControlType,
    EndTransactionMarker,
    Record,
    build_batch,
    build_end_transaction,
    from_arrow,
    inspect_batches,
    max_timestamp_record,
    read_control_batch,
    read_records,
    recompress,
    set_log_append_time,
    to_arrow,
    validate_records,
)

NOISE = b"".join(zlib.crc32(bytes([number % 256, number // 256])).to_bytes(4, "big") for number in range(50_000))
OFFSET = 1_000

SAMPLES: dict[str, list[Record]] = {
    "one": [Record(OFFSET, 1_700_000_000_000, b"key", b"value")],
    "nulls": [
        Record(OFFSET, 10, None, b"value"),
        Record(OFFSET + 1, 9, b"key", None),
        Record(OFFSET + 2, 8, None, None),
        Record(OFFSET + 3, 7, b"", b""),
    ],
    "headers": [
        Record(OFFSET, 5, b"k", b"v", (("a", b"1"), ("a", None), ("příliš žluťoučký", b""), ("", b"x" * 100))),
        Record(OFFSET + 1, 2**41, b"k", b"v", ()),
        Record(OFFSET + 2, 0, None, None, (("only", b"this"),)),
    ],
    "text": [Record(OFFSET + n, 1_000 + n * 37 % 101, b"%d" % n, b"line %d of a text" % n) for n in range(6_000)],
    "noise": [Record(OFFSET + n, 1_000, b"%d" % n, NOISE[n * 1_000 : n * 1_000 + 1_000]) for n in range(200)],
    "large": [Record(OFFSET, 3, b"k" * 70_000, NOISE), Record(OFFSET + 1, 2, None, bytes(1_000_000))],
}
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "idempotent": {"producer_id": 77, "producer_epoch": 3, "base_sequence": 2**31 - 3, "leader_epoch": 12},
    "transactional": {"producer_id": 2**40, "producer_epoch": 0, "base_sequence": 0, "transactional": True},
    "append time": {"log_append_time": 1_699_999_999_999},
}


def expected(records: list[Record], options: dict[str, Any]) -> list[Record]:
    if "log_append_time" not in options:
        return records
    return [Record(r.offset, options["log_append_time"], r.key, r.value, r.headers) for r in records]


def assert_same_header(header: BatchHeader, seen: dict[str, Any]) -> None:
    """Java and the header view agree on every field that Java shows."""
    came = {
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "size": header.size_bytes,
        "leaderEpoch": header.partition_leader_epoch,
        "magic": header.magic,
        "crc": header.crc,
        "codec": header.compression.config_name,
        "logAppendTime": header.has_log_append_time,
        "maxTimestamp": header.max_timestamp,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "baseSequence": header.base_sequence,
        "lastSequence": header.last_sequence,
        "count": header.record_count,
        "transactional": header.is_transactional,
        "control": header.is_control,
    }
    assert came == {name: seen[name] for name in came}


@pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("sample", SAMPLES)
def test_batches_written_by_java_are_read(java_records: RecordOracle, sample: str, options: str, codec: Codec) -> None:
    records, fields = SAMPLES[sample], OPTIONS[options]
    batch = java_records.write(records, codec=codec, base_offset=OFFSET, **fields)
    assert read_records(batch) == expected(records, fields)
    validate_records(batch)
    (seen,) = java_records.read(batch)
    assert_same_header(inspect_batches(batch)[0], seen)
    assert max_timestamp_record(batch)[0] == seen["offsetOfMaxTimestamp"]
    table = to_arrow(batch)
    assert table.column("value").to_pylist() == [record.value for record in records]
    assert table.column("offset").to_pylist() == [record.offset for record in records]


@pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("sample", SAMPLES)
def test_batches_built_here_are_read_by_java(
    java_records: RecordOracle, sample: str, options: str, codec: Codec
) -> None:
    records, fields = SAMPLES[sample], OPTIONS[options]
    batch = build_batch(records, codec=codec, base_offset=OFFSET, **fields)
    (seen,) = java_records.read(batch)
    assert records_in(seen) == expected(records, fields)
    assert_same_header(inspect_batches(batch)[0], seen)
    if codec is Codec.NONE:
        assert batch == java_records.write(records, base_offset=OFFSET, **fields)


@settings(max_examples=60, deadline=None)
@given(records=st.lists(RECORDS, min_size=1, max_size=6), codec=CODECS)
def test_any_records_go_both_ways(java_records: RecordOracle, records: list[Record], codec: Codec) -> None:
    own = [Record(index, r.timestamp, r.key, r.value, r.headers) for index, r in enumerate(records)]
    (seen,) = java_records.read(build_batch(own, codec=codec))
    assert records_in(seen) == own
    assert seen["offsetOfMaxTimestamp"] == max_timestamp_record(build_batch(own))[0]


def test_gaps_and_a_wider_range_are_read_alike(java_records: RecordOracle) -> None:
    records = [Record(OFFSET + 2, 1, b"a"), Record(OFFSET + 9, 2, b"b")]
    batch = build_batch(records, base_offset=OFFSET, keep_offsets=True, last_offset_delta=20)
    (seen,) = java_records.read(batch)
    assert records_in(seen) == records == read_records(batch)
    assert seen["lastOffset"] == OFFSET + 20


@pytest.mark.parametrize("kind", list(ControlType), ids=lambda kind: kind.name)
def test_markers_are_the_same_bytes(java_records: RecordOracle, kind: ControlType) -> None:
    fields: dict[str, Any] = {
        "base_offset": 55,
        "timestamp": 1_234_567,
        "leader_epoch": 4,
        "producer_id": 99,
        "producer_epoch": 7,
    }
    written = java_records.marker(kind, coordinator_epoch=31, **fields)
    assert read_control_batch(written) == EndTransactionMarker(kind, 31)
    assert build_end_transaction(EndTransactionMarker(kind, 31), **fields) == written
    (seen,) = java_records.read(written)
    assert (seen["records"][0]["type"], seen["records"][0]["coordinatorEpoch"]) == (kind.name, 31)
    assert_same_header(inspect_batches(written)[0], seen)


@pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name)
def test_append_time_is_written_as_java_writes_it(java_records: RecordOracle, codec: Codec) -> None:
    batch = bytearray(build_batch(SAMPLES["headers"], base_offset=OFFSET, codec=codec))
    changed = java_records.set_append_time(bytes(batch), 44_444)
    set_log_append_time(batch, 0, 44_444)
    assert bytes(batch) == changed


@pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name)
def test_recompressed_and_columnar_batches_are_read_by_java(java_records: RecordOracle, codec: Codec) -> None:
    records = SAMPLES["text"]
    again = recompress(java_records.write(records, codec=Codec.GZIP, base_offset=OFFSET), codec)
    assert records_in(java_records.read(again)[0]) == records
    table = pa.Table.from_batches([to_arrow(again)])
    made = from_arrow(table, codec=codec, base_offset=OFFSET, max_batch_bytes=50_000)
    assert len(made) > 1
    seen = java_records.read(b"".join(made))
    assert [record for batch in seen for record in records_in(batch)] == records


def test_java_finds_a_flipped_bit(java_records: RecordOracle) -> None:
    batch = bytearray(build_batch(SAMPLES["one"]))
    batch[-1] ^= 1
    with pytest.raises(OracleRefused, match="CorruptRecordException"):
        java_records.read(bytes(batch))


def test_frames_are_alike(java_records: RecordOracle) -> None:
    """What the frames of the codecs look like is a fact about Java's writer that the builder here follows. Only the
    blocks of large lz4 frames are larger here, which Java reads as well (`SAMPLES`)."""
    java = {codec: java_records.write(SAMPLES["text"], codec=codec, base_offset=OFFSET)[61:] for codec in Codec}
    own = {codec: build_batch(SAMPLES["text"], codec=codec, base_offset=OFFSET)[61:] for codec in Codec}
    assert own[Codec.SNAPPY][:16] == java[Codec.SNAPPY][:16]
    names = ("block_linked", "content_checksum", "block_checksum", "content_size")
    ours, theirs = lz4.frame.get_frame_info(own[Codec.LZ4]), lz4.frame.get_frame_info(java[Codec.LZ4])
    assert {name: ours[name] for name in names} == {name: theirs[name] for name in names}
    for frames in (own, java):
        assert zstandard.get_frame_parameters(frames[Codec.ZSTD]).content_size == zstandard.CONTENTSIZE_UNKNOWN
