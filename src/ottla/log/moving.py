"""One log on its way to another directory of this broker, while it is written and read as before.

    1. `<topic>-<partition>.<32 characters>-future` is made in the target directory, with MOVE_TARGET in it
    2. segment after segment is copied into it in pieces, the active one until little is missing; then the target's
       checkpoints learn of the log
    3. while appends wait: the rest is copied, all of it synced
    4. `partition.metadata` of the log gets a name with the same 32 characters: from now on the copy is the log
    5. the copy gets the log's name, the log goes on with its files, MOVE_TARGET goes
    6. the old directory is renamed to `...-delete`, appends go on; its files go after `file.delete.delay.ms`

Nothing is appended between 3 and 6, so a crash anywhere leaves one whole log: `inventory` says which at a start. The
sign that the log has left is a rename because the disk that it leaves may be full.
Segments are the same byte for byte in both places, so whatever the log has in memory is right afterwards. What an
interrupted copy left is compared with the log and kept up to the first difference.
"""

import contextlib
import errno
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence

from ottla.log import files
from ottla.log.checkpoints import encode_epochs, encode_partition_metadata
from ottla.log.directory import LogDirectory
from ottla.log.files import join, offset_name, write_file
from ottla.log.index_cache import IndexCache
from ottla.log.log import Log
from ottla.log.segment import Segment
from ottla.records import HEADER_BYTES, CorruptRecord, read_header
from ottla.runtime import Disk, Executor, File

logger = logging.getLogger(__name__)

MOVE_TARGET = "ottla-move-target"
_MOVED_PREFIX = files.PARTITION_METADATA + "."
_MOVED_SUFFIX = "-moved"

PIECE_BYTES = 1024 * 1024
# What may be left to copy while appends wait.
LAST_BYTES = 4 * PIECE_BYTES
# The page cache is not filled with more than this before the device has it.
SYNC_BYTES = 64 * PIECE_BYTES


def mark_moved(disk: Disk, path: str, unique: str) -> None:
    """Step 4, in the directory of a log; durable when it returns."""
    marker = join(path, f"{_MOVED_PREFIX}{unique}{_MOVED_SUFFIX}")
    try:
        disk.rename(join(path, files.PARTITION_METADATA), marker)
    except FileNotFoundError:
        disk.open(marker, create=True).close()
        disk.sync_directory(path)


def unmark_moved(disk: Disk, path: str, unique: str) -> None:
    """Take step 4 back."""
    disk.rename(join(path, f"{_MOVED_PREFIX}{unique}{_MOVED_SUFFIX}"), join(path, files.PARTITION_METADATA))


def moved_to(names: Sequence[str]) -> str | None:
    """The 32 characters of the copy that a log has left for, given the names in its directory; None if it has not."""
    for name in names:
        if name.startswith(_MOVED_PREFIX) and name.endswith(_MOVED_SUFFIX):
            return name.removeprefix(_MOVED_PREFIX).removesuffix(_MOVED_SUFFIX)
    return None


# Writes the checkpoints of a directory; OSError when that does not work.
Announce = Callable[[LogDirectory], Awaitable[None]]


class MoveStopped(Exception):
    """It was called off, or the log was closed, or one of the two directories failed."""


class TargetFailed(Exception):
    """The target directory did not take the copy. `error` is what it said."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


@contextlib.contextmanager
def _on_target() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TargetFailed(error) from error


class LogMove:
    """See the module. The copy's files belong to whoever runs the move; nobody else touches them."""

    def __init__(
        self, log: Log, directory: LogDirectory, name: str, *, disk: Disk, executor: Executor, cache: IndexCache
    ) -> None:
        self.log = log
        self.directory = directory
        self.path = join(directory.path, name)
        self.unique = name.removesuffix(files.FUTURE_DIRECTORY_SUFFIX).rpartition(".")[2]
        self.is_stopped = False
        # Whether the target's checkpoints speak of the log.
        self.is_announced = False
        self._announced_start = -1
        self._disk = disk
        self._run = executor.run
        self._cache = cache
        self._whole: dict[int, Segment] = {}
        self._source: Segment | None = None
        self._file: File | None = None
        self._position = 0
        self._unsynced_bytes = 0
        self._old_parent = log.directory.path

    # What others see of it.

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self._whole.values()) + self._position

    @property
    def offset_lag(self) -> int:
        """How many offsets the copy is behind; as exact as the sparse index, and 0 once it has caught up."""
        source = self._next_source()
        position = self._position if source is self._source else 0
        if position == source.size_bytes and source is self.log.segments[-1]:
            return 0
        end_offset = max(source.base_offset, self.log.log_start_offset)
        boundary = source.indexes().offsets.last_position_within(position)
        if boundary:
            with contextlib.suppress(OSError, CorruptRecord):
                end_offset = read_header(source.file.read_at(boundary, HEADER_BYTES)).base_offset
        return max(self.log.log_end_offset - end_offset, 0)

    def _check_going_on(self) -> None:
        log = self.log
        if self.is_stopped or log.is_closed or log.directory.failure is not None or self.directory.failure is not None:
            raise MoveStopped(f"the move of {log.topic_partition} to {self.directory.path} was stopped")

    # 1. The directory.

    async def prepare(self) -> None:
        self._check_going_on()
        await self._run(self._prepare, self.log.topic_id)

    def _prepare(self, topic_id: bytes | None) -> None:
        with _on_target():
            self._disk.make_directory(self.path)
            self._disk.write_atomically(join(self.path, MOVE_TARGET), self.unique.encode())
            if topic_id is not None:
                metadata = encode_partition_metadata(topic_id)
                self._disk.write_atomically(join(self.path, files.PARTITION_METADATA), metadata)
            self._disk.sync_directory(self.path)
            self._disk.sync_directory(self.directory.path)

    # 2. Copying.

    async def catch_up(self, announce: Announce) -> None:
        """Copy until little is missing. The log's segments are not reshaped during a piece, and may be between two.

        `announce` writes the target's checkpoints.
        """
        while True:
            async with self.log.reshaping:
                self._check_going_on()
                await self._forget_removed()
                if self._missing_bytes() <= PIECE_BYTES:
                    break
                await self._copy_piece(self._next_source())
        if self._file is not None:
            await self._run(_sync, self._file)
        await self._announce(announce)

    async def _announce(self, announce: Announce) -> None:
        self.is_announced = True
        self._announced_start = self.log.log_start_offset
        with _on_target():
            await announce(self.directory)

    def _next_source(self) -> Segment:
        """The oldest segment that is not copied whole; the active one never is."""
        segments = self.log.segments
        return next((each for each in segments[:-1] if self._whole.get(each.base_offset) is not each), segments[-1])

    def _missing_bytes(self) -> int:
        total = sum(each.size_bytes for each in self.log.segments if self._whole.get(each.base_offset) is not each)
        is_under_way = self._source is not None and self._source in self.log.segments
        return total - (self._position if is_under_way else 0)

    async def _forget_removed(self) -> None:
        """What the log no longer has goes from the copy as well."""
        kept = set(self.log.segments)
        gone = [base_offset for base_offset, source in self._whole.items() if source not in kept]
        if self._source is not None and self._source not in kept:
            gone.append(self._source.base_offset)
            self._close_file()
        for base_offset in gone:
            self._whole.pop(base_offset, None)
        if gone:
            await self._run(self._delete_segments, gone)

    def _delete_segments(self, base_offsets: Sequence[int]) -> None:
        with _on_target():
            for base_offset in base_offsets:
                for suffix in (*files.SEGMENT_SUFFIXES, files.SNAPSHOT_SUFFIX):
                    self._disk.delete(join(self.path, offset_name(base_offset, suffix)))

    async def _copy_piece(self, source: Segment) -> None:
        """Under `reshaping`. Seals the copy of a closed segment when it has all."""
        if self._source is not source or self._file is None:
            self._close_file()
            self._file = await self._run(self._open_copy, source.base_offset)
            self._source = source
        size_bytes = source.size_bytes
        if self._position < size_bytes:
            before, self._position = (
                self._position,
                await self._run(_copy, source.file, self._file, self._position, size_bytes),
            )
            self._unsynced_bytes += self._position - before
            if self._unsynced_bytes >= SYNC_BYTES:
                self._unsynced_bytes = 0
                await self._run(_sync, self._file)
        if self._position == size_bytes and source is not self.log.segments[-1]:
            await self._run(self._seal, source, self._file)
            self._close_file()
            self._whole[source.base_offset] = source

    def _open_copy(self, base_offset: int) -> File:
        with _on_target():
            return self._disk.open(join(self.path, offset_name(base_offset, files.LOG_SUFFIX)), create=True)

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
        self._source = self._file = None
        self._position = self._unsynced_bytes = 0

    def _seal(self, source: Segment, copy: File) -> None:
        """In the executor: everything of a closed segment to the device."""
        with _on_target():
            if copy.size > source.size_bytes:
                copy.truncate(source.size_bytes)
            copy.sync()
        suffixes = (files.INDEX_SUFFIX, files.TIME_INDEX_SUFFIX, files.TRANSACTION_INDEX_SUFFIX, files.SNAPSHOT_SUFFIX)
        for suffix in suffixes:
            self._copy_small(source, suffix)

    def _copy_small(self, source: Segment, suffix: str) -> None:
        path = join(self.path, offset_name(source.base_offset, suffix))
        try:
            data = self._disk.read(source.path_of(suffix))
        except FileNotFoundError:
            with _on_target():
                self._disk.delete(path)
            return
        with _on_target():
            write_file(self._disk, path, data)
            files.sync_paths(self._disk, [path])

    # 3. to 6. Changing places.

    async def try_switch(self, announce: Announce) -> tuple[Segment, ...] | None:
        """Let the copy be the log, while nobody appends; the old segments, whose files are called `aside_path` now.

        None when more has been appended by now than should be copied while others wait.
        """
        log = self.log
        async with log.reshaping:
            await log.finish_roll()
            self._check_going_on()
            await self._forget_removed()
            if self._missing_bytes() > LAST_BYTES:
                return None
            while (source := self._next_source()) is not log.segments[-1] or self._missing_bytes():
                await self._copy_piece(source)
            if self._file is None:
                await self._copy_piece(source)
            assert self._file is not None
            await self._run(self._complete, log.segments, self._file, log.leader_epochs.entries())
            self._close_file()
            if log.log_start_offset != self._announced_start:
                await self._announce(announce)
            self._check_going_on()
            return await self._change_places()

    def _complete(self, segments: Sequence[Segment], active_copy: File, epochs: list[tuple[int, int]]) -> None:
        """In the executor: all that a start needs, on the device, and nothing else."""
        active = segments[-1]
        self._copy_small(active, files.SNAPSHOT_SUFFIX)
        kept = {segment.base_offset for segment in segments}
        with _on_target():
            if active_copy.size > active.size_bytes:
                active_copy.truncate(active.size_bytes)
            active_copy.sync()
            for suffix in (files.INDEX_SUFFIX, files.TIME_INDEX_SUFFIX):
                write_file(self._disk, join(self.path, offset_name(active.base_offset, suffix)), b"")
            for name in self._disk.list_directory(self.path):
                for suffix in (*files.SEGMENT_SUFFIXES, files.SNAPSHOT_SUFFIX):
                    offset = files.offset_of_name(name, suffix)
                    if offset is not None and offset not in kept:
                        self._disk.delete(join(self.path, name))
            self._disk.write_atomically(join(self.path, files.LEADER_EPOCH_CHECKPOINT), encode_epochs(epochs))
            self._disk.sync_directory(self.path)

    @property
    def aside_path(self) -> str:
        """What the old directory is called in the end."""
        return join(self._old_parent, files.deleted_directory_name(self.log.topic_partition, self.unique))

    async def _change_places(self) -> tuple[Segment, ...]:
        log, old_directory, old_path = self.log, self.log.directory, self.log.path
        new_path = join(self.directory.path, str(log.topic_partition))
        await self._run(mark_moved, self._disk, old_path, self.unique)
        try:
            opened = await self._run(self._enter, new_path, log.segments)
        except TargetFailed:
            await self._run(self._stay, old_path, new_path)
            raise
        new_segments = self._twins(new_path, opened)
        old_segments = await log.move_to(self.directory, new_path, new_segments)
        try:
            await self._run(self._settle_in, new_path)
        except OSError as error:
            self.directory.fail(error)
        try:
            await self._run(self._disk.rename, old_path, self.aside_path)
        except OSError as error:
            old_directory.fail(error)
        return old_segments

    def _enter(self, new_path: str, segments: Sequence[Segment]) -> list[File]:
        opened: list[File] = []
        try:
            if self._disk.exists(new_path):
                raise FileExistsError(errno.EEXIST, "the partition has a directory there already", new_path)
            self._disk.rename(self.path, new_path)
            for segment in segments:
                opened.append(self._disk.open(join(new_path, offset_name(segment.base_offset, files.LOG_SUFFIX))))
                if opened[-1].size != segment.size_bytes:
                    raise OSError(f"{opened[-1].path}: {segment.size_bytes} bytes expected, {opened[-1].size} found")
        except OSError as error:
            for file in opened:
                file.close()
            raise TargetFailed(error) from error
        return opened

    def _stay(self, old_path: str, new_path: str) -> None:
        """The log stays where it is: first of all it must say so, then the copy goes, if its disk lets it."""
        unmark_moved(self._disk, old_path, self.unique)
        with contextlib.suppress(OSError):
            if self._disk.exists(join(new_path, MOVE_TARGET)):
                self._disk.delete_directory(new_path)

    def _settle_in(self, new_path: str) -> None:
        self._disk.delete(join(new_path, MOVE_TARGET))
        self._disk.sync_directory(new_path)

    def _twins(self, path: str, opened: Sequence[File]) -> list[Segment]:
        """The log's segments with the files of the copy."""
        twins: list[Segment] = []
        for source, file in zip(self.log.segments, opened, strict=True):
            twin = Segment(self._disk, path, source.base_offset, file, self._cache, self.log.config, source.created_ms)
            twin.max_timestamp = source.max_timestamp
            twin.offset_of_max_timestamp = source.offset_of_max_timestamp
            twin.first_timestamp = source.first_timestamp
            twin.bytes_since_index_entry = source.bytes_since_index_entry
            twin.is_index_full = source.is_index_full
            twin.aborted_bytes = source.aborted_bytes
            twins.append(twin)
        active = self.log.segments[-1]
        twins[-1].use_indexes(active.indexes())
        if active.aborted_bytes:
            twins[-1].use_transactions(active.transactions())
        return twins

    # The end of a move that does not come to its end.

    def close(self) -> None:
        self._close_file()

    async def abandon(self) -> None:
        """Give up what was copied, if the disk lets go of it; a start does otherwise."""
        self._close_file()
        if self.directory.failure is None:
            with contextlib.suppress(OSError):
                await self._run(self._disk.delete_directory, self.path)


# In the executor.


def _copy(source: File, copy: File, position: int, limit: int) -> int:
    """The next piece, kept where the copy has it already; returns the position after it."""
    piece = source.read_at(position, min(PIECE_BYTES, limit - position))
    if not piece:
        raise OSError(f"{source.path} ends at {position}, {limit} bytes expected")
    with _on_target():
        if position < copy.size:
            if copy.read_at(position, len(piece)) == piece:
                return position + len(piece)
            copy.truncate(position)
        copy.append([piece])
    return position + len(piece)


def _sync(copy: File) -> None:
    with _on_target():
        copy.sync()
