"""One compaction of one log: the last record of each key stays, at its offset.

    1. the keys of the dirty part are read into a map from key to last offset; a full map ends the part there
    2. all segments up to there are filtered by the map, small neighbours together into one, each group swapped in

The long work is done on a workbench, a process of its own in a broker (see `cleaning`), a few megabytes in each call.
Whoever compacts holds the log's `reshaping`, so segments are only added meanwhile; when the log is closed the work is
given up after the call at hand.
"""

import asyncio
from array import array
from collections.abc import Sequence

from ottla.log import compaction_swap
from ottla.log.cleaned_transactions import CleanedTransactions
from ottla.log.cleaning import Cleaning, MapSize, Source
from ottla.log.config_keys import INT64_MAX
from ottla.log.index_cache import IndexCache
from ottla.log.log import Log
from ottla.log.offset_index import MAX_RELATIVE_OFFSET, OffsetIndex
from ottla.log.segment import Indexes, Segment
from ottla.log.time_index import TimeIndex
from ottla.log.transaction_index import AbortedTransaction
from ottla.runtime import Disk, Executor, Workbench, WorkbenchLost, is_shortage

BYTES_PER_SLOT = 24
_SHORTAGE_PAUSE_SECONDS = 0.1


class CompactionStopped(Exception):
    """The log was closed, or its directory failed, while it was compacted."""


class Compaction:
    """See the module. `run` is called once; whether it fails or not, `replaced` and `leftovers` are the segments that
    were swapped out so far and the names of their files, to be closed and deleted when nobody reads them any more."""

    def __init__(
        self,
        log: Log,
        *,
        disk: Disk,
        executor: Executor,
        workbench: Workbench,
        cache: IndexCache,
        now_ms: int,
        map_bytes: int,
        load_factor: float,
        seed: bytes,
    ) -> None:
        self._log = log
        self._disk = disk
        self._executor = executor
        self._workbench = workbench
        self._cache = cache
        self._now_ms = now_ms
        self._map_bytes = map_bytes
        self._load_factor = load_factor
        self._seed = seed
        self._kept_offsets = b""
        self.bytes_read = 0
        self.bytes_written = 0
        self.map_utilization = 0.0
        self.replaced: list[Segment] = []
        self.leftovers: list[str] = []

    async def run(self, first_dirty_offset: int, first_uncleanable_offset: int) -> int:
        """The offset below which the log is clean now.

        CorruptRecord when a batch does not read, OSError when the disk does not; groups swapped by then stay so.
        """
        log = self._log
        # What is swapped in must be below the recovery point, or a start would look for the old bytes.
        await log.flush(first_uncleanable_offset)
        segments = [segment for segment in log.segments if segment.base_offset < first_uncleanable_offset]
        map_size = self._map_size(first_uncleanable_offset - first_dirty_offset)
        await self._workbench.begin(Cleaning, map_size, await self._known_transactions())
        fitted = await self._read_keys(segments, first_dirty_offset)
        key_count, latest_offset = await self._workbench.call(Cleaning.keys_read)
        self.map_utilization = key_count * BYTES_PER_SLOT / max(self._map_bytes, 1)
        end_offset = first_uncleanable_offset if fitted else latest_offset + 1
        segments = [segment for segment in segments if segment.base_offset < end_offset]
        groups = await self._executor.run(self._groups, segments, first_uncleanable_offset)
        self._kept_offsets = self._last_offsets_of_producers()
        for group in groups:
            await self._compact_group(group)
        return end_offset

    async def _known_transactions(self) -> CleanedTransactions:
        """A transaction below the stable offset may have its marker above it, so that all segments are asked."""
        *closed, active = self._log.segments
        latest = list(active.transactions())
        aborted = await self._executor.run(_aborted_in, closed)
        horizon_ms = min(self._now_ms + self._log.config.delete_retention_ms, INT64_MAX)
        producers = self._log.producer_state.producers.values()
        last_epochs = {entry.producer_id: entry.epoch for entry in producers if not entry.batches}
        return CleanedTransactions([*aborted, *latest], last_epochs, self._now_ms, horizon_ms)

    def _map_size(self, offset_count: int) -> MapSize:
        """As large as the dirty part can need, within the limit."""
        slots = max(self._map_bytes // BYTES_PER_SLOT, 2)
        keys = min(max(int(slots * self._load_factor), 1), slots - 1)
        if offset_count < keys:
            keys = max(offset_count, 1)
            slots = int(keys / self._load_factor) + 2
        return MapSize(slots, keys, self._seed)

    def _check_going_on(self) -> None:
        if self._log.is_closed or self._log.directory.failure is not None:
            raise CompactionStopped(f"{self._log.topic_partition} was closed while it was compacted")

    # 1. Keys.

    async def _read_keys(self, segments: Sequence[Segment], start_offset: int) -> bool:
        """False when not all keys fitted."""
        for number, segment in enumerate(segments):
            if number + 1 < len(segments) and segments[number + 1].base_offset <= start_offset:
                continue
            position, source = 0, _source(segment)
            while position < source.size_bytes:
                self._check_going_on()
                position, fitted = await self._workbench.call(Cleaning.read_keys, source, position, start_offset)
                if not fitted:
                    return False
        return True

    # 2. Records.

    def _groups(self, segments: Sequence[Segment], first_uncleanable_offset: int) -> list[tuple[Segment, ...]]:
        """In the executor: neighbours that fit into one segment, by their records, their indexes and its offsets."""
        config = self._log.config
        groups: list[list[Segment]] = []
        sums = [0, 0, 0]
        for number, segment in enumerate(segments):
            is_last = number + 1 == len(segments)
            next_base = first_uncleanable_offset if is_last else segments[number + 1].base_offset
            sizes = [segment.file.size, *(_size_if_there(self._disk, path) for path in segment.index_paths())]
            sums = [total + size for total, size in zip(sums, sizes, strict=True)]
            if (
                groups
                and sums[0] <= config.segment_bytes
                and max(sums[1:]) <= config.segment_index_bytes
                and next_base - 1 - groups[-1][0].base_offset <= MAX_RELATIVE_OFFSET
            ):
                groups[-1].append(segment)
            else:
                groups.append([segment])
                sums = sizes
        return [tuple(group) for group in groups]

    async def _compact_group(self, group: tuple[Segment, ...]) -> None:
        """Filter neighbouring segments into one and let it take their place."""
        log, run = self._log, self._executor.run
        new = await self._filtered(group)
        try:
            await run(compaction_swap.begin_swap, self._disk, new)
        except OSError as error:
            if is_shortage(error):
                # A rename that has no descriptor to be synced with is not begun: the records are still `.cleaned`.
                new.close()
                await run(compaction_swap.drop_cleaned, self._disk, log.path, new.base_offset)
            raise
        # Readers go to the new segment before the old files lose their names: an index is read by its name. Searches
        # that began before may still come to an old segment; they find it without an index, and walk.
        await log.replace_segments(group, new)
        self.replaced += group
        for segment in group:
            self._cache.forget(segment)
            segment.use_indexes(Indexes(OffsetIndex(), TimeIndex()))
        self.leftovers += await self._finish_swap(new, group)
        new.release_indexes()
        self.bytes_read += sum(segment.size_bytes for segment in group)
        self.bytes_written += new.size_bytes

    async def _filtered(self, group: tuple[Segment, ...]) -> Segment:
        """What stays of some segments, in one that is complete and on the device."""
        log, call, config = self._log, self._workbench.call, self._log.config
        base_offset, created_ms = group[0].base_offset, group[-1].created_ms
        self._check_going_on()
        try:
            await call(Cleaning.start, log.path, base_offset, config, created_ms, self._kept_offsets)
            for segment in group:
                position, source = 0, _source(segment)
                while position < source.size_bytes:
                    self._check_going_on()
                    position = await call(Cleaning.filter, source, position)
            cleaned = await call(Cleaning.seal)
            self._check_going_on()
            adopt = compaction_swap.adopt_cleaned
            where = (self._disk, log.path, base_offset, self._cache)
            return await self._executor.run(adopt, *where, config, created_ms, cleaned)
        except BaseException as error:
            if not isinstance(error, WorkbenchLost):
                await call(Cleaning.drop)
            await self._executor.run(compaction_swap.drop_cleaned, self._disk, log.path, base_offset)
            raise

    async def _finish_swap(self, new: Segment, group: tuple[Segment, ...]) -> list[str]:
        """What was begun is finished when there are descriptors again; by the next start, if the log is closed."""
        while True:
            try:
                return await self._executor.run(compaction_swap.finish_swap, self._disk, new, group)
            except OSError as error:
                if not is_shortage(error):
                    raise
            self._check_going_on()
            await asyncio.sleep(_SHORTAGE_PAUSE_SECONDS)

    def _last_offsets_of_producers(self) -> bytes:
        """The batches with these last offsets have the last sequences; a newer one may have come since, no matter."""
        producers = self._log.producer_state.producers.values()
        return array("q", sorted(entry.batches[-1].last_offset for entry in producers if entry.batches)).tobytes()


def _source(segment: Segment) -> Source:
    return Source(segment.file.path, segment.file.size)


# In the executor.


def _size_if_there(disk: Disk, path: str) -> int:
    try:
        return disk.size_of(path)
    except FileNotFoundError:
        return 0


def _aborted_in(segments: Sequence[Segment]) -> list[AbortedTransaction]:
    return [aborted for segment in segments if segment.aborted_bytes for aborted in segment.read_transactions()]
