"""Compaction of a buffer of batches: the twins do the plain ones in one go, compressed ones are opened here.

Decompressing and compressing release the interpreter where the codec's library does, but even a small compressed batch
costs 40 us (lz4) to 400 us (zstd) with all that is around it. So a call opens only a few of them, and stops early: the
caller goes on where it ended. Batches that lose nothing are copied as they are.

Batches of transactions are opened here as well, since what becomes of them depends on what came before: `Transactions`
knows how theirs ended. What was aborted goes, and hides nothing older. A marker stays as long as a batch of its
transaction does, then as long as a tombstone; if its producer wrote nothing since, it is left behind as an empty batch,
for the epoch in it.
"""

from typing import Protocol

from ottla.records import compression
from ottla.records._pure_records import encode_record
from ottla.records._twin import twin
from ottla.records.batches import HEADER_BYTES, BatchHeader, read_records
from ottla.records.codec import Codec
from ottla.records.types import Buffer, FilteredRecords, RunEnd

OPENED_AT_ONCE = 32
PLAIN_OPENED_AT_ONCE = 512
_CODEC_BITS = 0x07
_HORIZON_BIT = 0x40
_EMPTY_BATCH_BITS = 0x08 | 0x10 | 0x20  # append time, transactional, control: what an empty batch keeps

OffsetMap = twin.OffsetMap
BatchFilter = twin.BatchFilter


class Transactions(Protocol):
    """How the transactions ended whose batches are compacted. The batches come in the order of the log.

    A marker that may go gets `horizon_ms`, and goes in the first compaction whose `now_ms` has reached that.
    """

    now_ms: int
    horizon_ms: int

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether a batch with records is of a transaction that was aborted."""
        ...

    def see_batch(self, header: BatchHeader) -> bool:
        """The same, of a batch that is about to be filtered."""
        ...

    def see_marker(self, header: BatchHeader, batch: Buffer) -> bool:
        """Whether the batch with a marker may go: nothing is left of its transaction."""
        ...

    def keeps_epoch(self, header: BatchHeader) -> bool:
        """Whether a marker is the last that is known of its producer."""
        ...


def _is_worth(codec_bits: int) -> int:
    """What a batch counts for among those that are opened at once."""
    return PLAIN_OPENED_AT_ONCE // OPENED_AT_ONCE if codec_bits else 1


def map_batches(
    offset_map: OffsetMap, chunk: Buffer, start_offset: int, transactions: Transactions
) -> tuple[int, bool]:
    """Note the last offset of each key in a chunk: how many bytes of it were read, and whether all of them fitted."""
    position, end = offset_map.add_batches(chunk, 0, start_offset)
    opened = 0
    while end is RunEnd.LOOK and opened < PLAIN_OPENED_AT_ONCE:
        header = twin.read_header(chunk, position)
        opened += _is_worth(header.attributes & _CODEC_BITS)
        if header.is_transactional and transactions.is_aborted(header):
            offset_map.pass_over(header.last_offset)
        else:
            batch = memoryview(chunk)[position : position + header.size_bytes]
            if not offset_map.add_payload(_plain(batch, header), header, start_offset):
                return position, False
        position, end = offset_map.add_batches(chunk, position + header.size_bytes, start_offset)
    return position, end is not RunEnd.FULL


def filter_batches(batch_filter: BatchFilter, chunk: Buffer, transactions: Transactions) -> tuple[list[bytes], int]:
    """What stays of the first batches in a chunk, and how many bytes of it these were."""
    output, position, end = batch_filter.filter_batches(chunk, 0)
    pieces = [output]
    opened = 0
    while end is RunEnd.LOOK and opened < PLAIN_OPENED_AT_ONCE:
        header = twin.read_header(chunk, position)
        opened += _is_worth(header.attributes & _CODEC_BITS)
        batch = memoryview(chunk)[position : position + header.size_bytes]
        pieces.append(_filter_opened(batch_filter, batch, header, transactions))
        output, position, end = batch_filter.filter_batches(chunk, position + header.size_bytes)
        pieces.append(output)
    return [piece for piece in pieces if piece], position


def _plain(batch: memoryview, header: BatchHeader) -> Buffer:
    """The decompressed payload. A batch without records has none that a codec could read."""
    stored = batch[HEADER_BYTES:]
    return compression.decompress(header.compression, stored) if header.record_count else stored


def _filter_opened(
    batch_filter: BatchFilter, batch: memoryview, header: BatchHeader, transactions: Transactions
) -> bytes:
    if header.is_control:
        return _filter_marker(batch_filter, batch, header, transactions)
    if header.is_transactional and transactions.see_batch(header):
        filtered: FilteredRecords | None = _nothing_of(header)
    else:
        filtered = batch_filter.filter_payload(_plain(batch, header), header)
    if filtered is None:
        return bytes(batch)
    if not filtered.record_count and not batch_filter.keeps_empty(header):
        return b""
    return _framed(header, filtered)


def _filter_marker(
    batch_filter: BatchFilter, batch: memoryview, header: BatchHeader, transactions: Transactions
) -> bytes:
    if not transactions.see_marker(header, batch):
        return bytes(batch)
    has_horizon = bool(header.attributes & _HORIZON_BIT)
    if not header.record_count or (has_horizon and header.base_timestamp <= transactions.now_ms):
        stays = batch_filter.keeps_empty(header) or transactions.keeps_epoch(header)
        return _framed(header, _nothing_of(header)) if stays else b""
    if has_horizon:
        return bytes(batch)
    horizon_ms = transactions.horizon_ms
    payload = b"".join(
        encode_record(record.timestamp - horizon_ms, record.offset - header.base_offset, record.key, record.value, [])
        for record in read_records(batch)
    )
    attributes = header.attributes | _HORIZON_BIT
    filtered = FilteredRecords(payload, header.record_count, horizon_ms, header.max_timestamp, attributes)
    return _framed(header, filtered)


def _nothing_of(header: BatchHeader) -> FilteredRecords:
    return FilteredRecords(b"", 0, -1, header.max_timestamp, header.attributes)


def _framed(header: BatchHeader, filtered: FilteredRecords) -> bytes:
    codec, attributes = header.compression, filtered.attributes
    if not filtered.record_count:
        codec = Codec.NONE
        attributes &= _EMPTY_BATCH_BITS
    return twin.frame_batch(
        compression.compress(codec, filtered.payload),
        header.base_offset,
        header.partition_leader_epoch,
        attributes,
        header.last_offset_delta,
        filtered.base_timestamp,
        filtered.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        filtered.record_count,
    )
