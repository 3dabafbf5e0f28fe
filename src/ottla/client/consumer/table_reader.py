"""From the prefetch to tables: chunks are borrowed, decoded by workers, and consumed when their rows are handed out.

What must stay true:
- A position moves when a table leaves, and not before. So a table that could not be made, a call that was cancelled,
  and what was decoded ahead of the user and never asked for, are all read again.
- One reader at a time has chunks and bounds what is fetched. A loop over tables that was left is closed at some later
  time, so nobody waits for that: whoever reads otherwise, or other tables, closes the one before (`Core.reader`).
- What lies behind the ends keeps no room: it is forgotten, and fetched again by whoever wants it.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from ottla.client.consumer.columns import Decoder, Piece, Shape, Slice, decode, decoded
from ottla.client.consumer.core import Core
from ottla.client.consumer.prefetch import Lent
from ottla.client.consumer.values import ChunkMode
from ottla.client.errors import OttlaError
from ottla.client.types import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

# Whole tables are worth larger answers than single records are.
_PARTITION_FETCH_BYTES = 8 * 1024 * 1024
# A chunk is decoded in pieces: its batches may be compressed, and become many times as large.
_PIECE_BYTES = 8 * 1024 * 1024
# While the user works on a table, workers decode this many pieces for the next one.
_PIECES_AHEAD = 2


class Part(NamedTuple):
    """Rows of a borrowed chunk, and the offset behind them."""

    lent: Lent
    rows: "pa.RecordBatch"
    next_offset: int


class Job(NamedTuple):
    """A slice of a borrowed chunk that a worker decodes, up to `end`. The rest of the slice is decoded after it."""

    lent: Lent
    piece: Slice
    end: int | None
    result: "asyncio.Future[Piece]"


class TableReader:
    """`ends` bounds what is read of partitions, and what is fetched of them; without it there is no end."""

    def __init__(
        self,
        core: Core,
        decoder: Decoder | None,
        max_rows: int | None,
        max_bytes: int,
        shape: Shape,
        ends: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        self._core = core
        self._decoder = decoder
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self._shape = shape
        self._ends = ends
        self._jobs: deque[Job] = deque()
        self._rest: Part | None = None
        self._recalls = core.prefetch.recalls
        self._begin()

    def _begin(self) -> None:
        core = self._core
        if core.reader is self:
            return
        core.read_records()
        core.reader = self
        core.fetcher.partition_max_bytes = max(core.fetcher.partition_max_bytes, _PARTITION_FETCH_BYTES)
        if self._ends is not None:
            for state in core.assignment:
                state.fetch_end = self._end_of(state.topic_partition)

    def close(self) -> None:
        """Give back what was not handed out. May be called twice, and by others than the loop over the tables."""
        self._abandon([])
        core = self._core
        if core.reader is not self:
            return
        core.reader = None
        core.fetcher.partition_max_bytes = core.config.max_partition_fetch_bytes
        for state in core.assignment:
            state.fetch_end = None
        core.supply.kick()
        core.attention.wake()

    def _end_of(self, partition: TopicPartition) -> int | None:
        """Where reading ends; None for nowhere, and the start for partitions that were not asked for."""
        return None if self._ends is None else self._ends.get(partition, 0)

    def _abandon(self, parts: list[Part]) -> None:
        """Give back the chunks of these parts and all that were borrowed after them, in their order."""
        lent = [part.lent for part in parts]
        if self._rest is not None:
            lent.append(self._rest.lent)
        for job in self._jobs:
            lent.append(job.lent)
            job.result.add_done_callback(_look_away)
        self._jobs.clear()
        self._rest = None
        # The rest of a chunk that was cut has the same chunk as the part before it.
        self._core.prefetch.give_back({id(pair): pair for pair in lent}.values())

    def is_complete(self) -> bool:
        """Whether every partition that has an end was read up to it."""
        if self._ends is None:
            return False
        states = ((self._core.assignment.get(partition), end) for partition, end in self._ends.items())
        return all(state is None or state.next_offset >= end for state, end in states)

    def empty_table(self) -> "pa.Table":
        import pyarrow as pa

        piece = Slice("", 0, 0, memoryview(b""), (), False)
        rows = decode(piece, None, self._shape, _PIECE_BYTES).rows
        return decoded(pa.Table.from_batches([rows]), self._decoder)

    async def next_table(self, timeout: float | None) -> "pa.Table | None":
        """The next rows, as soon as there are any; None when none came in time, or the end was reached."""
        import pyarrow as pa

        core = self._core
        self._begin()
        deadline = None if timeout is None else core.clock.monotonic() + timeout
        parts = await self._first_part(deadline)
        if not parts:
            return None
        try:
            await self._fill_up(parts)
            self._cut(parts)
            table = pa.Table.from_batches([part.rows for part in parts])
            if self._decoder is not None:
                loop = asyncio.get_running_loop()
                table = await loop.run_in_executor(None, decoded, table, self._decoder)
        except BaseException:
            self._abandon(parts)
            raise
        for part, following in zip(parts, [*parts[1:], None], strict=True):
            # Of several parts of a chunk the last one says how far it was consumed.
            if following is None or following.lent is not part.lent:
                self._consume(part)
        self._decode_ahead()
        return table

    async def _first_part(self, deadline: float | None) -> list[Part]:
        """Wait for rows; none in time, or behind the end, is an empty list."""
        core = self._core
        while True:
            await core.attend()
            core.prefetch.came_back()
            part = await self._next_part()
            if part is not None:
                if part.rows.num_rows:
                    return [part]
                self._consume(part)
                continue
            left = None if deadline is None else deadline - core.clock.monotonic()
            if self.is_complete() or (left is not None and left <= 0):
                return []
            await core.wait(left)

    async def _fill_up(self, parts: list[Part]) -> None:
        """Add what is ready to the first part; one that is too large for this table comes first in the next one."""
        rows, size_bytes = parts[0].rows.num_rows, parts[0].rows.nbytes
        while size_bytes < self._max_bytes and (self._max_rows is None or rows < self._max_rows):
            part = await self._next_part()
            if part is None:
                return
            rows, size_bytes = rows + part.rows.num_rows, size_bytes + part.rows.nbytes
            if size_bytes > self._max_bytes:
                self._rest = part
                return
            parts.append(part)

    def _cut(self, parts: list[Part]) -> None:
        """What is more than `max_rows` comes first in the next table."""
        if self._max_rows is None:
            return
        last = parts.pop()
        wanted = self._max_rows - sum(part.rows.num_rows for part in parts)
        if last.rows.num_rows > wanted:
            self._rest = last._replace(rows=last.rows.slice(wanted))
            last = Part(last.lent, last.rows.slice(0, wanted), self._rest.rows.column("offset")[0].as_py())
        parts.append(last)

    def _consume(self, part: Part) -> None:
        is_spent = self._core.prefetch.consumed(part.lent, part.next_offset)
        if is_spent or (self._rest is not None and self._rest.lent is part.lent):
            return
        is_worked_on = any(job.lent is part.lent for job in self._jobs)
        if not is_worked_on and not self._forgot(part.lent):
            self._core.prefetch.give_back([part.lent])

    async def _next_part(self) -> Part | None:
        """The rows that come next; None when no chunk is ready."""
        if self._recalls != self._core.prefetch.recalls:
            self._recalls = self._core.prefetch.recalls
            self._abandon([])
        if self._rest is not None:
            if self._rest.lent[1].mode is ChunkMode.READY:
                rest, self._rest = self._rest, None
                return rest
            self._abandon([])
        while True:
            self._decode_ahead()
            if not self._jobs:
                return None
            job = self._jobs[0]
            chunk = job.lent[1]
            try:
                rows, entry_count = await asyncio.shield(job.result)
                is_all = entry_count == len(job.piece.entries)
                if is_all and not rows.num_rows and chunk.damage is not None and chunk.mode is ChunkMode.READY:
                    raise chunk.damage
            except OttlaError:
                self._abandon([])
                raise
            if chunk.mode is not ChunkMode.READY:
                # Those behind it may be of the same partition, and must not overtake it.
                self._abandon([])
            if not self._jobs or self._jobs[0] is not job:
                continue
            self._jobs.popleft()
            return Part(job.lent, rows, self._go_on(job, entry_count))

    def _go_on(self, job: Job, entry_count: int) -> int:
        """The offset behind what was decoded; what is left of the slice comes next."""
        entries = job.piece.entries
        if entry_count == len(entries):
            end_offset = job.lent[1].end_offset
            return end_offset if job.end is None else min(job.end, end_offset)
        next_offset = entries[entry_count - 1].next_offset
        if job.end is not None and job.end <= next_offset:
            return job.end
        rest = job.piece._replace(next_offset=next_offset, entries=entries[entry_count:])
        self._jobs.appendleft(self._job(job.lent, rest, job.end))
        return next_offset

    def _job(self, lent: Lent, piece: Slice, end: int | None) -> Job:
        loop = asyncio.get_running_loop()
        return Job(lent, piece, end, loop.run_in_executor(None, decode, piece, end, self._shape, _PIECE_BYTES))

    def _decode_ahead(self) -> None:
        wanted = _PIECES_AHEAD - (self._rest is not None)
        while len(self._jobs) < wanted and (lent := self._core.prefetch.borrow()) is not None:
            if self._forgot(lent):
                continue
            chunk = lent[1]
            piece = Slice(chunk.topic, chunk.partition, chunk.next_offset, chunk.data, chunk.entries, chunk.check_crcs)
            self._jobs.append(self._job(lent, piece, self._end_of(lent[0].topic_partition)))

    def _forgot(self, lent: Lent) -> bool:
        """Whether a chunk has nothing before the end of its partition, and so was given up."""
        state, chunk = lent
        end = self._end_of(state.topic_partition)
        if end is None or chunk.next_offset < end:
            return False
        # The partition may be newer than this reader.
        state.fetch_end = end
        self._core.prefetch.forget(state, chunk)
        return True


def _look_away(result: "asyncio.Future[Piece]") -> None:
    if not result.cancelled():
        result.exception()
