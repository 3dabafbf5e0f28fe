"""Record batches as Arrow and back."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from ottla.records import (
    Codec,
    ControlType,
    CorruptRecord,
    EndTransactionMarker,
    Record,
    build_batch,
    build_end_transaction,
    from_arrow,
    inspect_batches,
    read_records,
    to_arrow,
)
from ottla.records.types import BinaryColumn, ListColumn, NumberColumn

RECORDS = [
    Record(timestamp=1_000, key=b"a", value=b"1"),
    Record(timestamp=900, key=None, value=b"", headers=(("x", b"y"),)),
    Record(timestamp=1_700, key=b"", value=None, headers=(("name", b"value"), ("name", None), ("ž", b""))),
    Record(timestamp=1_700, key=b"k" * 300, value=b"v" * 70_000),
]
HEADERS = [
    [],
    [{"key": "x", "value": b"y"}],
    [{"key": "name", "value": b"value"}, {"key": "name", "value": None}, {"key": "ž", "value": b""}],
    [],
]


def column(table: pa.RecordBatch, name: str) -> list[Any]:
    return list(table.column(name).to_pylist())


@pytest.mark.parametrize("codec", list(Codec))
def test_records_become_rows(codec: Codec) -> None:
    buffers = [build_batch(RECORDS, base_offset=10, codec=codec), build_batch(RECORDS, base_offset=20, codec=codec)]
    table = to_arrow(buffers)
    table.validate(full=True)
    assert table.schema.names == ["key", "value", "offset", "timestamp", "timestampType", "headers"]
    assert column(table, "key") == [record.key for record in RECORDS] * 2
    assert column(table, "value") == [record.value for record in RECORDS] * 2
    assert column(table, "offset") == [10, 11, 12, 13, 20, 21, 22, 23]
    assert table.column("timestamp").cast(pa.int64()).to_pylist() == [1_000, 900, 1_700, 1_700] * 2
    assert column(table, "timestampType") == [0] * 8
    assert column(table, "headers") == HEADERS * 2
    assert to_arrow(b"".join(buffers)).equals(table)


def test_types() -> None:
    schema = to_arrow(b"", topic="t", partition=3).schema
    assert {field.name: str(field.type) for field in schema} == {
        "key": "binary",
        "value": "binary",
        "topic": "string",
        "partition": "int32",
        "offset": "int64",
        "timestamp": "timestamp[ms, tz=UTC]",
        "timestampType": "int32",
        "headers": "list<item: struct<key: string not null, value: binary>>",
    }


def test_no_records_are_an_empty_table() -> None:
    nothings: list[bytes | list[bytes]] = [b"", []]
    for nothing in nothings:
        table = to_arrow(nothing)
        table.validate(full=True)
        assert table.num_rows == 0
        assert from_arrow(table) == []


def test_topic_partition_and_unit_can_be_given_and_headers_left_out() -> None:
    table = to_arrow(build_batch(RECORDS), topic="orders", partition=7, headers=False, timestamp_unit="us")
    assert "headers" not in table.schema.names
    assert column(table, "topic") == ["orders"] * 4
    assert column(table, "partition") == [7] * 4
    assert str(table.schema.field("timestamp").type) == "timestamp[us, tz=UTC]"
    assert table.column("timestamp").cast(pa.int64()).to_pylist() == [1_000_000, 900_000, 1_700_000, 1_700_000]


def test_log_append_time() -> None:
    table = to_arrow(build_batch(RECORDS, log_append_time=5))
    assert column(table, "timestampType") == [1] * 4
    assert table.column("timestamp").cast(pa.int64()).to_pylist() == [5] * 4


def test_only_the_wanted_offsets_become_rows() -> None:
    buffers = [build_batch(RECORDS, base_offset=base) for base in (0, 4, 8)]
    assert column(to_arrow(buffers, first_offset=3, end_offset=9), "offset") == [3, 4, 5, 6, 7, 8]
    assert column(to_arrow(buffers, first_offset=12), "offset") == []
    table = to_arrow(buffers, first_offset=6, end_offset=7)
    table.validate(full=True)
    assert column(table, "headers") == [HEADERS[2]]


def test_batches_out_of_range_are_not_even_decompressed() -> None:
    broken = bytearray(build_batch(RECORDS, codec=Codec.ZSTD))
    broken[61:65] = b"none"
    good = build_batch(RECORDS, base_offset=4)
    assert column(to_arrow([broken, good], first_offset=4, check_crc=False), "offset") == [4, 5, 6, 7]


def test_control_batches_and_refused_ones_are_left_out() -> None:
    marker = build_end_transaction(
        EndTransactionMarker(ControlType.ABORT, 0), producer_id=1, producer_epoch=0, timestamp=1, base_offset=4
    )
    aborted = build_batch(RECORDS, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    kept = build_batch(RECORDS, base_offset=5)
    assert column(to_arrow(aborted + marker + kept), "offset") == [0, 1, 2, 3, 5, 6, 7, 8]
    table = to_arrow(aborted + marker + kept, keep_batch=lambda header: not header.has_producer)
    assert column(table, "offset") == [5, 6, 7, 8]


def test_a_partial_tail_and_a_wrong_crc() -> None:
    batch = build_batch(RECORDS)
    with pytest.raises(CorruptRecord, match="bytes came"):
        to_arrow(batch + batch[:100])
    assert to_arrow(batch + batch[:100], ignore_partial_tail=True).num_rows == 4
    bad = bytearray(batch)
    bad[-1] ^= 1
    with pytest.raises(CorruptRecord, match="CRC-32C"):
        to_arrow(bad)


def test_a_timestamp_too_large_for_the_unit_is_corrupt() -> None:
    batch = build_batch([Record(timestamp=2**62)])
    assert to_arrow(batch).column("timestamp").cast(pa.int64()).to_pylist() == [2**62]
    with pytest.raises(CorruptRecord, match="64-bit timestamp"):
        to_arrow(batch, timestamp_unit="us")


def test_names_of_headers_are_valid_text_whatever_they_were(twin: Any) -> None:
    good, broken = (
        "žluť".encode(),
        [b"\xff\xfe", b"a\x80b", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"],
    )
    names = [good, b"plain", *broken, "🙂".encode(), good]
    body = bytes([0, 0, 0, 1, 1, len(names) << 1]) + b"".join(
        bytes([len(name) << 1]) + name + bytes([2, 65]) for name in names
    )
    size = len(body) << 1
    decoder = twin.ArrowDecoder(0, 10, 1, True)
    decoder.add(bytes([size & 0x7F | 0x80, size >> 7]) + body, twin.BatchHeader(record_count=1))
    columns = decoder.finish()
    offsets = memoryview(columns.header_name.offsets).cast("B").cast("i")
    data = bytes(columns.header_name.data)
    came = [data[start:end] for start, end in pairwise(offsets)]
    assert came == [name.decode("utf-8", "replace").encode() for name in names]
    assert bytes(columns.header_value.data) == b"A" * len(names)


def test_tables_become_batches() -> None:
    table = to_arrow(build_batch(RECORDS))
    (batch,) = from_arrow(table)
    assert batch == build_batch(RECORDS)
    (packed,) = from_arrow(table, codec=Codec.LZ4, base_offset=3, producer_id=4, producer_epoch=5, base_sequence=6)
    assert packed == build_batch(
        RECORDS, codec=Codec.LZ4, base_offset=3, producer_id=4, producer_epoch=5, base_sequence=6
    )
    (transactional,) = from_arrow(table, transactional=True, producer_id=1, leader_epoch=8)
    assert transactional == build_batch(RECORDS, transactional=True, producer_id=1, leader_epoch=8)


def test_batches_are_as_large_as_allowed_and_no_larger() -> None:
    records = [Record(timestamp=index, key=b"%05d" % index, value=b"x" * 100) for index in range(1_000)]
    table = to_arrow(build_batch(records))
    batches = from_arrow(table, max_batch_bytes=5_000, base_offset=10, producer_id=1, base_sequence=2**31 - 50)
    assert all(len(batch) <= 5_000 for batch in batches)
    assert all(len(batch) > 4_800 for batch in batches[:-1])
    headers = [inspect_batches(batch)[0] for batch in batches]
    assert [header.base_offset for header in headers[1:]] == [header.next_offset for header in headers[:-1]]
    assert [header.base_sequence for header in headers[1:]] == [
        (header.last_sequence + 1) % 2**31 for header in headers[:-1]
    ]
    came = [record.value for batch in batches for record in read_records(batch)]
    assert came == [record.value for record in records]


def test_a_row_larger_than_the_limit_gets_a_batch_of_its_own() -> None:
    batches = from_arrow(to_arrow(build_batch(RECORDS)), max_batch_bytes=200)
    assert [inspect_batches(batch)[0].record_count for batch in batches] == [3, 1]


ROWS = {"key": ["a", None, "ccc"], "value": ["1", "", None]}


@pytest.mark.parametrize(
    "kind",
    [
        pa.binary(),
        pa.string(),
        pa.large_binary(),
        pa.large_string(),
        pa.binary_view(),
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.string()),
    ],
    ids=str,
)
def test_every_kind_of_text_and_bytes_can_be_sent(kind: pa.DataType) -> None:
    table = pa.table({name: pa.array(values, pa.string()).cast(kind) for name, values in ROWS.items()})
    (batch,) = from_arrow(table, timestamp=9)
    came = [(record.key, record.value, record.timestamp) for record in read_records(batch)]
    assert came == [(b"a", b"1", 9), (None, b"", 9), (b"ccc", None, 9)]


def test_fixed_size_bytes_and_columns_of_nothing() -> None:
    table = pa.table({"key": pa.nulls(2), "value": pa.array([b"ab", b"cd"], pa.binary(2)), "headers": pa.nulls(2)})
    (batch,) = from_arrow(table)
    assert [(record.key, record.value) for record in read_records(batch)] == [(None, b"ab"), (None, b"cd")]
    (without,) = from_arrow(pa.table({"other": [1, 2, 3]}))
    assert inspect_batches(without)[0].record_count == 3


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, None, 3], pa.int64()),
        pa.array([1, None, 3], pa.int32()),
        pa.array([1, None, 3], pa.timestamp("ms", "UTC")),
        pa.array([1_999, None, 3_000], pa.timestamp("us")),
    ],
    ids=lambda values: str(values.type),
)
def test_timestamps_come_as_numbers_or_times(values: pa.Array) -> None:
    (batch,) = from_arrow(pa.table({"value": ["a", "b", "c"], "timestamp": values}), timestamp=44)
    assert [record.timestamp for record in read_records(batch)] == [1, 44, 3]


PAIRS = [[("a", b"1"), ("b", None)], None, []]


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
        pa.large_list(pa.struct([("key", pa.large_string()), ("value", pa.large_binary())])),
        pa.map_(pa.string(), pa.binary()),
    ],
    ids=["list", "large list", "map"],
)
def test_headers_come_as_lists_or_maps(kind: pa.DataType) -> None:
    pairs = pa.types.is_map(kind)
    values = [
        None if row is None else [item if pairs else dict(zip(("key", "value"), item, strict=True)) for item in row]
        for row in PAIRS
    ]
    table = pa.table({"value": ["x", "y", "z"], "headers": pa.array(values, kind)})
    (batch,) = from_arrow(table)
    assert [record.headers for record in read_records(batch)] == [(("a", b"1"), ("b", None)), (), ()]
    (last,) = from_arrow(table.slice(2))
    assert [(record.value, record.headers) for record in read_records(last)] == [(b"z", ())]


def test_slices_and_chunks_are_followed() -> None:
    records = [
        Record(
            timestamp=index,
            key=None if index % 3 else b"%d" % index,
            value=b"v%d" % index,
            headers=((f"h{index}", None),),
        )
        for index in range(50)
    ]
    whole = to_arrow(build_batch(records))
    chunked = pa.Table.from_batches([whole.slice(7, 13), whole.slice(33, 9)])
    came = [record for batch in from_arrow(chunked) for record in read_records(batch)]
    expected = records[7:20] + records[33:42]
    assert [(r.timestamp, r.key, r.value, r.headers) for r in came] == [
        (r.timestamp, r.key, r.value, r.headers) for r in expected
    ]


@pytest.mark.parametrize(
    ("name", "values", "why"),
    [
        ("value", pa.array([1]), "column value: binary or string expected, int64 came"),
        ("key", pa.array([1.5]), "column key: binary or string expected"),
        ("timestamp", pa.array(["x"]), "column timestamp: a timestamp or milliseconds"),
        ("headers", pa.array(["x"]), "column headers: a list of structs"),
        ("headers", pa.array([[{"key": "a"}]]), "column headers: structs of key and value"),
        ("headers", pa.array([[{"key": 5, "value": b""}]]), "column headers.key: binary or string expected"),
        ("headers", pa.array([[{"key": "a", "value": b""}, None]]), "none of them null"),
    ],
)
def test_columns_of_other_types_are_refused(name: str, values: pa.Array, why: str) -> None:
    with pytest.raises(TypeError, match=why):
        from_arrow(pa.table({name: values}))


def test_a_header_needs_a_name() -> None:
    headers = pa.array(
        [[], [{"key": None, "value": b"x"}]], pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    )
    with pytest.raises(ValueError, match="row 1: a header with a name expected, null came"):
        from_arrow(pa.table({"headers": headers}))


def test_timestamps_too_far_apart_are_refused() -> None:
    with pytest.raises(OverflowError, match="64-bit distance"):
        from_arrow(pa.table({"timestamp": [-(2**62) - 2, 2**63 - 1]}))


def numbers(*values: int) -> bytes:
    return b"".join(value.to_bytes(4, "little", signed=True) for value in values)


@pytest.mark.parametrize(
    ("offsets", "data"),
    [((0, 3), b"ab"), ((-1, 1), b"ab"), ((2, 1), b"ab"), ((0, 1), None)],
)
def test_offsets_outside_their_data_are_refused(twin: Any, offsets: tuple[int, ...], data: bytes | None) -> None:
    value = BinaryColumn(None, numbers(*offsets), data)
    encoder = twin.ArrowEncoder(1, None, value, None, -1, None, 0, None, None)
    with pytest.raises(ValueError, match="row 0: Arrow offsets inside their data expected"):
        encoder.next_batch(100)


def test_a_list_that_reaches_beyond_its_items_is_refused(twin: Any) -> None:
    lists = ListColumn(None, numbers(0, 2))
    names = BinaryColumn(None, numbers(0, 1), b"a")
    encoder = twin.ArrowEncoder(1, None, None, None, -1, lists, 1, names, names)
    with pytest.raises(ValueError, match="row 0: Arrow offsets inside their data expected"):
        encoder.next_batch(100)


@pytest.mark.parametrize(
    "columns",
    [
        (BinaryColumn(None, numbers(0, 0), b""), None, None),
        (None, BinaryColumn(b"", numbers(0, 0, 0), b""), None),
        (BinaryColumn(None, numbers(0, 0, 0), b"", 0, 1), None, None),
        (BinaryColumn(None, numbers(0, 0, 0), b"", 0, 0, True), None, None),
        (BinaryColumn(None, numbers(0, 0, 0), b"", 0, -1), None, None),
        (None, None, NumberColumn(None, bytes(15))),
        (None, None, NumberColumn(b"", bytes(16))),
        (None, None, NumberColumn(None, bytes(16), -1)),
        (None, None, NumberColumn(None, bytes(16), 2**61)),
        (BinaryColumn(None, numbers(0, 0, 0), b"", 0, 2**62), None, None),
    ],
)
def test_buffers_too_short_for_their_rows_are_refused(twin: Any, columns: tuple[Any, ...]) -> None:
    key, value, timestamp = columns
    with pytest.raises(ValueError, match="a buffer for all its rows expected"):
        twin.ArrowEncoder(2, key, value, timestamp, -1, None, 0, None, None)
