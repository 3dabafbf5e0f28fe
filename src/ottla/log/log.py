"""The log of one partition: a row of segments, of which only the last one grows.

    offsets   log_start_offset ... recovery_point ... high_watermark ... log_end_offset
                                   (on the device)    (replicated)       (in the page cache)

The loop's thread owns everything here. `append` and `read` are plain calls that touch the page cache only; what waits
for the device (`roll`, `flush`, searches by time, `close`) is awaited and works in the executor. While a roll is under
way `must_roll` says True, so nobody appends between choosing the new segment's base offset and using it.

A disk that fails to write or to sync makes its whole log directory unusable, since nobody can tell any more what is
in the page cache and what is on the device. A full disk does not, nor does a process without descriptors: a refused
append leaves nothing behind.
"""

import asyncio
import struct
from collections.abc import Iterator

from ottla.log.append_info import AppendInfo
from ottla.log.config import LogConfig
from ottla.log.config_keys import INT64_MAX
from ottla.log.directory import LogDirectory
from ottla.log.files import TopicPartition
from ottla.log.group_commit import Background, GroupCommit
from ottla.log.index_cache import IndexCache
from ottla.log.loader import LoadedLog
from ottla.log.log_errors import beyond_high_watermark, failed, out_of_range, sync_failed, unavailable
from ottla.log.log_files import EpochsNotWritten, LogFiles
from ottla.log.offset_index import MAX_RELATIVE_OFFSET
from ottla.log.producer_snapshot import encode_snapshot
from ottla.log.producer_state import Permit
from ottla.log.segment import Segment
from ottla.log.segments import Segments
from ottla.log.stability import note_marker
from ottla.log.timestamps import FoundOffset, search_first, search_latest
from ottla.log.validation import does_not_fit, needs_records
from ottla.records import BatchHeader, assign_offset
from ottla.runtime import Clock, Disk, Executor, FileRange, IdSource, is_shortage

# base offset, length, leader epoch: the fields at the front of a batch, outside of its CRC.
_BATCH_FRONT = struct.Struct(">qii")
_LENGTH_FIELD = struct.Struct(">8xi")
_NO_TIMESTAMP = -1
_CONTROL_BIT = 0x20


class Log:
    """See the module. `high_watermark` belongs to the partition, which moves it; it is kept here to be checkpointed."""

    def __init__(
        self,
        topic_partition: TopicPartition,
        path: str,
        directory: LogDirectory,
        config: LogConfig,
        loaded: LoadedLog,
        *,
        disk: Disk,
        clock: Clock,
        executor: Executor,
        ids: IdSource,
        cache: IndexCache,
    ) -> None:
        self.topic_partition = topic_partition
        self.directory = directory
        self.topic_id = loaded.topic_id
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.recovery_point = loaded.recovery_point
        self.high_watermark = loaded.log_start_offset
        self.leader_epochs = loaded.leader_epochs
        self.leader_epochs.log_end_offset = lambda: self.log_end_offset
        self.producer_state = loaded.producer_state
        self.last_flush = clock.monotonic()
        self._files = LogFiles(disk, path, cache)
        self._clock = clock
        self._executor = executor
        self._ids = ids
        # What the files say of it, when that is all that another clean start needs.
        self._settled = self._outline() if loaded.is_settled else None
        self._segments = Segments(loaded.segments, None if loaded.is_settled else self.recovery_point)
        self._active = self._segments.active
        # Held by whoever takes closed segments out of the log; it is not closed or moved meanwhile.
        self.reshaping = asyncio.Lock()
        self._commit = GroupCommit(self._flush_once, lambda: self.recovery_point)
        self._rolling: asyncio.Task[None] | None = None
        self._background = Background()
        self.is_closed = False
        self.config = config
        self.update_config(config)

    def update_config(self, config: LogConfig) -> None:
        """Take a changed topic config; what is on the disk already stays as it is."""
        self.config = config
        self._uses_append_time = config.message_timestamp_type == "LogAppendTime"
        self.flushes_before_visible = config.ottla_flush_before_ack or config.flush_messages == 1
        self.flushes_by_time = config.flush_ms != INT64_MAX
        self.flushes_by_count = config.flush_messages != INT64_MAX
        self.looks_into_records = needs_records(config)
        self._active.index_interval_bytes = config.index_interval_bytes
        self._active.max_index_bytes = config.segment_index_bytes
        self._roll_after_ms = self.config.roll_after_ms(self._ids.below)

    @property
    def path(self) -> str:
        return self._files.path

    @property
    def flushed_offset(self) -> int:
        """Everything below is on the device."""
        return self.recovery_point

    @property
    def size_bytes(self) -> int:
        return self._segments.size_bytes

    @property
    def segments(self) -> tuple[Segment, ...]:
        return self._segments.all()

    def segments_from(self, offset: int) -> Iterator[Segment]:
        """From the one that holds an offset on."""
        return self._segments.from_offset(offset)

    # Appending.

    def must_roll(self, size_bytes: int, max_timestamp: int, record_count: int = 1) -> bool:
        """Whether `roll` has to be awaited before a batch of this size, time and count may be appended."""
        if self._rolling is not None:
            return True
        segment = self._active
        used_bytes = segment.file.size
        if not used_bytes:
            return False
        first_timestamp = segment.first_timestamp
        if first_timestamp is not None and first_timestamp >= 0:
            waited_ms = max_timestamp - first_timestamp
        else:
            waited_ms = self._clock.now_ms() - segment.created_ms
        return (
            used_bytes + size_bytes > self.config.segment_bytes
            or waited_ms > self._roll_after_ms
            or segment.is_index_full
            or self.log_end_offset + record_count - segment.base_offset > MAX_RELATIVE_OFFSET
        )

    def append(
        self, records: memoryview, headers: list[BatchHeader], leader_epoch: int, permit: Permit | None = None
    ) -> AppendInfo:
        """Append one validated batch at the end, as leader: gives it its offsets and the leader's epoch.

        `must_roll` must have said False. Either everything happens or, with a KafkaError, nothing. The first batch of a
        transaction needs a `permit`, and so does what the broker made itself.
        """
        (header,) = headers
        if self.is_closed or self.directory.failure is not None:
            raise unavailable(self)
        producer_state = self.producer_state
        has_producer = header.producer_id >= 0
        if has_producer:
            stored = producer_state.check(header, permit)
            if stored is not None:
                return AppendInfo(*stored[2:], self.log_start_offset, True)
        first_offset = self.log_end_offset
        last_offset = first_offset + header.last_offset_delta
        max_timestamp = header.max_timestamp
        segment = self._active
        if len(records) > self.config.segment_bytes or last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
            raise does_not_fit(self.topic_partition, self.config, len(records), header)
        try:
            if records.readonly:
                (length,) = _LENGTH_FIELD.unpack_from(records)
                front = _BATCH_FRONT.pack(first_offset, length, leader_epoch)
                segment.append([front, records[_BATCH_FRONT.size :]], first_offset, last_offset, max_timestamp)
            else:
                assign_offset(records, 0, first_offset, leader_epoch)
                segment.append((records,), first_offset, last_offset, max_timestamp)
        except OSError as error:
            raise failed(self, error, "append") from error
        self.log_end_offset = producer_state.end_offset = last_offset + 1
        if leader_epoch != self.leader_epochs.latest_epoch:
            self.leader_epochs.assign(leader_epoch, first_offset)
        if has_producer:
            if header.attributes & _CONTROL_BIT:
                note_marker(permit, header, first_offset, producer_state, segment)
            else:
                producer_state.update(header, first_offset, last_offset)
        append_time = max_timestamp if self._uses_append_time else _NO_TIMESTAMP
        return AppendInfo(first_offset, last_offset, append_time, self.log_start_offset, False)

    # Reading.

    def read(self, offset: int, max_bytes: int, *, up_to_offset: int, min_one_batch: bool = True) -> FileRange | None:
        """The batches from the one that holds `offset` on, below `up_to_offset`; None when there are none.

        At most `max_bytes`, where the last batch may be cut off, but always the whole of the first batch if
        `min_one_batch`. Never reaches into the next segment.
        """
        if self.is_closed or self.directory.failure is not None:
            raise unavailable(self)
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise out_of_range(self, offset)
        if offset >= up_to_offset or offset == self.log_end_offset:
            return None
        try:
            segment = self._active
            if offset >= segment.base_offset:
                start = segment.position_of(offset)
                at_end = up_to_offset >= self.log_end_offset
                end = segment.file.size if at_end else segment.position_of(up_to_offset)
            else:
                segment, start, end = self._segments.locate(offset, up_to_offset, self.log_end_offset)
            length = end - start
            if length > max_bytes:
                length = min(segment.cut(start, max_bytes, min_one_batch), length)
            segment.file.prepare()
        except OSError as error:
            raise failed(self, error, "read") from error
        return FileRange(segment.file, start, length) if length > 0 else None

    async def offset_for_timestamp(self, timestamp: int) -> FoundOffset | None:
        """The first record whose timestamp is at least `timestamp`: (offset, timestamp, leader epoch)."""
        return await search_first(self._segments, self._executor, timestamp, self.log_start_offset)

    async def offset_of_max_timestamp(self) -> FoundOffset | None:
        """The first record with the largest timestamp, which is -1 if no record has one; None without records."""
        return await search_latest(self._segments, self._executor)

    # Rolling.

    async def roll(self) -> None:
        """Close the active segment and begin the next one; callers that come meanwhile wait for the same roll.

        They go on in the order in which they came, so that a producer's batches stay in order.
        """
        if self._rolling is None:
            if self.is_closed or self.directory.failure is not None:
                raise unavailable(self)
            if not self._active.file.size:
                return
            self._rolling = asyncio.get_running_loop().create_task(self._roll())
        await asyncio.shield(self._rolling)

    async def _roll(self) -> None:
        old = self._active
        base_offset = self.log_end_offset
        snapshot = encode_snapshot(self.producer_state.producers.values())
        try:
            new = await self._executor.run(
                self._files.next_segment, old, base_offset, snapshot, self.config, self._clock.now_ms()
            )
        except OSError as error:
            raise failed(self, error, "roll") from error
        finally:
            self._rolling = None
        if self.log_end_offset != base_offset:
            new.close()
            raise RuntimeError(f"{self.topic_partition} was appended to during a roll, though must_roll said True")
        self._segments.add(new)
        self._active = new
        old.release_indexes()
        self._roll_after_ms = self.config.roll_after_ms(self._ids.below)
        # A failure has marked the directory by then, so it is not lost.
        self._background.start(self.flush(base_offset))

    # Forgetting.

    def advance_start(self, offset: int) -> None:
        """Readers get nothing below `offset` from now on. Never beyond the high watermark, and never back."""
        if self.is_closed or self.directory.failure is not None:
            raise unavailable(self)
        if offset > self.high_watermark:
            raise beyond_high_watermark(self, offset)
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.leader_epochs.truncate_from_start(offset)

    async def detach_oldest(self, count: int) -> tuple[tuple[Segment, ...], list[str]]:
        """Take closed segments out, under `reshaping`. They come back open, with the names their files now have."""
        self.advance_start(self.segments[count].base_offset)
        while self._segments.is_syncing(self.segments[:count]):
            await self._commit.finish_running()
        removed = self._segments.remove_oldest(count)
        try:
            return removed, await self._executor.run(self._files.set_aside, removed)
        except OSError as error:
            if is_shortage(error):
                self._segments.put_back(removed)
            raise failed(self, error, "delete") from error

    async def replace_segments(self, old: tuple[Segment, ...], new: Segment) -> None:
        """Let readers find `new` in the place of closed neighbours, under `reshaping`; a flush of these ends first."""
        while self._segments.is_syncing(old):
            await self._commit.finish_running()
        self._segments.replace(old, new)

    async def move_to(self, directory: LogDirectory, path: str, segments: list[Segment]) -> tuple[Segment, ...]:
        """Go on with the same segments, whole and on the device, in another directory; the ones so far come back.

        Under `reshaping`, while nobody appends.
        """
        await self._commit.settle()
        moved = self._segments.all()
        self.directory = directory
        self._files.path = path
        self._settled = None
        self._segments = Segments(segments, self.log_end_offset)
        self._active = self._segments.active
        self.recovery_point = self.log_end_offset
        self.leader_epochs.changed = True
        return moved

    # Flushing.

    def flush_due(self) -> bool:
        """Whether `flush.messages` asks for a flush before what was appended is acknowledged."""
        return self.log_end_offset - self.recovery_point >= self.config.flush_messages

    async def flush(self, up_to_offset: int | None = None) -> None:
        """Return once everything below `up_to_offset` (the current end, if None) is on the device."""
        target = self.log_end_offset if up_to_offset is None else min(up_to_offset, self.log_end_offset)
        if self.recovery_point < target:
            if self.directory.failure is not None:
                raise unavailable(self)
            await self._commit.reach(target)

    async def _flush_once(self) -> None:
        end_offset = self.log_end_offset
        closed = self._segments.begin_sync()
        epochs = self.leader_epochs
        started = self._clock.monotonic()
        done = False
        try:
            if closed or epochs.changed:
                entries = epochs.entries() if epochs.changed else None
                epochs.changed = False
                await self._executor.run(self._files.sync, closed, self._active.file, entries)
            else:
                await self._executor.run(self._active.file.sync)
            done = True
        except EpochsNotWritten as error:
            epochs.changed = True
            raise failed(self, error, "flush") from error
        except OSError as error:
            raise sync_failed(self, error) from error
        finally:
            self._segments.end_sync(done=done)
        self.directory.flushes += 1
        self.directory.flush_seconds += self._clock.monotonic() - started
        self.recovery_point = end_offset
        self.last_flush = self._clock.monotonic()

    # The end.

    async def close(self) -> None:
        """Flush everything and leave a log that opens without a scan; KafkaError when that cannot be promised."""
        if self.is_closed:
            return
        self.is_closed = True
        await self._settle()
        try:
            # Also when the end is reached already: closed segments may have index files that are not synced.
            if self.recovery_point < self.log_end_offset or self._segments.has_unflushed:
                await self._flush_once()
            if self._settled == self._outline():
                return
            snapshot = encode_snapshot(self.producer_state.producers.values())
            entries = self.leader_epochs.entries()
            await self._executor.run(self._files.finish, self._active, self.log_end_offset, snapshot, entries)
        except OSError as error:
            raise failed(self, error, "close") from error
        finally:
            self.close_files()

    def _outline(self) -> tuple[int, list[tuple[int, int]]]:
        """What a clean start has to find again. Epochs without records are not among it: a start drops them."""
        return self.log_end_offset, self.leader_epochs.entries_below(self.log_end_offset)

    async def _settle(self) -> None:
        """Wait until no roll, no flush and no work on closed segments is under way."""
        async with self.reshaping:
            await self.finish_roll()
        await self._commit.settle()

    async def finish_roll(self) -> None:
        while self._rolling is not None:
            await asyncio.wait([self._rolling])

    def close_files(self) -> None:
        """Give up the files as they are; what is not flushed may be lost."""
        self.is_closed = True
        for segment in self._segments.all():
            segment.close()

    async def retire(self, new_path: str) -> None:
        """Refuse all use from now on and move the directory to another name; the files stay readable.

        Ranges that are being sent are of use until `delete`.
        """
        self.is_closed = True
        await self._settle()
        try:
            await self._executor.run(self._files.rename, new_path)
        except OSError as error:
            raise failed(self, error, "rename") from error

    async def delete(self) -> None:
        """Remove the directory with all that is in it."""
        self.is_closed = True
        await self._settle()
        self.close_files()
        try:
            await self._executor.run(self._files.delete)
        except OSError as error:
            raise failed(self, error, "delete") from error

    def __repr__(self) -> str:
        return f"Log({self.topic_partition}, {self.log_start_offset}..{self.log_end_offset})"
