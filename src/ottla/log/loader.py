"""From the files of a partition's directory to what a `Log` starts with. Blocking: runs in the executor.

    1. an interrupted compaction is finished or undone, leftovers are removed, the small files are read
    2. every segment is opened; after a crash, those that reach the recovery point are recovered, in order:
       each batch's CRC is checked, the first bad one above the recovery point ends the log, indexes are rebuilt
    3. the other segments keep their indexes if these can be right, and get new ones otherwise
    4. producer state: the newest good snapshot, then what the log holds after it (`ottla.log.producer_loader`)

After a crash nothing is believed above the recovery point but the records themselves. What is bad below it, or after a
clean stop, was damaged on the device: `ottla.log.damage` says what becomes of it.

A small file that does not read is no reason to refuse the records beside it: it is reported, and rebuilt from them.
"""

import logging
from bisect import bisect_right
from dataclasses import dataclass, field

from ottla.log import files
from ottla.log.batch_scan import scan_batches
from ottla.log.checkpoints import BadCheckpoint, decode_epochs, decode_partition_metadata
from ottla.log.compaction_swap import finish_interrupted
from ottla.log.config import LogConfig
from ottla.log.config_keys import INT64_MAX
from ottla.log.damage import Damage, batches_to_keep, scan_readable
from ottla.log.index_cache import IndexCache
from ottla.log.leader_epochs import LeaderEpochs
from ottla.log.offset_index import MAX_RELATIVE_OFFSET
from ottla.log.producer_loader import ProducerLoader
from ottla.log.producer_state import ProducerState
from ottla.log.segment import BrokenSegment, Segment, create_segment
from ottla.log.segment_check import checked_indexes, checked_transactions, read_checked_indexes
from ottla.log.unusable import is_of_one_log
from ottla.records import HEADER_BYTES, CorruptRecord, read_header
from ottla.runtime import Disk, File

logger = logging.getLogger(__name__)


def _index_names(base_offset: int) -> list[str]:
    return [files.offset_name(base_offset, suffix) for suffix in (files.INDEX_SUFFIX, files.TIME_INDEX_SUFFIX)]


@dataclass(slots=True)
class LoadedLog:
    """What was found. `recovery_point` is the offset below which everything is known to be on the device.

    It `is_settled` when the files, as they are, are all that another clean start needs. `damage` is what was bad: bytes
    that recovery cut off, or that it left where they are.
    """

    segments: list[Segment]
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    leader_epochs: LeaderEpochs
    producer_state: ProducerState
    topic_id: bytes | None
    is_settled: bool = False
    damage: list[Damage] = field(default_factory=list)


@dataclass(slots=True)
class LogLoader:
    """The inputs of a load and its working state; `load` is called once."""

    disk: Disk
    path: str
    config: LogConfig
    cache: IndexCache
    now_ms: int
    clean: bool
    recovery_point: int = 0
    log_start_offset: int = 0
    producer_expiration_ms: int = 86_400_000
    _segments: list[Segment] = field(default_factory=list)
    _epochs: LeaderEpochs = field(default_factory=LeaderEpochs)
    _sizes: dict[str, int] = field(default_factory=dict)
    _damage: list[Damage] = field(default_factory=list)
    _producers: ProducerLoader = field(init=False)

    def __post_init__(self) -> None:
        self._producers = ProducerLoader(self.disk, self.path, self.now_ms, self.producer_expiration_ms)

    def load(self) -> LoadedLog:
        """OSError when the files cannot be made into a log."""
        try:
            return self._load()
        except CorruptRecord as error:
            raise BrokenSegment(f"{self.path}: {error}") from error

    def _load(self) -> LoadedLog:
        base_offsets = self._read_directory()
        self._producers.log_start_offset = self.log_start_offset
        topic_id = self._read_topic_id()
        epochs = self._read_epochs()
        self._epochs = LeaderEpochs() if epochs is None else epochs
        recover_from = len(base_offsets) if self.clean else self._first_to_recover(base_offsets)
        for number, base_offset in enumerate(base_offsets[:recover_from]):
            self._open_trusted(base_offset, is_last=number == recover_from - 1)
        end_offset = self._trusted_end()
        if end_offset is None and self._segments:
            # Trusted, but its end does not read: then it is not to be trusted.
            base_offsets_again = [self._segments.pop().base_offset]
            end_offset = self._recover(base_offsets_again + base_offsets[recover_from:])
        elif recover_from < len(base_offsets):
            end_offset = self._recover(base_offsets[recover_from:])
        else:
            self._producers.load(self._segments, end_offset or 0)
        if epochs is None:
            self._rebuild_epochs()
        end_offset = self._settle(end_offset)
        state = self._producers.state
        state.transactions.has_aborted = any(segment.aborted_bytes for segment in self._segments)
        clean_end = self.clean and not self._was_cut
        return LoadedLog(
            segments=self._segments,
            log_start_offset=self.log_start_offset,
            log_end_offset=end_offset,
            recovery_point=end_offset if clean_end else min(self.recovery_point, end_offset),
            leader_epochs=self._epochs,
            producer_state=state,
            topic_id=topic_id,
            is_settled=clean_end and epochs is not None and not self._damage and self._has_snapshot(end_offset),
            damage=self._damage,
        )

    def _has_snapshot(self, end_offset: int) -> bool:
        """Of its end; an empty log needs none."""
        return end_offset in self._producers.snapshot_offsets or not any(
            segment.size_bytes for segment in self._segments
        )

    @property
    def _was_cut(self) -> bool:
        return any(damage.cut for damage in self._damage)

    @property
    def _trusted_offset(self) -> int:
        """Everything below was on the device: what is bad there was damaged later."""
        return INT64_MAX if self.clean else self.recovery_point

    def _first_to_recover(self, base_offsets: list[int]) -> int:
        """The segment that holds the record below the recovery point, not the one that begins at it.

        A segment that was flushed to its last byte and then closed got its index files after that flush.
        """
        return max(bisect_right(base_offsets, self.recovery_point - 1) - 1, 0)

    # 1. The directory and its small files.

    def _read_directory(self) -> list[int]:
        """Base offsets of the segments, after removing what interrupted work left behind."""
        self._sizes = self.disk.list_sizes(self.path)
        if any(name.endswith(files.COMPACTION_SUFFIXES) for name in self._sizes):
            finish_interrupted(self.disk, self.path)
            self._sizes = self.disk.list_sizes(self.path)
        offsets: dict[str, list[int]] = {}
        for name in self._sizes:
            if name.endswith(files.STRAY_SUFFIXES):
                self.disk.delete(files.join(self.path, name))
            elif (parts := files.split_name(name)) is not None:
                offsets.setdefault(parts[1], []).append(parts[0])
        base_offsets = offsets.get(files.LOG_SUFFIX, [])
        for suffix in files.SEGMENT_SUFFIXES:
            for offset in set(offsets.get(suffix, ())).difference(base_offsets):
                self.disk.delete(files.join(self.path, files.offset_name(offset, suffix)))
        self._producers.snapshot_offsets = offsets.get(files.SNAPSHOT_SUFFIX, [])
        return base_offsets

    def _read_topic_id(self) -> bytes | None:
        if files.PARTITION_METADATA not in self._sizes:
            return None
        path = files.join(self.path, files.PARTITION_METADATA)
        try:
            return decode_partition_metadata(path, self.disk.read(path))
        except BadCheckpoint as error:
            logger.warning("%s; the topic of that name is taken to be the one", error)
            return None

    def _read_epochs(self) -> LeaderEpochs | None:
        """None when they have to be rebuilt from the records."""
        if files.LEADER_EPOCH_CHECKPOINT not in self._sizes:
            return LeaderEpochs()
        path = files.join(self.path, files.LEADER_EPOCH_CHECKPOINT)
        try:
            return LeaderEpochs(decode_epochs(path, self.disk.read(path)))
        except BadCheckpoint as error:
            logger.warning("%s; it is rebuilt from the records", error)
            return None

    def _rebuild_epochs(self) -> None:
        for segment in self._segments:
            for _, header in scan_readable(segment.file, 0, segment.file.size, segment.base_offset):
                if header.partition_leader_epoch > self._epochs.latest_epoch:
                    self._epochs.assign(header.partition_leader_epoch, header.base_offset)

    # 2. and 3. Segments.

    def _open(self, base_offset: int) -> Segment:
        name = files.offset_name(base_offset, files.LOG_SUFFIX)
        file: File = self.disk.open_later(files.join(self.path, name), self._sizes[name])
        segment = Segment(self.disk, self.path, base_offset, file, self.cache, self.config, self.now_ms)
        segment.aborted_bytes = self._sizes.get(files.offset_name(base_offset, files.TRANSACTION_INDEX_SUFFIX), 0)
        self._segments.append(segment)
        return segment

    def _open_trusted(self, base_offset: int, *, is_last: bool) -> None:
        """A segment below the recovery point, or any after a clean stop: only its indexes are looked at.

        The last one needs them to find its end, unless it is empty, and then nothing has to be opened.
        """
        segment = self._open(base_offset)
        if not segment.size_bytes and not any(self._sizes.get(name, -1) for name in _index_names(base_offset)):
            is_right = True
            if is_last:
                segment.start_indexes()
        elif is_last:
            indexes = checked_indexes(self.disk, segment, self.config)
            is_right = indexes is not None
            if indexes is not None:
                segment.use_indexes(indexes)
        else:
            is_right = read_checked_indexes(self.disk, segment, self.config)
        if not is_right:
            segment.rebuild_indexes()
            segment.write_indexes()
            # The recovery point is above this segment, so no later start would rebuild them.
            files.sync_paths(self.disk, segment.index_paths())
            if not is_last:
                segment.drop_indexes()
        if segment.aborted_bytes:
            self._open_transactions(segment, is_last=is_last)

    def _open_transactions(self, segment: Segment, *, is_last: bool) -> None:
        transactions = checked_transactions(self.disk, segment)
        if transactions is None:
            self._forget_transactions(segment)
            logger.warning("%s: its aborted transactions are looked for again", segment)
            self._producers.index_again(self._segments, segment)
            segment.write_transactions()
            files.sync_paths(self.disk, segment.paths_to_sync())
            if not is_last:
                segment.drop_indexes()
        elif is_last:
            segment.use_transactions(transactions)

    def _trusted_end(self) -> int | None:
        """Where the last trusted segment ends, read from its last index entry on; None when its tail is damaged."""
        if not self._segments:
            return self.log_start_offset
        segment = self._segments[-1]
        if not segment.size_bytes:
            return segment.base_offset
        positions = segment.indexes().offsets.positions
        start = positions[-1] if len(positions) else 0
        end_offset, valid_bytes = segment.base_offset, start
        limit = segment.base_offset + MAX_RELATIVE_OFFSET
        for position, header in scan_batches(segment.file, start, segment.file.size, verify=True):
            if not end_offset <= header.base_offset <= header.last_offset <= limit:
                break
            if header.max_timestamp > segment.max_timestamp:
                segment.max_timestamp = header.max_timestamp
                segment.offset_of_max_timestamp = header.last_offset
            end_offset, valid_bytes = header.next_offset, position + header.size_bytes
        if valid_bytes != segment.file.size:
            segment.close()
            return None
        segment.bytes_since_index_entry = segment.file.size - start
        segment.first_timestamp = read_header(segment.file.read_at(0, HEADER_BYTES)).max_timestamp
        return end_offset

    def _recover(self, base_offsets: list[int]) -> int:
        """Check every batch of these segments; where the log has to end, the segments after that place go."""
        if self._segments:
            self._segments[-1].drop_indexes()
        expected_offset = base_offsets[0]
        self._producers.load(self._segments, expected_offset)
        self._epochs.truncate_from_end(max(expected_offset, self.recovery_point))
        for number, base_offset in enumerate(base_offsets):
            segment = self._open(base_offset)
            is_last = number == len(base_offsets) - 1
            later = base_offsets[number + 1 :]
            expected_offset = self._recover_segment(segment, max(expected_offset, base_offset), later)
            if self._was_cut:
                break
            if not is_last:
                segment.write_indexes()
                segment.drop_indexes()
        return expected_offset

    def _recover_segment(self, segment: Segment, expected_offset: int, later: list[int]) -> int:
        """Rebuild a segment from its records and cut its tail; returns the offset after its last record.

        The segments `later` than a cut go for good before it is made: once it is, nothing tells of them any more.
        """
        segment.start_indexes()
        self._forget_transactions(segment)
        file, trusted = segment.file, self._trusted_offset
        limit = segment.base_offset + MAX_RELATIVE_OFFSET
        end = 0
        for position, header, is_good in batches_to_keep(file, expected_offset, limit, trusted, self._damage):
            max_timestamp = header.max_timestamp if is_good else -1
            segment.note_batch(position, header.size_bytes, header.last_offset, max_timestamp)
            if is_good:
                if header.partition_leader_epoch > self._epochs.latest_epoch:
                    self._epochs.assign(header.partition_leader_epoch, header.base_offset)
                self._producers.note(segment, position, header, is_indexed=True)
            expected_offset, end = header.next_offset, position + header.size_bytes
        if bad_bytes := file.size - end:
            # A segment that another one follows below the recovery point was on the device to its last byte.
            next_base = later[0] if later else None
            is_cut = next_base is None or next_base > trusted
            self._damage.append(Damage(file.path, end, bad_bytes, expected_offset, next_base, cut=is_cut))
            if is_cut:
                if later:
                    self._drop_segments(later)
                    self.disk.sync_directory(self.path)
                file.truncate(end)
                file.sync()
        return expected_offset

    def _forget_transactions(self, segment: Segment) -> None:
        """The markers say it all again; a file that says anything else must not be there when the segment is closed."""
        if segment.aborted_bytes:
            self.disk.delete(segment.path_of(files.TRANSACTION_INDEX_SUFFIX))
            segment.aborted_bytes = 0

    def _drop_segments(self, base_offsets: list[int]) -> None:
        for base_offset in base_offsets:
            for suffix in files.SEGMENT_SUFFIXES:
                self.disk.delete(files.join(self.path, files.offset_name(base_offset, suffix)))

    def _settle(self, end_offset: int | None) -> int:
        """Make the parts agree: at least one segment, a start that is not behind the end, no epochs without records."""
        if self.clean and self._segments and end_offset is not None and end_offset < self.log_start_offset:
            first = self._segments[0].base_offset
            logger.warning(
                "%s ends at %d, before its start %d: it starts at %d again",
                self.path,
                end_offset,
                self.log_start_offset,
                first,
            )
            self.log_start_offset = first
        if self._segments and (end_offset is None or end_offset < self.log_start_offset):
            for segment in self._segments:
                segment.close()
            self._drop_segments([segment.base_offset for segment in self._segments])
            self._segments = []
        if not self._segments:
            end_offset = self.log_start_offset
            self._segments.append(
                create_segment(self.disk, self.path, end_offset, self.cache, self.config, self.now_ms)
            )
            self._producers.state = ProducerState(end_offset=end_offset)
        assert end_offset is not None
        self.log_start_offset = max(self.log_start_offset, self._segments[0].base_offset)
        self._epochs.truncate_from_end(end_offset)
        self._epochs.truncate_from_start(self.log_start_offset)
        self._producers.remove_stray_snapshots([segment.base_offset for segment in self._segments], end_offset)
        return end_offset


def load_each(loaders: list[LogLoader]) -> list[LoadedLog | OSError]:
    """In the executor. A log whose own files are in the way of it costs the others nothing."""
    found: list[LoadedLog | OSError] = []
    for loader in loaders:
        try:
            found.append(loader.load())
        except OSError as error:
            if not is_of_one_log(error):
                raise
            found.append(error)
    return found
