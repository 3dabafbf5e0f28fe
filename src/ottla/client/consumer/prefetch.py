"""What was fetched and not handed out yet: bounded in bytes, handed out in the order of arrival.

Two threads may be here: the loop's, which adds, holds, resumes and drops, and that of whoever takes records. The lock
is held where chunks change their place, and not while records are made of them: the taker works on one chunk alone, and
sees its mode before every record. `interrupt` makes takers find nothing until `proceed`, so that they come to the loop,
where a rebalance or an error waits for them.

A chunk is in one place: `_ready`, `_held` (paused, or in doubt), `_current` (records are handed out from it), or
`_lent` to whoever borrowed it. The chunks of a partition never change their order. So whoever takes records while some
are lent has them back first: what the borrower does with them from then on has no effect (`recalls` tells it).
"""

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ottla.client.consumer._twin import Chunk, Record
from ottla.client.consumer.positions import PartitionState, Position
from ottla.client.consumer.values import ChunkMode
from ottla.client.errors import OttlaError

Lent = tuple[PartitionState, Chunk]

# To look a member up in its enum costs more than to compare with it.
_READY, _HELD, _DROPPED = ChunkMode.READY, ChunkMode.HELD, ChunkMode.DROPPED


class Prefetch:
    """`on_room` is called, in the thread of the taker, when fetches that waited for room may go on."""

    def __init__(
        self,
        limit_bytes: int,
        on_room: Callable[[], None],
        lock: AbstractContextManager[object] | None = None,
    ) -> None:
        self.limit_bytes = limit_bytes
        self._on_room = on_room
        self._lock = lock or nullcontext()
        self._ready: deque[Lent] = deque()
        self._held: deque[Lent] = deque()
        self._current: Lent | None = None
        self._lent: dict[int, Lent] = {}
        self.recalls = 0
        self._touched: list[Chunk] = []
        self.is_interrupted = False
        self._is_room_wanted = False
        self.buffered_bytes = 0
        self.consumed_bytes = 0
        self.consumed_records = 0
        self.returns = 0

    # The loop's side

    @property
    def has_ready(self) -> bool:
        """Whether a taker might find something; it is not certain, since chunks may turn out to be empty."""
        with self._lock:
            current = self._current
            has_current = current is not None and current[1].mode is _READY and not _is_spent(current[1])
            return not self.is_interrupted and (has_current or bool(self._ready))

    def add(self, state: PartitionState, chunk: Chunk, epoch: int) -> None:
        """A fetch brought this for a partition, whose last record has that epoch."""
        with self._lock:
            state.extend(chunk, epoch)
            self.buffered_bytes += chunk.size_bytes
            if state.is_paused:
                chunk.mode = _HELD
                chunk.detach()
            self._ready.append((state, chunk))

    def drop(self, state: PartitionState) -> None:
        """Forget all that is buffered of a partition, wherever the taker is with it."""
        with self._lock:
            for chunk in state.chunks:
                self.buffered_bytes -= chunk.release()
            state.chunks.clear()
            state.lead = None

    def forget(self, state: PartitionState, first: Chunk | None = None) -> None:
        """Give up what is buffered of a partition and not handed out, from that chunk on, to be fetched again. Where
        the user stands, and what it is done with, stays what it was."""
        with self._lock:
            if first is None:
                forgotten, place = list(state.chunks), Position(state.next_offset, state.next_epoch)
            elif first.mode is _DROPPED:
                return
            else:
                chunks = list(state.chunks)
                forgotten, place = chunks[chunks.index(first) :], Position(first.next_offset, first.next_epoch)
            state.fetch_again(place, forgotten)
            for chunk in forgotten:
                self._lent.pop(id(chunk), None)
                self.buffered_bytes -= chunk.release()
            self._tell_of_room()

    def cut(self, state: PartitionState, position: Position) -> None:
        """The log was cut there, below what was handed out, and is read on from there. What the user is done with ends
        there as well. What it still works on is done when it comes back, and not before: the chunk that this was in
        would tell of offsets that are no more, so another one, without records, stands for it."""
        with self._lock:
            settled_offset = state.settled_offset
            state.stand_at(position)
            if settled_offset < position.offset:
                in_work = Chunk(
                    state.topic, state.partition, position.offset, position.offset, memoryview(b""), (), position.epoch
                )
                in_work.settled_offset = settled_offset
                state.lead = in_work
                self._touched.append(in_work)

    def hold(self, state: PartitionState) -> None:
        """Hand out nothing of a partition for now. What may stay long must not keep whole answers in memory."""
        with self._lock:
            state.hold()
            for chunk in state.chunks:
                chunk.detach()

    def resume(self, state: PartitionState) -> None:
        """Hand it out again, before what came later."""
        with self._lock:
            state.resume()
            waiting = [pair for pair in self._held if pair[0] is state]
            # Those that were lent came here when they were given back, which may have been later.
            waiting.sort(key=_offset_of)
            self._held = deque(pair for pair in self._held if pair[0] is not state)
            self._ready.extendleft(reversed(waiting))

    def want_room(self) -> None:
        """A fetch was not sent for lack of room."""
        self._is_room_wanted = True

    def interrupt(self) -> None:
        with self._lock:
            self.is_interrupted = True
            if self._current is not None:
                self._current[1].mode = _HELD

    def proceed(self) -> None:
        with self._lock:
            self.is_interrupted = False
            if self._current is not None:
                self._current[0].resume()

    # The taker's side

    def came_back(self) -> None:
        """The user asks for more, and so is done with everything that was handed out before."""
        self.returns += 1
        touched, self._touched = self._touched, []
        for chunk in touched:
            chunk.settle()

    def next_chunk(self) -> Chunk | None:
        """The chunk to take from now; None when nothing is ready. The one before is left for good, or while it is
        held back."""
        with self._lock:
            if self._lent:
                self._recall()
            pair = self._next()
            if pair is None:
                return None
            self._current = pair
            pair[0].take_lead(pair[1])
            self._touched.append(pair[1])
            return pair[1]

    def take(self, max_records: int) -> list[Record[Any, Any]]:
        """Up to that many records that are buffered already; an empty list when none is, or a call on the loop has
        to come first. Raises what is wrong with the next record, once those before it were taken."""
        self.came_back()
        records: list[Record[Any, Any]] = []
        while len(records) < max_records and (chunk := self.next_chunk()) is not None:
            try:
                chunk.take(records, max_records - len(records))
            except OttlaError:
                # What is wrong is found again by the next take, which begins there.
                if not records:
                    raise
                break
        return records

    def take_from(self, chunk: Chunk, max_records: int) -> list[Record[Any, Any]]:
        """Up to that many records of the chunk that `next_chunk` gave."""
        records: list[Record[Any, Any]] = []
        try:
            chunk.take(records, max_records)
        except OttlaError:
            if not records:
                raise
        return records

    def borrow(self) -> Lent | None:
        """The next chunk that is ready, to be worked on beside others. It ends in `consumed` or `give_back`."""
        with self._lock:
            pair = self._next()
            self._current = None
            if pair is not None:
                self._lent[id(pair[1])] = pair
            return pair

    def give_back(self, lent: Iterable[Lent]) -> None:
        """Put chunks that were borrowed, and of which nothing more was consumed, back to where they were."""
        with self._lock:
            for pair in reversed(list(lent)):
                if self._lent.pop(id(pair[1]), None) is not None and pair[1].mode is not _DROPPED:
                    self._ready.appendleft(pair)

    def consumed(self, pair: Lent, next_offset: int) -> bool:
        """The user gets the records of a borrowed chunk before `next_offset`; whether that was all of it."""
        state, chunk = pair
        with self._lock:
            if id(chunk) not in self._lent:
                return True
            if chunk.mode is _DROPPED:
                del self._lent[id(chunk)]
                return True
            state.take_lead(chunk)
            chunk.move_to(next_offset)
            self._touched.append(chunk)
            if not _is_spent(chunk):
                return False
            del self._lent[id(chunk)]
            self._retire(chunk)
            return True

    @property
    def progress(self) -> tuple[int, int, int]:
        """Changes whenever the user came back for more. Safe from any thread."""
        current = self._current
        return self.returns, id(current), 0 if current is None else current[1].next_offset

    # With the lock held

    def _recall(self) -> None:
        self._ready.extendleft(reversed(list(self._lent.values())))
        self._lent.clear()
        self.recalls += 1

    def _next(self) -> Lent | None:
        current, self._current = self._current, None
        if current is not None:
            if self.is_interrupted and current[0].may_be_read:
                # It was held back only to interrupt the taker.
                current[1].mode = _READY
            self._ready.appendleft(current)
        while self._ready and not self.is_interrupted:
            pair = self._ready.popleft()
            mode = pair[1].mode
            if mode is _HELD:
                self._held.append(pair)
            elif mode is _READY and _is_spent(pair[1]):
                self._retire(pair[1])
            elif mode is _READY:
                return pair
        return None

    def _retire(self, chunk: Chunk) -> None:
        for entry in chunk.entries:
            self.consumed_records += entry.header.record_count
        size_bytes = chunk.release()
        self.buffered_bytes -= size_bytes
        self.consumed_bytes += size_bytes
        self._tell_of_room()

    def _tell_of_room(self) -> None:
        if self._is_room_wanted and self.buffered_bytes * 2 < self.limit_bytes:
            self._is_room_wanted = False
            self._on_room()


def _offset_of(pair: Lent) -> int:
    return pair[1].next_offset


def _is_spent(chunk: Chunk) -> bool:
    """Whether everything was handed out; what is damaged stays until it is dropped."""
    return chunk.next_offset >= chunk.end_offset and chunk.damage is None
