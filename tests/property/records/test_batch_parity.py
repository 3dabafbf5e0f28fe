"""The twins agree: the same bytes, the same values, and on broken input the same error with the same words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.property.records.strategies import (
    FIELDS,
    HEADERS,
    INT64,
    RECORDS,
    THOROUGH,
    TIMESTAMPS,
    USUAL,
    batches,
    mutated,
)

from ottla.records import CorruptRecord, Record, _native, _pure
from ottla.records.types import BinaryColumn, DecodedColumns, ListColumn, NumberColumn


def outcome(call: Callable[[], Any]) -> Any:
    """What came of a call, in a form that can be compared across the twins."""
    try:
        return repr(call())
    except CorruptRecord as error:
        return type(error), error.code, str(error)
    except (ValueError, OverflowError) as error:
        return type(error)


def same(question: Callable[[Any], Any]) -> Any:
    native, pure = outcome(lambda: question(_native)), outcome(lambda: question(_pure))
    assert native == pure
    return native


def flat(columns: DecodedColumns) -> list[object]:
    parts = [part for item in columns for part in (item if isinstance(item, tuple) else [item])]
    return [part if isinstance(part, int) or part is None else bytes(part) for part in parts]


def arrow(twin: Any, payload: bytes, header: Any, first: int, factor: int) -> list[object]:
    decoder = twin.ArrowDecoder(first, 2**63 - 1, factor, True)
    decoder.add(payload, header)
    return flat(decoder.finish())


@THOROUGH
@given(st.data())
def test_payloads_become_rows_alike(data: st.DataObject) -> None:
    """Several of them, one after the other, whatever room was asked for before."""
    payloads = []
    for records in data.draw(st.lists(st.lists(RECORDS, max_size=12), max_size=4)):
        encoder = _native.RecordEncoder()
        encoder.extend(records)
        payloads.append((encoder.payload(), encoder.record_count))
    room = data.draw(st.tuples(st.integers(0, 40), st.integers(0, 4_000)))
    first, end = data.draw(st.sampled_from([(0, 2**63 - 1), (2, 30), (-(2**63), 5)]))

    def rows(twin: Any) -> list[object]:
        decoder = twin.ArrowDecoder(first, end, 1, True)
        decoder.reserve(*room)
        offset = 0
        for payload, count in payloads:
            header = twin.BatchHeader(record_count=count, base_offset=offset)
            decoder.add(payload, header)
            offset += count
        return flat(decoder.finish())

    same(rows)


@THOROUGH
@given(st.data())
def test_headers_are_read_alike(data: st.DataObject) -> None:
    buffer = b"".join(data.draw(st.lists(batches(max_records=2), max_size=3)))
    if data.draw(st.booleans()):
        buffer = data.draw(mutated(buffer))
    partial = data.draw(st.booleans())
    position = data.draw(st.integers(0, len(buffer) + 2))
    same(lambda twin: twin.scan_headers(buffer, partial))
    same(lambda twin: twin.inspect_batches(buffer, partial))
    same(lambda twin: twin.read_header(buffer, position))
    same(lambda twin: twin.crc32c(buffer))


@THOROUGH
@given(st.data())
def test_records_are_read_alike(data: st.DataObject) -> None:
    encoder = _native.RecordEncoder()
    encoder.extend(data.draw(st.lists(RECORDS, max_size=5)))
    payload = encoder.payload()
    if data.draw(st.integers(0, 3)):
        payload = data.draw(mutated(payload))
    fields = {
        "record_count": encoder.record_count + data.draw(st.sampled_from([0, 0, 0, 0, -1, 1])),
        "base_offset": data.draw(st.sampled_from([0, 5, 2**63 - 1, 2**63 - 4])),
        "base_timestamp": data.draw(st.sampled_from([0, 1_000, 2**63 - 1, -(2**63)])),
        "max_timestamp": 77,
        "last_offset_delta": encoder.record_count - 1,
        "attributes": data.draw(st.sampled_from([0, 0, 8])),
    }
    target = data.draw(st.sampled_from([0, 1_000, 2**62]))
    factor = data.draw(st.sampled_from([1, 1_000]))
    same(lambda twin: twin.decode_records(payload, twin.BatchHeader(**fields)))
    same(lambda twin: twin.check_records(payload, twin.BatchHeader(**fields)))
    limits = data.draw(st.tuples(st.booleans(), TIMESTAMPS, TIMESTAMPS, st.integers(0, 4)))
    same(lambda twin: twin.find_refused(payload, twin.BatchHeader(**fields), *limits))
    same(lambda twin: twin.latest_timestamp(payload, twin.BatchHeader(**fields)))
    same(lambda twin: twin.first_at_or_after(payload, twin.BatchHeader(**fields), target))
    same(lambda twin: arrow(twin, payload, twin.BatchHeader(**fields), 1, factor))


@USUAL
@given(st.binary(max_size=60), st.integers(-1, 9))
def test_noise_is_read_alike(payload: bytes, count: int) -> None:
    same(lambda twin: twin.decode_records(payload, twin.BatchHeader(record_count=count)))
    same(lambda twin: arrow(twin, payload, twin.BatchHeader(record_count=count), 0, 1))


@USUAL
@given(st.lists(st.tuples(INT64, FIELDS, FIELDS, HEADERS, st.integers(-1, 40)), max_size=6))
def test_records_are_written_alike(rows: list[tuple[int, Any, Any, Any, int]]) -> None:
    def build(twin: Any) -> object:
        encoder = twin.RecordEncoder()
        sizes = []
        for timestamp, key, value, headers, delta in rows:
            sizes.append(
                encoder.append(timestamp, key, value, headers)
                if delta < 0
                else encoder.append_at(delta, timestamp, key, value, headers)
            )
        return (
            encoder.payload(),
            sizes,
            encoder.record_count,
            encoder.last_offset_delta,
            encoder.base_timestamp,
            encoder.max_timestamp,
        )

    same(build)


@USUAL
@given(st.lists(RECORDS, max_size=5), st.integers(-3, 3), st.one_of(st.none(), INT64))
def test_records_are_collected_alike(records: list[Record], default: int, base_offset: int | None) -> None:
    def build(twin: Any) -> object:
        encoder = twin.RecordEncoder()
        own = [twin.Record(index, r.timestamp, r.key, r.value, r.headers) for index, r in enumerate(records)]
        encoder.extend(own, default, base_offset)
        return encoder.payload()

    same(build)


@USUAL
@given(st.binary(max_size=100), INT64, st.integers(-(2**31), 2**31 - 1), st.integers(-(2**15), 2**15 - 1), INT64, INT64)
def test_batches_are_framed_and_rewritten_alike(
    payload: bytes, offset: int, number: int, small: int, timestamp: int, producer_id: int
) -> None:
    def build(twin: Any) -> object:
        fields = (offset, number, small, number, timestamp, timestamp, producer_id, small, number, number)
        batch = bytearray(twin.frame_batch(payload, *fields))
        framed = bytes(batch)
        twin.assign_offset(batch, 0, producer_id, number)
        twin.set_log_append_time(batch, 0, offset)
        return framed, bytes(batch), twin.inspect_batches(batch)

    same(build)


@st.composite
def binary_columns(draw: st.DrawFn, rows: int) -> BinaryColumn | None:
    """A column that is right most of the time and sometimes lies about its offsets."""
    if draw(st.booleans()):
        return None
    first = draw(st.integers(0, 3))
    sizes = draw(st.lists(st.integers(0, 5), min_size=first + rows, max_size=first + rows))
    offsets = [0]
    for size in sizes:
        offsets.append(offsets[-1] + size)
    data = bytes(range(offsets[-1]))
    if draw(st.integers(0, 4)) == 0:
        offsets[draw(st.integers(0, len(offsets) - 1))] = draw(st.integers(-2, 40))
    width = draw(st.sampled_from([4, 8]))
    packed = b"".join(offset.to_bytes(width, "little", signed=True) for offset in offsets)
    validity = draw(st.one_of(st.none(), st.binary(min_size=1, max_size=3)))
    return BinaryColumn(validity, packed, data, 0, first, width == 8)


@THOROUGH
@given(st.data())
def test_tables_are_written_alike(data: st.DataObject) -> None:
    rows = data.draw(st.integers(0, 8))
    headers = data.draw(st.integers(0, 6))
    key, value = data.draw(binary_columns(rows)), data.draw(binary_columns(rows))
    name, content = data.draw(binary_columns(headers)), data.draw(binary_columns(headers))
    listed = data.draw(binary_columns(rows))
    lists = None if listed is None else ListColumn(listed.validity, listed.offsets, listed.first_row, listed.is_wide)
    times = data.draw(st.lists(INT64, min_size=rows, max_size=rows))
    packed = b"".join(time.to_bytes(8, "little", signed=True) for time in times)
    timestamp = data.draw(st.sampled_from([None, NumberColumn(None, packed), NumberColumn(b"\x55\x55", packed)]))
    limit = data.draw(st.integers(60, 120))
    # Rarely a row that is not there.
    wanted = data.draw(st.none() | st.lists(st.integers(0 if rows else -1, max(rows - 1, 0)) | st.just(0), max_size=10))
    chosen = None if wanted is None else b"".join(row.to_bytes(8, "little", signed=True) for row in wanted)

    def build(twin: Any) -> object:
        encoder = twin.ArrowEncoder(rows, key, value, timestamp, 5, lists, headers, name, content, chosen)
        made = []
        while (batch := encoder.next_batch(limit)) is not None:
            made.append((bytes(batch.payload), *batch[1:]))
        return made

    same(build)
