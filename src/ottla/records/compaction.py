"""Compaction of a buffer of batches: the twins do the plain ones in one go, compressed ones are opened here.

Decompressing and compressing release the interpreter where the codec's library does, but even a small compressed batch
costs 40 us (lz4) to 400 us (zstd) with all that is around it. So a call opens only a few of them, and stops early: the
caller goes on where it ended. Batches that lose nothing are copied as they are.
"""

from ottla.records import compression
from ottla.records._twin import twin
from ottla.records.batches import HEADER_BYTES, BatchHeader
from ottla.records.codec import Codec
from ottla.records.types import Buffer, RunEnd

OPENED_AT_ONCE = 32
_EMPTY_BATCH_BITS = 0x08 | 0x10 | 0x20  # append time, transactional, control: what an empty batch keeps

OffsetMap = twin.OffsetMap
BatchFilter = twin.BatchFilter


def map_batches(offset_map: OffsetMap, chunk: Buffer, start_offset: int) -> tuple[int, bool]:
    """Note the last offset of each key in a chunk: how many bytes of it were read, and whether all of them fitted.

    What a transaction wrote hides nothing older, since it may have been aborted.
    """
    position, end = offset_map.add_batches(chunk, 0, start_offset)
    opened = 0
    while end is RunEnd.LOOK and opened < OPENED_AT_ONCE:
        opened += 1
        header = twin.read_header(chunk, position)
        if header.is_transactional:
            offset_map.pass_over(header.last_offset)
        else:
            batch = memoryview(chunk)[position : position + header.size_bytes]
            if not offset_map.add_payload(_plain(batch, header), header, start_offset):
                return position, False
        position, end = offset_map.add_batches(chunk, position + header.size_bytes, start_offset)
    return position, end is not RunEnd.FULL


def filter_batches(batch_filter: BatchFilter, chunk: Buffer) -> tuple[list[bytes], int]:
    """What stays of the first batches in a chunk, and how many bytes of it these were."""
    output, position, end = batch_filter.filter_batches(chunk, 0)
    pieces = [output]
    opened = 0
    while end is RunEnd.LOOK and opened < OPENED_AT_ONCE:
        opened += 1
        size_bytes = twin.read_header(chunk, position).size_bytes
        pieces.append(_filter_compressed(batch_filter, memoryview(chunk)[position : position + size_bytes]))
        output, position, end = batch_filter.filter_batches(chunk, position + size_bytes)
        pieces.append(output)
    return [piece for piece in pieces if piece], position


def _plain(batch: memoryview, header: BatchHeader) -> Buffer:
    """The decompressed payload. A batch without records has none that a codec could read."""
    stored = batch[HEADER_BYTES:]
    return compression.decompress(header.compression, stored) if header.record_count else stored


def _filter_compressed(batch_filter: BatchFilter, batch: memoryview) -> bytes:
    header = twin.read_header(batch)
    codec = header.compression
    if header.is_control and header.record_count > 0:
        return bytes(batch)
    filtered = batch_filter.filter_payload(_plain(batch, header), header)
    if filtered is None:
        return bytes(batch)
    attributes = filtered.attributes
    if not filtered.record_count:
        if not batch_filter.keeps_empty(header):
            return b""
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
