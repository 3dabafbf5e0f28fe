"""From the prefetch to tables: chunks are borrowed, decoded by workers, and consumed when their rows are handed out.

What must stay true: a position moves when a table leaves, and not before. So a table that could not be made, a call
that was cancelled, and what was decoded ahead of the user and never asked for, are all read again.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from ottla.client.consumer.columns import Decoder, Shape, Slice, decoded, record_batch_of
from ottla.client.consumer.core import Core
from ottla.client.consumer.prefetch import Lent
from ottla.client.consumer.values import ChunkMode
from ottla.client.errors import OttlaError
from ottla.client.types import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

# Whole tables are worth larger answers than single records are.
_PARTITION_FETCH_BYTES = 8 * 1024 * 1024
# While the user works on a table, workers decode this many chunks for the next one.
_CHUNKS_AHEAD = 2


class Part(NamedTuple):
    """Rows of a borrowed chunk, and the offset behind them."""

    lent: Lent
    rows: "pa.RecordBatch"
    next_offset: int


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
        self._jobs: deque[tuple[Lent, int | None, asyncio.Future[pa.RecordBatch]]] = deque()
        self._rest: Part | None = None
        self._beyond: list[Lent] = []
        self._fetch_bytes = core.fetcher.partition_max_bytes
        core.fetcher.partition_max_bytes = max(self._fetch_bytes, _PARTITION_FETCH_BYTES)
        self._bound_fetches(ends or {})

    def close(self) -> None:
        """Give back what was not handed out."""
        self._bound_fetches(dict.fromkeys(self._ends or {}))
        self._core.fetcher.partition_max_bytes = self._fetch_bytes
        beyond, self._beyond = self._beyond, []
        self._core.prefetch.give_back(beyond)
        self._abandon([])
        self._core.attention.wake()

    def _bound_fetches(self, ends: Mapping[TopicPartition, int | None]) -> None:
        for partition, end in ends.items():
            state = self._core.assignment.get(partition)
            if state is not None:
                state.fetch_end = end

    def _abandon(self, parts: list[Part]) -> None:
        """Give back the chunks of these parts and all that were borrowed after them, in their order."""
        lent = [part.lent for part in parts]
        if self._rest is not None:
            lent.append(self._rest.lent)
        for pair, _, job in self._jobs:
            lent.append(pair)
            job.add_done_callback(_look_away)
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
        return decoded(pa.Table.from_batches([record_batch_of(piece, None, self._shape)]), self._decoder)

    async def next_table(self, timeout: float | None) -> "pa.Table | None":
        """The next rows, as soon as there are any; None when none came in time, or the end was reached."""
        import pyarrow as pa

        core = self._core
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
        for part in parts:
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
        if not is_spent and (self._rest is None or self._rest.lent is not part.lent):
            if self._is_beyond(part.lent):
                self._beyond.append(part.lent)
            else:
                self._core.prefetch.give_back([part.lent])

    async def _next_part(self) -> Part | None:
        """The rows that come next; None when no chunk is ready."""
        if self._rest is not None:
            rest, self._rest = self._rest, None
            if rest.lent[1].mode is ChunkMode.READY:
                return rest
            self._core.prefetch.give_back([rest.lent])
        while True:
            self._decode_ahead()
            if not self._jobs:
                return None
            lent, end, job = self._jobs[0]
            chunk = lent[1]
            try:
                rows = await asyncio.shield(job)
                if not rows.num_rows and chunk.damage is not None and chunk.mode is ChunkMode.READY:
                    raise chunk.damage
            except OttlaError:
                self._abandon([])
                raise
            self._jobs.popleft()
            if chunk.mode is not ChunkMode.READY:
                self._core.prefetch.give_back([lent])
                continue
            return Part(lent, rows, chunk.end_offset if end is None else min(end, chunk.end_offset))

    def _decode_ahead(self) -> None:
        loop = asyncio.get_running_loop()
        wanted = _CHUNKS_AHEAD - (self._rest is not None)
        while len(self._jobs) < wanted and (lent := self._core.prefetch.borrow()) is not None:
            if self._is_beyond(lent):
                self._beyond.append(lent)
                continue
            chunk = lent[1]
            end = None if self._ends is None else self._ends.get(TopicPartition(chunk.topic, chunk.partition))
            piece = Slice(chunk.topic, chunk.partition, chunk.next_offset, chunk.data, chunk.entries, chunk.check_crcs)
            job = loop.run_in_executor(None, record_batch_of, piece, end, self._shape)
            self._jobs.append((lent, end, job))

    def _is_beyond(self, lent: Lent) -> bool:
        """Whether a chunk has nothing before the end of its partition."""
        chunk = lent[1]
        end = None if self._ends is None else self._ends.get(TopicPartition(chunk.topic, chunk.partition), -1)
        return end is not None and chunk.next_offset >= end


def _look_away(job: "asyncio.Future[pa.RecordBatch]") -> None:
    if not job.cancelled():
        job.exception()
