"""The pure-Python twin of `_native`: the same names, the same bytes, the same errors, and no compiler needed."""

from ottla.records._pure_arrow import ArrowDecoder, ArrowEncoder
from ottla.records._pure_batches import (
    assign_offset,
    check_crc,
    crc32c,
    frame_batch,
    frame_passing_batch,
    inspect_batches,
    joined,
    read_header,
    scan_headers,
    set_log_append_time,
)
from ottla.records._pure_compaction import BatchFilter, OffsetMap
from ottla.records._pure_header import BatchHeader
from ottla.records._pure_records import (
    Record,
    RecordEncoder,
    check_records,
    decode_records,
    find_refused,
    first_at_or_after,
    latest_timestamp,
)

__all__ = [
    "ArrowDecoder",
    "ArrowEncoder",
    "BatchFilter",
    "BatchHeader",
    "OffsetMap",
    "Record",
    "RecordEncoder",
    "assign_offset",
    "check_crc",
    "check_records",
    "crc32c",
    "decode_records",
    "find_refused",
    "first_at_or_after",
    "frame_batch",
    "frame_passing_batch",
    "inspect_batches",
    "joined",
    "latest_timestamp",
    "read_header",
    "scan_headers",
    "set_log_append_time",
]
