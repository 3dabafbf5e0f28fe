"""Producer state at a start: the newest good snapshot, then what the log holds after it. Blocking.

Records are not touched, but for the one of each control batch, which says how a transaction ended.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ottla.log import files
from ottla.log.damage import scan_readable
from ottla.log.producer_snapshot import CorruptSnapshot, decode_snapshot
from ottla.log.producer_state import ProducerState
from ottla.log.segment import Segment
from ottla.records import BatchHeader, read_end_transaction, read_records
from ottla.runtime import Disk


@dataclass(slots=True)
class ProducerLoader:
    """`state` is what was found so far."""

    disk: Disk
    path: str
    now_ms: int
    expiration_ms: int
    log_start_offset: int = 0
    snapshot_offsets: list[int] = field(default_factory=list)
    state: ProducerState = field(default_factory=ProducerState)

    def load(self, segments: Sequence[Segment], up_to_offset: int) -> None:
        """The state at `up_to_offset`: the newest good snapshot that is not beyond it, and the log from there.

        One from before the first segment is of a log that had to begin anew since, and has forgotten its producers.
        """
        first_offset = segments[0].base_offset if segments else up_to_offset
        self.state = state = self._from_snapshot(max(self.log_start_offset, first_offset), up_to_offset)
        for number, segment in enumerate(segments):
            is_last = number == len(segments) - 1
            segment_end = up_to_offset if is_last else segments[number + 1].base_offset
            if state.end_offset < segment_end:
                self._replay(segment, state.end_offset)
        state.end_offset = max(state.end_offset, up_to_offset)

    def _from_snapshot(self, lowest_offset: int, up_to_offset: int) -> ProducerState:
        state = ProducerState(end_offset=self.log_start_offset)
        for offset in sorted(self.snapshot_offsets, reverse=True):
            if lowest_offset <= offset <= up_to_offset:
                path = files.join(self.path, files.offset_name(offset, files.SNAPSHOT_SUFFIX))
                try:
                    state = ProducerState(decode_snapshot(self.disk.read(path)), offset)
                    break
                except CorruptSnapshot:
                    self.disk.delete(path)
                    self.snapshot_offsets.remove(offset)
        state.remove_expired(self.now_ms, self.expiration_ms)
        return state

    def _replay(self, segment: Segment, from_offset: int) -> None:
        start = 0
        if from_offset > segment.base_offset:
            start = segment.read_index_files().offsets.lookup(from_offset - segment.base_offset)
        for position, header in scan_readable(segment.file, start, segment.file.size, segment.base_offset):
            if header.base_offset >= from_offset:
                self.note(segment, position, header)

    def note(self, segment: Segment, position: int, header: BatchHeader, *, is_indexed: bool = False) -> None:
        """Take a batch into account; `is_indexed` when its segment has to learn of a transaction that it aborts."""
        state = self.state
        if header.producer_id >= 0:
            if header.is_control:
                self._note_marker(segment, segment.file.read_at(position, header.size_bytes), header, is_indexed)
            else:
                state.update(header, header.base_offset, header.last_offset)
        state.end_offset = header.next_offset

    def _note_marker(self, segment: Segment, batch: bytes, header: BatchHeader, is_indexed: bool) -> None:
        """A control batch holds one record; one that compaction emptied has nothing to say."""
        for record in read_records(batch):
            marker = read_end_transaction(record)
            aborted = self.state.end_transaction(header, marker, header.base_offset)
            if aborted is not None and is_indexed:
                segment.note_aborted(aborted)

    def index_again(self, segments: Sequence[Segment], segment: Segment) -> None:
        """Find the aborted transactions of a segment whose index does not read."""
        earlier = [each for each in segments if each.base_offset < segment.base_offset]
        self.load(earlier, segment.base_offset)
        for position, header in scan_readable(segment.file, 0, segment.file.size, segment.base_offset):
            self.note(segment, position, header, is_indexed=True)

    def remove_stray_snapshots(self, base_offsets: Sequence[int], end_offset: int) -> None:
        """Kept are the snapshots at the base of a segment and the newest of all; none from outside of the log."""
        usable = [offset for offset in sorted(self.snapshot_offsets) if base_offsets[0] <= offset <= end_offset]
        kept = [offset for offset in usable if offset in base_offsets or offset == usable[-1]]
        for offset in self.snapshot_offsets:
            if offset not in kept:
                self.disk.delete(files.join(self.path, files.offset_name(offset, files.SNAPSHOT_SUFFIX)))
        self.snapshot_offsets = kept
