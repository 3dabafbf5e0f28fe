"""Offset and time index: lookups, and the bytes on disk."""

import struct

import pytest

from ottla.log.offset_index import CorruptIndex, OffsetIndex
from ottla.log.time_index import TimeIndex


def offset_index() -> OffsetIndex:
    index = OffsetIndex()
    for relative_offset, position in ((9, 100), (19, 250), (29, 400)):
        index.append(relative_offset, position)
    return index


@pytest.mark.parametrize(
    ("relative_offset", "position"), [(0, 0), (8, 0), (9, 100), (18, 100), (19, 250), (29, 400), (1000, 400)]
)
def test_a_lookup_never_goes_past_the_offset(relative_offset: int, position: int) -> None:
    assert offset_index().lookup(relative_offset) == position
    assert offset_index().lookup_around(relative_offset)[0] == position


@pytest.mark.parametrize(("relative_offset", "position"), [(0, 100), (8, 100), (9, 250), (28, 400), (29, -1), (99, -1)])
def test_the_next_known_position_is_where_the_offset_is_at_the_latest(relative_offset: int, position: int) -> None:
    assert offset_index().lookup_around(relative_offset)[1] == position


@pytest.mark.parametrize(("limit", "position"), [(0, 0), (99, 0), (100, 100), (399, 250), (5000, 400)])
def test_the_last_position_within_a_limit(limit: int, position: int) -> None:
    assert offset_index().last_position_within(limit) == position


def test_offset_entries_are_big_endian_pairs() -> None:
    data = offset_index().to_bytes()
    assert data == struct.pack(">6i", 9, 100, 19, 250, 29, 400)
    again = OffsetIndex.from_bytes(data, 500)
    assert (again.relative_offsets, again.positions) == (offset_index().relative_offsets, offset_index().positions)


@pytest.mark.parametrize(
    "data",
    [
        b"\0" * 7,
        struct.pack(">2i", 9, 0),
        struct.pack(">2i", 9, 500),
        struct.pack(">4i", 9, 300, 19, 100),
        struct.pack(">4i", 19, 100, 9, 300),
        struct.pack(">4i", 9, 100, 0, 0),
        struct.pack(">i", 9) + struct.pack(">I", 2**31),
        struct.pack(">I", 2**31) + struct.pack(">i", 100),
    ],
)
def test_an_offset_index_that_cannot_be_right_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptIndex):
        OffsetIndex.from_bytes(data, 500)


def time_index() -> TimeIndex:
    index = TimeIndex()
    for timestamp, relative_offset in ((1000, 9), (2**40, 19), (2**40 + 5, 29)):
        index.maybe_append(timestamp, relative_offset)
    return index


def test_only_larger_timestamps_get_an_entry() -> None:
    index = TimeIndex()
    index.maybe_append(-1, 0)
    index.maybe_append(5, 1)
    index.maybe_append(5, 2)
    index.maybe_append(4, 3)
    assert list(index.timestamps) == [5]


@pytest.mark.parametrize(("timestamp", "relative"), [(0, 0), (999, 0), (1000, 9), (2**40, 19), (2**50, 29)])
def test_a_time_lookup_never_goes_past_the_first_candidate(timestamp: int, relative: int) -> None:
    assert time_index().lookup(timestamp) == relative


def test_time_entries_are_twelve_bytes() -> None:
    data = time_index().to_bytes()
    assert data == struct.pack(">qiqiqi", 1000, 9, 2**40, 19, 2**40 + 5, 29)
    again = TimeIndex.from_bytes(data)
    assert (again.timestamps, again.relative_offsets) == (time_index().timestamps, time_index().relative_offsets)


@pytest.mark.parametrize(
    "data",
    [b"\0" * 13, struct.pack(">qi", -1, 0), struct.pack(">qiqi", 5, 0, 4, 1), struct.pack(">qiqi", 5, 9, 6, 1)],
)
def test_a_time_index_that_cannot_be_right_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptIndex):
        TimeIndex.from_bytes(data)
