"""Both twins hand out the same records, from any log, whatever is taken in which steps."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.examples import examples
from tests.unit.client.consumer.stored import chunk

from ottla.client.consumer import _native, _pure
from ottla.client.errors import OttlaError
from ottla.records import Codec, Record, build_batch

RECORDS = st.lists(
    st.builds(
        Record,
        timestamp=st.integers(0, 2**40),
        key=st.none() | st.binary(max_size=6),
        value=st.none() | st.binary(max_size=40),
        headers=st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2).map(tuple),
    ),
    max_size=6,
)


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Batches of any codec, with gaps between them and tails that compaction left."""
    parts = []
    offset = draw(st.integers(0, 5))
    for records in draw(st.lists(RECORDS, max_size=5)):
        tail = draw(st.integers(0, 2))
        delta = max(len(records) - 1, 0) + tail
        codec = draw(st.sampled_from(list(Codec)))
        parts.append(build_batch(records, base_offset=offset, leader_epoch=1, codec=codec, last_offset_delta=delta))
        offset += delta + 1 + draw(st.integers(0, 2))
    data = b"".join(parts)
    cut = draw(st.integers(0, 80))
    return data[: len(data) - cut] if draw(st.booleans()) else data


def story(twin: Any, data: bytes, wanted_offset: int, steps: list[int]) -> list[object]:
    """What is seen of a chunk, step by step."""
    read = chunk(data, wanted_offset, twin=twin)
    seen: list[object] = [read.end_offset]
    for step in steps:
        records: list[Any] = []
        try:
            read.take(records, step)
        except OttlaError as error:
            seen.append(str(error))
        seen.append([repr(record) for record in records])
        seen.append((read.next_offset, read.next_epoch, read.settled_offset))
        if step % 2:
            read.settle()
    iterator = twin.RecordIterator(iter([read, None]).__next__)
    try:
        seen.append([(repr(record), record.headers, record.leader_epoch) for record in iterator])
    except OttlaError as error:
        seen.append(str(error))
    seen.append((read.next_offset, read.settled_offset))
    return seen


@settings(deadline=None, max_examples=examples(40))
@given(logs(), st.integers(0, 20), st.lists(st.integers(0, 4), max_size=6))
def test_the_twins_tell_the_same_story(data: bytes, wanted_offset: int, steps: list[int]) -> None:
    assert story(_native, data, wanted_offset, steps) == story(_pure, data, wanted_offset, steps)


@settings(deadline=None, max_examples=examples(40))
@given(logs(), st.integers(0, 400), st.integers(1, 255))
def test_damage_is_a_typed_error_or_no_difference(data: bytes, place: int, change: int) -> None:
    damaged = bytearray(data)
    if damaged:
        damaged[place % len(damaged)] ^= change
    stories = [story(twin, bytes(damaged), 0, [100, 100]) for twin in (_native, _pure)]
    assert stories[0] == stories[1]
