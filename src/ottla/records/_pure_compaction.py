"""Compaction in pure Python, and the readable account of its rules; `_compaction.h` has the same ones.

    a record stays if    its offset is beyond what the map has read, or
                         it has a key, no later record has the same key, and it has a value or may not go yet
    a tombstone may go   once its batch has a delete horizon and the horizon is reached
    a horizon is given   to each batch that has none and keeps a tombstone: it takes the place of the base timestamp
    an empty batch stays if it has the last sequence of a producer that is still known, or ends what was cleaned

Offsets never change, nor does the range of a batch: base offset and last offset delta stay, so does the sequence.
"""

from array import array
from collections.abc import Iterator

from ottla.records import errors
from ottla.records._pure_batches import check_crc, crc32c, frame_batch, read_header
from ottla.records._pure_header import HEADER_BYTES, BatchHeader
from ottla.records._pure_records import ParsedRecord, encode_record, walk
from ottla.records.errors import Fault
from ottla.records.types import Buffer, FilteredRecords, RunEnd

_CODEC_BITS = 0x07
_APPEND_TIME_BIT = 0x08
_TRANSACTION_BIT = 0x10
_CONTROL_BIT = 0x20
_HORIZON_BIT = 0x40
_CRC_FROM = 21
_INT64_MIN = -(2**63)
_INT64_MAX = 2**63 - 1


def _whole_batch(view: memoryview, position: int) -> BatchHeader | None:
    """The header of the batch at `position`, whose CRC is right; None when it is not all there."""
    if len(view) - position < HEADER_BYTES:
        return None
    header = read_header(view, position)
    if header.size_bytes > len(view) - position:
        return None
    if not check_crc(view, position, header):
        stored = view[position + _CRC_FROM : position + header.size_bytes]
        raise errors.wrong_crc(position, header.crc, crc32c(stored))
    if header.base_offset < 0 or header.last_offset_delta < 0 or header.last_offset >= _INT64_MAX:
        raise errors.record_fault(Fault.OFFSET_RANGE, 0)
    return header


def _rising(payload: Buffer, header: BatchHeader) -> Iterator[ParsedRecord]:
    """The records, whose offsets must rise and stay inside of their batch."""
    previous_delta = -1
    for index, record in enumerate(walk(payload, header)):
        if not previous_delta < record.offset_delta <= header.last_offset_delta:
            raise errors.record_fault(Fault.OFFSET_ORDER, index)
        previous_delta = record.offset_delta
        yield record


class OffsetMap:
    """The last offset of each key that was added, for at most `key_limit` keys.

    `latest_offset` is how far the log was read. Keys are kept as they are, so slots and seed mean nothing here.
    """

    def __init__(self, slot_count: int, key_limit: int, seed: bytes) -> None:
        if not 0 < key_limit < slot_count:
            raise ValueError(f"more slots than keys and at least one key expected, {slot_count} and {key_limit} came")
        if len(seed) != 16:
            raise ValueError(f"a seed of 16 bytes expected, {len(seed)} came")
        self._key_limit = key_limit
        self._offsets: dict[bytes, int] = {}
        self.latest_offset = -1

    def __len__(self) -> int:
        return len(self._offsets)

    def get(self, key: bytes) -> int:
        """The last offset of a key, -1 when it is unknown."""
        return self._offsets.get(key, -1)

    def pass_over(self, last_offset: int) -> None:
        """Note that the log was read up to here, whatever was there."""
        self.latest_offset = max(self.latest_offset, last_offset)

    def add_batches(self, buffer: Buffer, position: int, start_offset: int) -> tuple[int, RunEnd]:
        """Add the keys at `start_offset` and above, from the batch at `position` on; gives where and why it ended.

        END: no whole batch is left. LOOK: that batch is compressed or of a transaction. FULL: no key fits any more.
        """
        view = memoryview(buffer).cast("B")
        while (header := _whole_batch(view, position)) is not None:
            if header.last_offset >= start_offset:
                if header.is_control:
                    self.pass_over(header.last_offset)
                elif header.attributes & (_CODEC_BITS | _TRANSACTION_BIT):
                    return position, RunEnd.LOOK
                else:
                    payload = view[position + HEADER_BYTES : position + header.size_bytes]
                    if not self.add_payload(payload, header, start_offset):
                        return position, RunEnd.FULL
            position += header.size_bytes
        return min(position, len(view)), RunEnd.END

    def add_payload(self, payload: Buffer, header: BatchHeader, start_offset: int) -> bool:
        """Add the keys of one decompressed payload; False when the map is full."""
        for record in _rising(payload, header):
            if record.key is not None and record.offset >= start_offset:
                if len(self._offsets) >= self._key_limit:
                    return False
                self._offsets[record.key] = record.offset
                self.latest_offset = record.offset
        self.pass_over(header.last_offset)
        return True


class BatchFilter:
    """What stays of batches, by the rules above; `kept_offsets` are rising 64-bit numbers of this machine."""

    def __init__(
        self, offset_map: OffsetMap, now_ms: int, horizon_ms: int, end_offset: int, kept_offsets: bytes
    ) -> None:
        self._map = offset_map
        self._now_ms = now_ms
        self._horizon_ms = horizon_ms
        self._end_offset = end_offset
        self._kept = frozenset(array("q", kept_offsets))

    def filter_batches(self, buffer: Buffer, position: int) -> tuple[bytes, int, RunEnd]:
        """What stays from the batch at `position` on, where it ended, and why: END, or LOOK at a batch that is
        compressed or of a transaction."""
        view = memoryview(buffer).cast("B")
        output = bytearray()
        while (header := _whole_batch(view, position)) is not None:
            if header.attributes & (_CODEC_BITS | _TRANSACTION_BIT | _CONTROL_BIT):
                return bytes(output), position, RunEnd.LOOK
            output += self._filter_batch(view[position : position + header.size_bytes], header)
            position += header.size_bytes
        return bytes(output), min(position, len(view)), RunEnd.END

    def _filter_batch(self, batch: memoryview, header: BatchHeader) -> Buffer:
        filtered = self.filter_payload(batch[HEADER_BYTES:], header)
        if filtered is None:
            return batch
        attributes = filtered.attributes
        if not filtered.record_count:
            if not self.keeps_empty(header):
                return b""
            attributes &= _APPEND_TIME_BIT
        return frame_batch(
            filtered.payload,
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

    def filter_payload(self, payload: Buffer, header: BatchHeader) -> FilteredRecords | None:
        """What stays of one decompressed payload, and the header fields that go with it; None when nothing changes."""
        staying = [
            (index, record) for index, record in enumerate(_rising(payload, header)) if self._stays(record, header)
        ]
        if not staying:
            return FilteredRecords(b"", 0, -1, header.max_timestamp, header.attributes)
        has_tombstone = any(record.value is None for _, record in staying)
        sets_horizon = has_tombstone and not header.attributes & _HORIZON_BIT
        if len(staying) == header.record_count and not sets_horizon:
            return None
        attributes = header.attributes | (_HORIZON_BIT if sets_horizon else 0)
        if sets_horizon:
            base_timestamp = self._horizon_ms
        elif attributes & _HORIZON_BIT:
            base_timestamp = header.base_timestamp
        else:
            base_timestamp = staying[0][1].timestamp
        output = bytearray()
        for index, record in staying:
            delta = record.timestamp - base_timestamp
            if not _INT64_MIN <= delta <= _INT64_MAX:
                raise errors.record_fault(Fault.TIMESTAMP_RANGE, index)
            output += encode_record(delta, record.offset_delta, record.key, record.value, record.headers)
        latest = header.max_timestamp if header.has_log_append_time else -1
        max_timestamp = max(latest, *(record.timestamp for _, record in staying))
        return FilteredRecords(bytes(output), len(staying), base_timestamp, max_timestamp, attributes)

    def _stays(self, record: ParsedRecord, header: BatchHeader) -> bool:
        if record.offset > self._map.latest_offset:
            return True
        if record.key is None:
            return False
        if record.value is None and header.attributes & _HORIZON_BIT and self._now_ms >= header.base_timestamp:
            return False
        return record.offset >= self._map.get(record.key)

    def keeps_empty(self, header: BatchHeader) -> bool:
        """Whether the batch stays when all its records are gone."""
        if header.next_offset == self._end_offset:
            return True
        return header.producer_id >= 0 and header.last_offset in self._kept
