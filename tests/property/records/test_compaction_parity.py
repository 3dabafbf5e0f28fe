"""The twins agree on compaction: the same offsets, the same bytes, the same errors."""

from __future__ import annotations

from array import array
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.property.records.strategies import THOROUGH, mutated
from tests.property.records.test_batch_parity import same

from ottla.records import Codec, CorruptRecord, Record, build_batch, crc32c

KEYS = st.one_of(st.none(), st.binary(max_size=3), st.sampled_from([b"key", b"x" * 70]))
VALUES = st.one_of(st.none(), st.binary(max_size=20))
HEADERS = st.lists(st.tuples(st.text(max_size=3), VALUES), max_size=2).map(tuple)
HORIZON_MS = 5_000


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Some batches one after another, with holes between them and in them."""
    offset = 0
    batches: list[bytes] = []
    for _ in range(draw(st.integers(0, 5))):
        records = [
            Record(offset + number, draw(st.integers(0, 20_000)), draw(KEYS), draw(VALUES), draw(HEADERS))
            for number in draw(st.lists(st.integers(0, 9), unique=True, max_size=5).map(sorted))
        ]
        has_producer = draw(st.booleans())
        batch = build_batch(
            records,
            base_offset=offset,
            keep_offsets=True,
            last_offset_delta=9,
            log_append_time=draw(st.sampled_from([None, None, 777])),
            codec=draw(st.sampled_from([Codec.NONE, Codec.NONE, Codec.NONE, Codec.GZIP])),
            producer_id=3 if has_producer else -1,
            producer_epoch=0 if has_producer else -1,
            base_sequence=offset if has_producer else -1,
            transactional=draw(st.sampled_from([False, False, False, has_producer])),
        )
        if draw(st.booleans()):
            batch = with_crc(batch, draw(st.sampled_from([0x40, 0x40, 0x20])))
        if draw(st.integers(0, 7)) == 0:
            batch = with_crc(batch[:21] + draw(mutated(batch[21:]))[: len(batch) - 21].ljust(len(batch) - 21, b"\1"))
        batches.append(batch)
        offset += draw(st.integers(10, 12))
    return b"".join(batches)


def with_crc(batch: bytes, attributes: int = 0) -> bytes:
    """With more attributes, a delete horizon or the mark of a control batch, and a CRC that is right again."""
    changed = bytearray(batch)
    changed[22] |= attributes
    changed[17:21] = crc32c(changed[21:]).to_bytes(4, "big")
    return bytes(changed)


def mapped(twin: Any, buffer: bytes, start: int, limit: int) -> tuple[Any, list[object]]:
    offset_map = twin.OffsetMap(limit + 3, limit, bytes(range(16)))
    position, end = offset_map.add_batches(buffer, 0, start)
    return offset_map, [position, end, len(offset_map), offset_map.latest_offset]


def filtered(twin: Any, buffer: bytes, limit: int, now_ms: int, kept: list[int]) -> list[object]:
    """All runs over a buffer; what a caller would have to decompress is passed over."""
    offset_map, seen = mapped(twin, buffer, 0, limit)
    seen += [offset_map.get(key) for key in (b"", b"key", b"x" * 70)]
    batch_filter = twin.BatchFilter(
        offset_map, now_ms, HORIZON_MS, offset_map.latest_offset + 1, array("q", sorted(kept)).tobytes()
    )
    position = 0
    while position < len(buffer):
        output, position, end = batch_filter.filter_batches(buffer, position)
        seen += [output, position, end]
        if position + 61 > len(buffer) or end.name == "END":
            break
        header = twin.read_header(buffer, position)
        payload = buffer[position + 61 : position + header.size_bytes]
        seen.append(batch_filter.keeps_empty(header))
        try:
            seen.append(batch_filter.filter_payload(payload, header))
            seen.append(offset_map.add_payload(payload, header, 0))
        except CorruptRecord as error:
            seen.append(str(error))
        position += header.size_bytes
    return seen


@THOROUGH
@given(st.data())
def test_compaction_is_the_same(data: st.DataObject) -> None:
    buffer = data.draw(logs())
    if data.draw(st.integers(0, 3)) == 0:
        buffer = data.draw(mutated(buffer))
    start = data.draw(st.integers(0, 30))
    limit = data.draw(st.sampled_from([1, 3, 40]))
    now_ms = data.draw(st.sampled_from([0, 10_000, 30_000]))
    kept = data.draw(st.lists(st.sampled_from([9, 19, 20, 21, 29, 30]), unique=True))
    same(lambda twin: mapped(twin, buffer, start, limit)[1])
    same(lambda twin: filtered(twin, buffer, limit, now_ms, kept))


def test_a_bad_batch_after_a_good_one_is_told_alike() -> None:
    good = build_batch([Record(number, 0, b"key", b"value") for number in range(4)], base_offset=0)
    bad = (-1).to_bytes(8, "big", signed=True) + good[8:]
    same(lambda twin: mapped(twin, good + bad, 0, 40)[1])
    same(lambda twin: filtered(twin, good + bad, 40, 0, []))


@given(st.integers(-2, 3), st.integers(-2, 3), st.integers(15, 17))
def test_maps_are_refused_alike(slots: int, keys: int, seed_bytes: int) -> None:
    same(lambda twin: len(twin.OffsetMap(slots, keys, bytes(seed_bytes))))


@given(st.dictionaries(st.binary(max_size=20), st.integers(0, 2**40), min_size=1, max_size=60))
def test_the_map_finds_what_was_put_in(offsets: dict[bytes, int]) -> None:
    """With hardly a slot to spare, so that keys have to give way to one another."""
    keys = list(offsets)
    batch = build_batch([Record(0, 0, key, b"") for key in keys])

    def found(twin: Any) -> list[int]:
        offset_map = twin.OffsetMap(len(keys) + 1, len(keys), bytes(16))
        offset_map.add_batches(batch, 0, 0)
        return [*(offset_map.get(key) for key in keys), offset_map.get(b"z" * 30)]

    assert same(found) == repr([*range(len(keys)), -1])
