"""From the bytes that a fetch brought to the batches whose records are handed out, and what can be wrong with them.

A fetch answers with whole batches from the log, so it may begin before the wanted offset, end in the middle of a batch,
and hold batches that are not for users: markers of transactions and, with `read_committed`, records of transactions
that were aborted. Headers are read when the answer comes; checksums and records only when they are handed out.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ottla.client.consumer.values import NO_EPOCH, Entry
from ottla.client.errors import ConsumerError, CorruptBatch, UndecodableRecord
from ottla.records import (
    HEADER_BYTES,
    BatchHeader,
    Buffer,
    ControlType,
    CorruptRecord,
    UnsupportedMagic,
    check_crc,
    compression,
    read_control_batch,
    read_header,
    scan_headers,
)


class Place(Protocol):
    """Where a batch comes from: a chunk, or the state of a partition."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def next_offset(self) -> int: ...


class Packed(Place, Protocol):
    @property
    def data(self) -> memoryview: ...
    @property
    def check_crcs(self) -> bool: ...


class Contents(NamedTuple):
    """The entries of a chunk, the offset and epoch behind it, and what is wrong behind its last good batch."""

    entries: tuple[Entry, ...]
    end_offset: int
    epoch: int
    damage: ConsumerError | None


def damaged(place: Place, header: BatchHeader, error: CorruptRecord) -> CorruptBatch:
    """The error for a batch with a readable header."""
    return CorruptBatch(place.topic, place.partition, place.next_offset, header.next_offset, str(error))


def undecodable(place: Place, offset: int, error: Exception) -> UndecodableRecord:
    why = f"the deserializer refused it ({type(error).__name__}: {error})"
    return UndecodableRecord(place.topic, place.partition, offset, offset + 1, why)


def require_crc(data: memoryview, entry: Entry) -> None:
    """CorruptRecord where the bytes of a batch are not those that were stored."""
    if not check_crc(data, entry.start, entry.header):
        raise CorruptRecord("the bytes do not give the checksum that was stored with them")


def unpack(chunk: Packed, entry: Entry) -> Buffer:
    """The plain records of a batch, checked against its checksum; CorruptBatch where they are not."""
    start, end, header, _ = entry
    try:
        if chunk.check_crcs:
            require_crc(chunk.data, entry)
        return compression.decompress(header.compression, chunk.data[start + HEADER_BYTES : end])
    except CorruptRecord as error:
        raise damaged(chunk, header, error) from error


def contents_of(
    place: Place, data: memoryview, aborted: Sequence[tuple[int, int]] | None, *, wanted_offset: int
) -> Contents:
    """What is in `data`. `aborted` has producer ids and first offsets of aborted transactions; None hands out all.

    A batch that is cut off at the end is left for the next fetch.
    """
    headers, damage = _headers(place, data, wanted_offset)
    skipped = _Aborted(aborted) if aborted else None
    entries: list[Entry] = []
    end_offset, epoch, position = wanted_offset, NO_EPOCH, 0
    for header in headers:
        start, position = position, position + header.size_bytes
        next_offset = header.next_offset
        if next_offset <= end_offset:
            continue
        epoch = header.partition_leader_epoch
        try:
            is_hidden = header.is_control if skipped is None else skipped.hides(header, data[start:position])
        except CorruptRecord as error:
            bad = CorruptBatch(
                place.topic, place.partition, max(end_offset, header.base_offset), next_offset, str(error)
            )
            return Contents(tuple(entries), end_offset, epoch, bad)
        end_offset = next_offset
        if is_hidden:
            if entries:
                entries[-1] = entries[-1]._replace(next_offset=next_offset)
        else:
            entries.append(Entry(start, position, header, next_offset))
    return Contents(tuple(entries), end_offset, epoch, damage)


def _headers(place: Place, data: memoryview, wanted_offset: int) -> tuple[list[BatchHeader], ConsumerError | None]:
    """All headers, or those before the first that cannot be read, and what is wrong with it."""
    try:
        return scan_headers(data, True), None
    except CorruptRecord:
        pass
    headers: list[BatchHeader] = []
    position, offset = 0, wanted_offset
    while True:
        try:
            header = read_header(data, position)
        except CorruptRecord as error:
            return headers, _unreadable(place, offset, error)
        headers.append(header)
        position += header.size_bytes
        offset = max(offset, header.next_offset)


def _unreadable(place: Place, offset: int, error: CorruptRecord) -> CorruptBatch:
    why = str(error)
    if isinstance(error, UnsupportedMagic):
        why = f"it is stored in a message format before 0.11 (magic 0 or 1), which is not read here ({error})"
    return CorruptBatch(place.topic, place.partition, offset, offset + 1, why)


class _Aborted:
    """Follows the aborted transactions of a partition through its batches, in the order of the log."""

    def __init__(self, transactions: Sequence[tuple[int, int]]) -> None:
        self._to_come = sorted(((first, producer) for producer, first in transactions), reverse=True)
        self._open: set[int] = set()

    def hides(self, header: BatchHeader, batch: memoryview) -> bool:
        """Whether the batch is a marker, or belongs to a transaction that was aborted."""
        if not header.has_producer:
            return header.is_control
        while self._to_come and self._to_come[-1][0] <= header.last_offset:
            self._open.add(self._to_come.pop()[1])
        if header.is_control:
            is_marker = header.producer_id in self._open and header.record_count > 0
            if is_marker and read_control_batch(batch).control_type is ControlType.ABORT:
                self._open.discard(header.producer_id)
            return True
        return header.is_transactional and header.producer_id in self._open
