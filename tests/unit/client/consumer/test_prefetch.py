"""What is buffered, in which order it is handed out, and what the loop can do about it meanwhile."""

from __future__ import annotations

import pytest
from tests.unit.client.consumer.stored import batch, chunk

from ottla.client.consumer.positions import PartitionState, Position
from ottla.client.consumer.prefetch import Prefetch
from ottla.client.consumer.values import NO_EPOCH
from ottla.client.errors import UndecodableRecord


class Desk:
    """A prefetch with two partitions, and what was said about room."""

    def __init__(self, limit_bytes: int = 1_000_000) -> None:
        self.room = 0
        self.prefetch = Prefetch(limit_bytes, self._room)
        self.states = [PartitionState("orders", number) for number in range(2)]
        for state in self.states:
            state.stand_at(Position(0))

    def _room(self) -> None:
        self.room += 1

    def add(self, number: int, *values: bytes) -> None:
        state = self.states[number]
        data = batch(values, state.fetch_offset)
        made = chunk(data, state.fetch_offset, partition=number)
        self.prefetch.add(state, made, NO_EPOCH)

    def take(self, limit: int = 100) -> list[tuple[int, bytes | None]]:
        return [(record.partition, record.value) for record in self.prefetch.take(limit)]


def test_records_come_in_the_order_of_arrival() -> None:
    desk = Desk()
    desk.add(0, b"a", b"b")
    desk.add(1, b"x")
    desk.add(0, b"c")
    assert desk.take(3) == [(0, b"a"), (0, b"b"), (1, b"x")]
    assert desk.take() == [(0, b"c")]
    assert desk.take() == []
    assert [state.next_offset for state in desk.states] == [3, 1]


def test_bytes_are_counted_until_a_chunk_is_left() -> None:
    desk = Desk()
    desk.add(0, b"a", b"b")
    whole = desk.prefetch.buffered_bytes
    assert whole == desk.states[0].buffered_bytes() > 0
    desk.take(1)
    assert desk.prefetch.buffered_bytes == whole
    desk.take()
    desk.take()
    assert desk.prefetch.buffered_bytes == desk.states[0].buffered_bytes() == 0
    assert (desk.prefetch.consumed_records, desk.prefetch.consumed_bytes) == (2, whole)


def test_what_was_taken_is_settled_when_the_user_comes_back() -> None:
    desk = Desk()
    desk.add(0, b"a", b"b")
    desk.add(0, b"c")
    state = desk.states[0]
    assert len(desk.take(1)) == 1
    assert (state.next_offset, state.settled_offset) == (1, 0)
    assert len(desk.take(2)) == 2
    assert (state.next_offset, state.settled_offset) == (3, 1)
    assert desk.take() == []
    assert (state.next_offset, state.settled_offset) == (3, 3)


def test_a_seek_drops_what_is_buffered() -> None:
    desk = Desk()
    desk.add(0, b"a", b"b")
    desk.add(1, b"x")
    desk.add(0, b"c")
    assert desk.take(1) == [(0, b"a")]
    desk.prefetch.drop(desk.states[0])
    desk.states[0].stand_at(Position(50))
    assert desk.take() == [(1, b"x")]
    assert desk.states[0].next_offset == 50
    assert desk.take() == []
    assert desk.prefetch.buffered_bytes == 0


def test_pause_keeps_what_is_buffered_and_resume_hands_it_out_first() -> None:
    desk = Desk()
    desk.add(0, b"a", b"b")
    desk.add(0, b"c")
    desk.add(1, b"x")
    assert desk.take(1) == [(0, b"a")]
    desk.states[0].is_paused = True
    desk.prefetch.hold(desk.states[0])
    assert desk.take() == [(1, b"x")]
    desk.add(0, b"d")
    desk.add(1, b"y")
    assert desk.take(0) == []
    desk.states[0].is_paused = False
    desk.prefetch.resume(desk.states[0])
    assert desk.take() == [(0, b"b"), (0, b"c"), (0, b"d"), (1, b"y")]


def test_a_partition_that_is_paused_keeps_its_bytes_and_no_others() -> None:
    desk = Desk()
    data = batch([b"a"])
    answer = memoryview(data + bytes(1_000_000))
    state = desk.states[0]
    made = type(chunk(data))("orders", 0, 0, 1, answer[: len(data)], chunk(data).entries)
    desk.prefetch.add(state, made, NO_EPOCH)
    state.is_paused = True
    desk.prefetch.hold(state)
    assert len(made.data.obj) == len(data)


def test_an_interruption_stops_takers_until_it_is_over() -> None:
    desk = Desk()
    desk.add(0, b"a", b"b")
    desk.add(1, b"x")
    assert desk.take(1) == [(0, b"a")]
    desk.prefetch.interrupt()
    assert desk.take() == []
    desk.add(0, b"c")
    seen = [desk.prefetch.has_ready]
    assert desk.take() == []
    desk.prefetch.proceed()
    seen.append(desk.prefetch.has_ready)
    assert seen == [False, True]
    assert desk.take() == [(0, b"b"), (1, b"x"), (0, b"c")]


def test_an_interruption_does_not_resume_what_is_paused() -> None:
    desk = Desk()
    desk.add(0, b"a", b"b")
    assert desk.take(1) == [(0, b"a")]
    desk.states[0].is_paused = True
    desk.prefetch.hold(desk.states[0])
    desk.prefetch.interrupt()
    assert desk.take() == []
    desk.prefetch.proceed()
    assert desk.take() == []
    desk.states[0].is_paused = False
    desk.prefetch.resume(desk.states[0])
    assert desk.take() == [(0, b"b")]


def test_an_error_comes_after_the_records_before_it_and_until_a_seek() -> None:
    def decode(topic: str, data: bytes) -> int:
        return int(data)

    desk = Desk()
    state = desk.states[0]
    made = chunk(batch([b"1", b"x", b"3"]), partition=0, decode_value=decode)
    desk.prefetch.add(state, made, NO_EPOCH)
    assert [record.value for record in desk.prefetch.take(100)] == [1]
    for _ in range(2):
        with pytest.raises(UndecodableRecord):
            desk.prefetch.take(100)
    desk.prefetch.drop(state)
    state.stand_at(Position(2))
    assert desk.take() == []


def test_fetches_that_wait_for_room_are_told_when_half_of_it_is_free() -> None:
    desk = Desk(limit_bytes=250)
    for value in (b"a", b"b", b"c"):
        desk.add(0, value)
    desk.prefetch.want_room()
    desk.take(1)
    desk.take(1)
    assert desk.room == 0
    desk.take(1)
    assert desk.room == 1
    desk.take(1)
    assert desk.room == 1


def test_borrowed_chunks_are_consumed_or_come_back_in_their_order() -> None:
    desk = Desk()
    desk.add(0, b"a", b"b")
    desk.add(1, b"x")
    first, second = desk.prefetch.borrow(), desk.prefetch.borrow()
    assert first is not None
    assert second is not None
    assert desk.prefetch.borrow() is None
    assert [state.next_offset for state in desk.states] == [0, 0]
    desk.prefetch.give_back([first, second])
    assert desk.take(1) == [(0, b"a")]
    again = desk.prefetch.borrow()
    assert again == first
    assert desk.prefetch.consumed(first, 2)
    assert desk.states[0].next_offset == 2
    assert desk.take() == [(1, b"x")]


def test_who_takes_records_has_back_what_was_lent() -> None:
    """What the borrower does from then on has no effect."""
    desk = Desk()
    for value in (b"a", b"b", b"c"):
        desk.add(0, value)
    first, second = desk.prefetch.borrow(), desk.prefetch.borrow()
    assert first is not None
    assert second is not None
    assert desk.take(1) == [(0, b"a")]
    assert desk.prefetch.consumed(second, 2)
    desk.prefetch.give_back([first, second])
    assert desk.take() == [(0, b"b"), (0, b"c")]
    assert desk.take() == []
    assert desk.prefetch.buffered_bytes == 0


def test_chunks_that_were_lent_are_resumed_in_their_order() -> None:
    desk = Desk()
    for value in (b"a", b"b"):
        desk.add(0, value)
    first = desk.prefetch.borrow()
    assert first is not None
    desk.prefetch.hold(desk.states[0])
    assert desk.prefetch.borrow() is None
    desk.prefetch.give_back([first])
    assert desk.take() == []
    desk.prefetch.resume(desk.states[0])
    assert desk.take() == [(0, b"a"), (0, b"b")]


def test_what_is_forgotten_is_fetched_again_and_settled_is_what_was() -> None:
    desk = Desk()
    desk.prefetch.want_room()
    desk.add(0, b"a", b"b")
    desk.add(0, b"c")
    state = desk.states[0]
    desk.take(1)
    version = state.version
    desk.prefetch.forget(state)
    assert desk.prefetch.buffered_bytes == state.buffered_bytes() == 0
    assert (state.settled_offset, state.next_offset, state.fetch_offset) == (0, 1, 1)
    assert state.version > version
    assert desk.room == 1
    desk.add(0, b"b")
    assert desk.take() == [(0, b"b")]
    assert state.settled_offset == 1
