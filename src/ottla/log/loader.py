"""From the files of a partition's directory to what a `Log` starts with. Blocking: runs in the executor.

    1. an interrupted compaction is finished or undone, leftovers are removed, the small files are read
    2. every segment is opened; after a crash, those that reach the recovery point are recovered, in order:
       each batch's CRC is checked, the first bad one ends the log, indexes are rebuilt
    3. the other segments keep their indexes if these can be right, and get new ones otherwise
    4. producer state: the newest good snapshot, then what the log holds after it

After a crash nothing is believed above the recovery point but the records themselves.
"""

import struct
from bisect import bisect_right
from dataclasses import dataclass, field

from ottla.log import files
from ottla.log.batch_scan import scan_batches
from ottla.log.checkpoints import decode_epochs, decode_partition_metadata
from ottla.log.compaction_swap import finish_interrupted
from ottla.log.config import LogConfig
from ottla.log.index_cache import IndexCache
from ottla.log.leader_epochs import LeaderEpochs
from ottla.log.offset_index import MAX_RELATIVE_OFFSET
from ottla.log.producer_snapshot import CorruptSnapshot, decode_snapshot
from ottla.log.producer_state import ProducerState
from ottla.log.segment import BrokenSegment, Segment, create_segment
from ottla.log.segment_check import read_checked_indexes
from ottla.records import HEADER_BYTES, BatchHeader, CorruptRecord, read_header, read_records
from ottla.runtime import Disk, File

_END_TRANSACTION_MARKER = struct.Struct(">hi")  # version, coordinator epoch


@dataclass(slots=True)
class LoadedLog:
    """What was found. `recovery_point` is the offset below which everything is known to be on the device."""

    segments: list[Segment]
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    leader_epochs: LeaderEpochs
    producer_state: ProducerState
    topic_id: bytes | None
    truncated_bytes: int = 0


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
    _producers: ProducerState = field(default_factory=ProducerState)
    _snapshot_offsets: list[int] = field(default_factory=list)
    _truncated_bytes: int = 0

    def load(self) -> LoadedLog:
        """OSError when the files cannot be made into a log."""
        try:
            return self._load()
        except CorruptRecord as error:
            raise BrokenSegment(f"{self.path}: {error}") from error

    def _load(self) -> LoadedLog:
        base_offsets = self._read_directory()
        topic_id = self._read_topic_id()
        self._epochs = self._read_epochs()
        recover_from = len(base_offsets) if self.clean else self._first_to_recover(base_offsets)
        for base_offset in base_offsets[:recover_from]:
            self._open_trusted(base_offset)
        end_offset = self._trusted_end()
        if end_offset is None and self._segments:
            # Trusted, but its end does not read: then it is not to be trusted.
            base_offsets_again = [self._segments.pop().base_offset]
            end_offset = self._recover(base_offsets_again + base_offsets[recover_from:])
        elif recover_from < len(base_offsets):
            end_offset = self._recover(base_offsets[recover_from:])
        else:
            self._load_producers(end_offset or 0)
        end_offset = self._settle(end_offset)
        clean_end = self.clean and not self._truncated_bytes
        return LoadedLog(
            segments=self._segments,
            log_start_offset=self.log_start_offset,
            log_end_offset=end_offset,
            recovery_point=end_offset if clean_end else min(self.recovery_point, end_offset),
            leader_epochs=self._epochs,
            producer_state=self._producers,
            topic_id=topic_id,
            truncated_bytes=self._truncated_bytes,
        )

    def _first_to_recover(self, base_offsets: list[int]) -> int:
        """The segment that holds the record below the recovery point, not the one that begins at it.

        A segment that was flushed to its last byte and then closed got its index files after that flush.
        """
        return max(bisect_right(base_offsets, self.recovery_point - 1) - 1, 0)

    # 1. The directory and its small files.

    def _read_directory(self) -> list[int]:
        """Base offsets of the segments, after removing what interrupted work left behind."""
        finish_interrupted(self.disk, self.path)
        names = self.disk.list_directory(self.path)
        base_offsets: list[int] = []
        for name in names:
            if name.endswith(files.STRAY_SUFFIXES):
                self.disk.delete(files.join(self.path, name))
            elif (offset := files.offset_of_name(name, files.LOG_SUFFIX)) is not None:
                base_offsets.append(offset)
            elif (offset := files.offset_of_name(name, files.SNAPSHOT_SUFFIX)) is not None:
                self._snapshot_offsets.append(offset)
        present = set(base_offsets)
        for name in names:
            for suffix in files.SEGMENT_SUFFIXES:
                offset = files.offset_of_name(name, suffix)
                if offset is not None and offset not in present:
                    self.disk.delete(files.join(self.path, name))
        return base_offsets

    def _read_topic_id(self) -> bytes | None:
        try:
            data = self.disk.read(files.join(self.path, files.PARTITION_METADATA))
        except FileNotFoundError:
            return None
        return decode_partition_metadata(files.PARTITION_METADATA, data)

    def _read_epochs(self) -> LeaderEpochs:
        try:
            data = self.disk.read(files.join(self.path, files.LEADER_EPOCH_CHECKPOINT))
        except FileNotFoundError:
            return LeaderEpochs()
        return LeaderEpochs(decode_epochs(files.LEADER_EPOCH_CHECKPOINT, data))

    # 2. and 3. Segments.

    def _open(self, base_offset: int) -> Segment:
        file: File = self.disk.open(files.join(self.path, files.offset_name(base_offset, files.LOG_SUFFIX)))
        segment = Segment(self.disk, self.path, base_offset, file, self.cache, self.config, self.now_ms)
        self._segments.append(segment)
        return segment

    def _open_trusted(self, base_offset: int) -> None:
        """A segment below the recovery point, or any after a clean stop: only its indexes are looked at."""
        segment = self._open(base_offset)
        if not read_checked_indexes(self.disk, segment, self.config):
            segment.rebuild_indexes()
            segment.write_indexes()
            # The recovery point is above this segment, so no later start would rebuild them.
            files.sync_paths(self.disk, segment.index_paths())
            segment.drop_indexes()

    def _trusted_end(self) -> int | None:
        """Where the last trusted segment ends, read from its last index entry on; None when its tail is damaged."""
        if not self._segments:
            return self.log_start_offset
        segment = self._segments[-1]
        indexes = segment.read_index_files()
        segment.use_indexes(indexes)
        positions = indexes.offsets.positions
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
        if segment.file.size:
            segment.first_timestamp = read_header(segment.file.read_at(0, HEADER_BYTES)).max_timestamp
        return end_offset

    def _recover(self, base_offsets: list[int]) -> int:
        """Check every batch of these segments; the first bad one ends the log, and the segments after it go."""
        if self._segments:
            self._segments[-1].drop_indexes()
        expected_offset = base_offsets[0]
        self._load_producers(expected_offset)
        self._epochs.truncate_from_end(max(expected_offset, self.recovery_point))
        for number, base_offset in enumerate(base_offsets):
            segment = self._open(base_offset)
            expected_offset = self._recover_segment(segment, max(expected_offset, base_offset))
            is_last = number == len(base_offsets) - 1
            if self._truncated_bytes and not is_last:
                self._drop_segments(base_offsets[number + 1 :])
                break
            if not is_last:
                segment.write_indexes()
                segment.drop_indexes()
        return expected_offset

    def _recover_segment(self, segment: Segment, expected_offset: int) -> int:
        """Rebuild a segment from its records and cut its tail; returns the offset after its last record."""
        segment.start_indexes()
        valid_bytes = 0
        limit = segment.base_offset + MAX_RELATIVE_OFFSET
        for position, header in scan_batches(segment.file, 0, segment.file.size, verify=True):
            # The CRC does not cover the base offset.
            if not expected_offset <= header.base_offset <= header.last_offset <= limit:
                break
            segment.note_batch(position, header.size_bytes, header.last_offset, header.max_timestamp)
            if header.partition_leader_epoch > self._epochs.latest_epoch:
                self._epochs.assign(header.partition_leader_epoch, header.base_offset)
            self._note_producer(segment, position, header)
            expected_offset = header.next_offset
            valid_bytes = position + header.size_bytes
        torn_bytes = segment.file.size - valid_bytes
        if torn_bytes:
            self._truncated_bytes += torn_bytes
            segment.file.truncate(valid_bytes)
            segment.file.sync()
        return expected_offset

    def _drop_segments(self, base_offsets: list[int]) -> None:
        for base_offset in base_offsets:
            for suffix in files.SEGMENT_SUFFIXES:
                self.disk.delete(files.join(self.path, files.offset_name(base_offset, suffix)))

    def _settle(self, end_offset: int | None) -> int:
        """Make the parts agree: at least one segment, a start that is not behind the end, no epochs without records."""
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
            self._producers = ProducerState(end_offset=end_offset)
        assert end_offset is not None
        self.log_start_offset = max(self.log_start_offset, self._segments[0].base_offset)
        self._epochs.truncate_from_end(end_offset)
        self._epochs.truncate_from_start(self.log_start_offset)
        self._remove_stray_snapshots(end_offset)
        return end_offset

    # 4. Producers.

    def _load_producers(self, up_to_offset: int) -> None:
        """The state at `up_to_offset`: the newest good snapshot that is not beyond it, and the log from there."""
        state = ProducerState(end_offset=self.log_start_offset)
        for offset in sorted(self._snapshot_offsets, reverse=True):
            if self.log_start_offset <= offset <= up_to_offset:
                path = files.join(self.path, files.offset_name(offset, files.SNAPSHOT_SUFFIX))
                try:
                    state = ProducerState(decode_snapshot(self.disk.read(path)), offset)
                    break
                except CorruptSnapshot:
                    self.disk.delete(path)
                    self._snapshot_offsets.remove(offset)
        state.remove_expired(self.now_ms, self.producer_expiration_ms)
        self._producers = state
        for number, segment in enumerate(self._segments):
            is_last = number == len(self._segments) - 1
            segment_end = up_to_offset if is_last else self._segments[number + 1].base_offset
            if state.end_offset < segment_end:
                self._replay_producers(segment, state.end_offset)
        state.end_offset = max(state.end_offset, up_to_offset)

    def _replay_producers(self, segment: Segment, from_offset: int) -> None:
        start = 0
        if from_offset > segment.base_offset:
            start = segment.read_index_files().offsets.lookup(from_offset - segment.base_offset)
        for position, header in scan_batches(segment.file, start, segment.file.size, verify=False):
            if header.base_offset >= from_offset:
                self._note_producer(segment, position, header)

    def _note_producer(self, segment: Segment, position: int, header: BatchHeader) -> None:
        state = self._producers
        if header.producer_id >= 0:
            if header.is_control:
                self._note_marker(segment.file.read_at(position, header.size_bytes), header)
            else:
                state.update(header, header.base_offset, header.last_offset)
        state.end_offset = header.next_offset

    def _note_marker(self, batch: bytes, header: BatchHeader) -> None:
        """A control batch holds one record; one that compaction emptied has nothing to say."""
        for record in read_records(batch):
            if record.value is None or len(record.value) < _END_TRANSACTION_MARKER.size:
                raise CorruptRecord(f"a transaction marker expected at offset {record.offset}, {record.value!r} came")
            _, coordinator_epoch = _END_TRANSACTION_MARKER.unpack_from(record.value)
            self._producers.end_transaction(header, coordinator_epoch)

    def _remove_stray_snapshots(self, end_offset: int) -> None:
        """Kept are the snapshots at the base of a segment and the newest of all; none from beyond the end."""
        base_offsets = {segment.base_offset for segment in self._segments}
        usable = [offset for offset in sorted(self._snapshot_offsets) if offset <= end_offset]
        kept = [offset for offset in usable if offset in base_offsets or offset == usable[-1]]
        for offset in self._snapshot_offsets:
            if offset not in kept:
                self.disk.delete(files.join(self.path, files.offset_name(offset, files.SNAPSHOT_SUFFIX)))
        self._snapshot_offsets = kept
