"""Whole batches: records out of them, batches out of records, and questions about one batch.

Only the records are compressed, never the header. So a payload is decompressed here, once, and the twins only ever
see plain records.
"""

from collections.abc import Iterable

from ottla.records import compression
from ottla.records._twin import twin, warn_if_fallback
from ottla.records.codec import Codec
from ottla.records.compression import MAX_DECOMPRESSED_BYTES
from ottla.records.errors import CorruptRecord, cut_batch
from ottla.records.types import Buffer, RecordLike

HEADER_BYTES = 61

BatchHeader = twin.BatchHeader
Record = twin.Record

_LOG_APPEND_TIME_BIT = 0x08
_TRANSACTIONAL_BIT = 0x10
_CONTROL_BIT = 0x20
_CODEC_BITS = 0x07


class BatchBuilder(twin.RecordEncoder):
    """Collects the records of one batch (`append`, `extend`), and turns them into its bytes with `build`."""

    def __init__(self) -> None:
        warn_if_fallback()
        super().__init__()

    def build(
        self,
        *,
        base_offset: int = 0,
        leader_epoch: int = -1,
        codec: Codec = Codec.NONE,
        level: int | None = None,
        log_append_time: int | None = None,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        transactional: bool = False,
        control: bool = False,
        last_offset_delta: int | None = None,
    ) -> bytes:
        """The batch. `last_offset_delta` may lie behind the last record's: a compacted batch keeps its range."""
        attributes = (
            codec
            | (0 if log_append_time is None else _LOG_APPEND_TIME_BIT)
            | (_TRANSACTIONAL_BIT if transactional else 0)
            | (_CONTROL_BIT if control else 0)
        )
        if last_offset_delta is None:
            last_offset_delta = max(self.last_offset_delta, 0)
        elif last_offset_delta < self.last_offset_delta:
            raise ValueError(
                f"a last offset delta of {self.last_offset_delta} or more expected, {last_offset_delta} came"
            )
        return twin.frame_batch(
            compression.compress(codec, self.payload(), level),
            base_offset,
            leader_epoch,
            attributes,
            last_offset_delta,
            self.base_timestamp,
            self.max_timestamp if log_append_time is None else log_append_time,
            producer_id,
            producer_epoch,
            base_sequence,
            self.record_count,
        )


def build_batch(
    records: Iterable[RecordLike],
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    timestamp: int = -1,
    log_append_time: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    keep_offsets: bool = False,
    last_offset_delta: int | None = None,
) -> bytes:
    """One batch with `records`, numbered from `base_offset` unless they are to keep their own offsets.

    `timestamp` is for the records that have none. With `log_append_time` the batch has that time and its type.
    """
    builder = BatchBuilder()
    builder.extend(records, timestamp, base_offset if keep_offsets else None)
    return builder.build(
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        codec=codec,
        level=level,
        log_append_time=log_append_time,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
        control=control,
        last_offset_delta=last_offset_delta,
    )


def _payload(view: memoryview, header: BatchHeader, position: int, max_decompressed_bytes: int) -> Buffer:
    stored = view[position + HEADER_BYTES : position + header.size_bytes]
    return compression.decompress(header.compression, stored, max_decompressed_bytes)


def _only_batch(batch: Buffer, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES) -> tuple[BatchHeader, Buffer]:
    """Header and plain payload of a buffer that is exactly one batch."""
    header = twin.read_header(batch)
    view = memoryview(batch).cast("B")
    if header.size_bytes > len(view):
        raise cut_batch(0, header.size_bytes, len(view))
    if header.size_bytes < len(view):
        raise CorruptRecord(f"one batch of {header.size_bytes} bytes expected, {len(view)} bytes came")
    return header, _payload(view, header, 0, max_decompressed_bytes)


def read_records(
    buffer: Buffer,
    *,
    check_crc: bool = True,
    ignore_partial_tail: bool = False,
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
) -> list[Record]:
    """The records of all batches in `buffer`, control records among them.

    A fetch may end in the middle of a batch: `ignore_partial_tail` leaves that last piece out.
    """
    headers = (twin.inspect_batches if check_crc else twin.scan_headers)(buffer, ignore_partial_tail)
    records: list[Record] = []
    position = 0
    view = memoryview(buffer).cast("B")
    for header in headers:
        records += twin.decode_records(_payload(view, header, position, max_decompressed_bytes), header)
        position += header.size_bytes
    return records


def recompress(batch: Buffer, codec: Codec, level: int | None = None) -> bytes:
    """The same batch with its records compressed another way; header fields other than codec and CRC stay."""
    header, payload = _only_batch(batch)
    return twin.frame_batch(
        compression.compress(codec, payload, level),
        header.base_offset,
        header.partition_leader_epoch,
        (header.attributes & ~_CODEC_BITS) | codec,
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.record_count,
    )


def validate_records(batch: Buffer, *, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES) -> None:
    """Walk every record of one batch: lengths, count, offset deltas from 0 to n - 1."""
    header, payload = _only_batch(batch, max_decompressed_bytes)
    twin.check_records(payload, header)


def find_refused(
    batch: Buffer, *, needs_key: bool, earliest_ms: int, latest_ms: int, limit: int
) -> tuple[list[int], list[int]]:
    """The places in the batch of records without a key, where one is needed, and of others with a time out of limits.

    At most `limit` in all, the first ones.
    """
    header, payload = _only_batch(batch)
    return twin.find_refused(payload, header, needs_key, earliest_ms, latest_ms, limit)


def find_timestamp(batch: Buffer, target_ms: int) -> tuple[int, int] | None:
    """Offset and timestamp of the first record with a timestamp of `target_ms` or later."""
    header, payload = _only_batch(batch)
    return twin.first_at_or_after(payload, header, target_ms)


def max_timestamp_record(batch: Buffer) -> tuple[int, int]:
    """Offset and timestamp of the first record with the batch's largest timestamp; (-1, -1) when it has none."""
    header, payload = _only_batch(batch)
    return twin.latest_timestamp(payload, header)
