"""The types of the compiled twin, and with them of the pure one: both have exactly these names."""

from collections.abc import Iterable

from ottla.records.codec import Codec
from ottla.records.types import (
    BinaryColumn,
    Buffer,
    DecodedColumns,
    EncodedRows,
    FilteredRecords,
    ListColumn,
    NumberColumn,
    RecordHeaders,
    RecordLike,
    RunEnd,
)

class BatchHeader:
    base_offset: int
    size_bytes: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    def __init__(
        self,
        *,
        base_offset: int = 0,
        size_bytes: int = 61,
        partition_leader_epoch: int = -1,
        magic: int = 2,
        crc: int = 0,
        attributes: int = 0,
        last_offset_delta: int = 0,
        base_timestamp: int = -1,
        max_timestamp: int = -1,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        record_count: int = 0,
    ) -> None: ...
    @property
    def compression(self) -> Codec: ...
    @property
    def is_transactional(self) -> bool: ...
    @property
    def is_control(self) -> bool: ...
    @property
    def has_log_append_time(self) -> bool: ...
    @property
    def has_producer(self) -> bool: ...
    @property
    def last_offset(self) -> int: ...
    @property
    def next_offset(self) -> int: ...
    @property
    def last_sequence(self) -> int: ...

class Record:
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: RecordHeaders
    def __init__(
        self,
        offset: int = -1,
        timestamp: int = -1,
        key: bytes | None = None,
        value: bytes | None = None,
        headers: RecordHeaders = (),
    ) -> None: ...

class RecordEncoder:
    @property
    def record_count(self) -> int: ...
    @property
    def last_offset_delta(self) -> int: ...
    @property
    def base_timestamp(self) -> int: ...
    @property
    def max_timestamp(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    def append(
        self,
        timestamp: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: Iterable[tuple[str, Buffer | None]] = (),
    ) -> int: ...
    def append_at(
        self,
        offset_delta: int,
        timestamp: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: Iterable[tuple[str, Buffer | None]] = (),
    ) -> int: ...
    def extend(
        self, records: Iterable[RecordLike], default_timestamp: int = -1, base_offset: int | None = None
    ) -> None: ...
    def payload(self) -> bytes: ...

class ArrowDecoder:
    def __init__(self, first_offset: int, end_offset: int, timestamp_factor: int, with_headers: bool) -> None: ...
    def reserve(self, rows: int, payload_bytes: int) -> None: ...
    def add(self, payload: Buffer, header: BatchHeader) -> None: ...
    def finish(self) -> DecodedColumns: ...

class ArrowEncoder:
    def __init__(
        self,
        row_count: int,
        key: BinaryColumn | None,
        value: BinaryColumn | None,
        timestamp: NumberColumn | None,
        default_timestamp: int,
        headers: ListColumn | None,
        header_count: int,
        header_name: BinaryColumn | None,
        header_value: BinaryColumn | None,
        rows: Buffer | None = None,
    ) -> None: ...
    def next_batch(self, max_bytes: int) -> EncodedRows | None: ...

class OffsetMap:
    def __init__(self, slot_count: int, key_limit: int, seed: bytes) -> None: ...
    def __len__(self) -> int: ...
    @property
    def latest_offset(self) -> int: ...
    def get(self, key: bytes) -> int: ...
    def pass_over(self, last_offset: int) -> None: ...
    def add_batches(self, buffer: Buffer, position: int, start_offset: int) -> tuple[int, RunEnd]: ...
    def add_payload(self, payload: Buffer, header: BatchHeader, start_offset: int) -> bool: ...

class BatchFilter:
    def __init__(
        self, offset_map: OffsetMap, now_ms: int, horizon_ms: int, end_offset: int, kept_offsets: bytes
    ) -> None: ...
    def filter_batches(self, buffer: Buffer, position: int) -> tuple[bytes, int, RunEnd]: ...
    def filter_payload(self, payload: Buffer, header: BatchHeader) -> FilteredRecords | None: ...
    def keeps_empty(self, header: BatchHeader) -> bool: ...

def crc32c(data: Buffer, value: int = 0) -> int: ...
def crc32c_portable(data: Buffer, value: int = 0) -> int: ...
def read_header(buffer: Buffer, position: int = 0) -> BatchHeader: ...
def scan_headers(buffer: Buffer, ignore_partial_tail: bool = False) -> list[BatchHeader]: ...
def inspect_batches(buffer: Buffer, ignore_partial_tail: bool = False) -> list[BatchHeader]: ...
def check_crc(buffer: Buffer, position: int, header: BatchHeader) -> bool: ...
def assign_offset(buffer: Buffer, position: int, base_offset: int, leader_epoch: int) -> None: ...
def set_log_append_time(buffer: Buffer, position: int, timestamp_ms: int) -> None: ...
def frame_batch(
    payload: Buffer,
    base_offset: int,
    leader_epoch: int,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    record_count: int,
) -> bytes: ...
def frame_passing_batch(payload: Buffer, *fields: int) -> Buffer: ...
def joined(parts: list[bytes]) -> Buffer: ...
def decode_records(payload: Buffer, header: BatchHeader) -> list[Record]: ...
def check_records(payload: Buffer, header: BatchHeader) -> None: ...
def find_refused(
    payload: Buffer, header: BatchHeader, needs_key: bool, earliest_ms: int, latest_ms: int, limit: int
) -> tuple[list[int], list[int]]: ...
def first_at_or_after(payload: Buffer, header: BatchHeader, target_ms: int) -> tuple[int, int] | None: ...
def latest_timestamp(payload: Buffer, header: BatchHeader) -> tuple[int, int]: ...
