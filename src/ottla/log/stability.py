"""What of a log is decided: where readers of committed records have to stop, and what they have to leave out."""

from typing import TYPE_CHECKING

from ottla.log.log_errors import failed
from ottla.log.own_batch import OwnBatch
from ottla.log.producer_state import Permit, ProducerState
from ottla.log.segment import Segment
from ottla.log.transaction_index import AbortedTransaction
from ottla.records import BatchHeader
from ottla.runtime import FileRange

if TYPE_CHECKING:
    from ottla.log.log import Log


def last_stable_offset(log: "Log") -> int:
    """Below it every transaction is decided. Never above the high watermark, never below the start."""
    first_unstable_offset = log.producer_state.transactions.first_unstable_offset
    high_watermark = log.high_watermark
    if first_unstable_offset >= high_watermark:
        return high_watermark
    return max(first_unstable_offset, log.log_start_offset)


def note_marker(
    permit: Permit | None, header: BatchHeader, offset: int, producer_state: ProducerState, segment: Segment
) -> None:
    """A marker was appended: its transaction has ended."""
    assert isinstance(permit, OwnBatch), "only brokers write markers"
    assert permit.marker is not None, "a control batch has a marker"
    aborted = producer_state.end_transaction(header, permit.marker, offset)
    if aborted is not None:
        segment.note_aborted(aborted)


def aborted_within(log: "Log", offset: int, found: FileRange) -> list[AbortedTransaction]:
    """The aborted transactions that reach into what was read from `offset` on.

    Where the range ends is known as exactly as the sparse index knows it: a reader may be told of some that begin
    behind it.
    """
    if not log.producer_state.transactions.has_aborted:
        return []
    aborted: list[AbortedTransaction] = []
    end_offset = log.log_end_offset
    segments = list(log.segments_from(offset))
    try:
        for number, segment in enumerate(segments):
            if segment.file is found.file:
                next_base = segments[number + 1].base_offset if number + 1 < len(segments) else end_offset
                end_offset = segment.offset_at_or_behind(found.position + found.length, next_base)
            if segment.aborted_bytes and segment.transactions().collect(offset, end_offset, aborted):
                break
    except OSError as error:
        raise failed(log, error, "read") from error
    return aborted


def bytes_between(log: "Log", offset: int, end_offset: int) -> int:
    """How many bytes the batches take from one offset up to another, which both begin batches or end the log."""
    size_bytes = 0
    for segment in reversed(log.segments):
        if segment.base_offset < end_offset:
            end = segment.position_of(end_offset)
            start = segment.position_of(offset)
            size_bytes += end - start
        if segment.base_offset <= offset:
            break
    return size_bytes
