"""Record batches: reading, building, checking and compressing them, and the way from and to Arrow.

The hot path of the broker is one call, `inspect_batches`: all headers of a buffer with their CRCs checked.
"""

from ottla.records._twin import IS_NATIVE, announced, twin
from ottla.records.arrow import ArrowRows, binary_column, encode_rows, from_arrow, to_arrow
from ottla.records.batches import (
    HEADER_BYTES,
    BatchBuilder,
    BatchHeader,
    Record,
    build_batch,
    find_refused,
    find_timestamp,
    max_timestamp_record,
    read_records,
    recompress,
    validate_records,
)
from ottla.records.codec import Codec
from ottla.records.compaction import BatchFilter, OffsetMap, filter_batches, map_batches
from ottla.records.compression import MAX_DECOMPRESSED_BYTES, compress, decompress
from ottla.records.control import (
    ControlType,
    EndTransactionMarker,
    build_end_transaction,
    control_type,
    read_control_batch,
    read_end_transaction,
)
from ottla.records.errors import CorruptRecord, DecompressedTooLarge, PureFallbackWarning, UnsupportedMagic
from ottla.records.types import Buffer, RecordHeaders, RecordLike

__all__ = [
    "HEADER_BYTES",
    "IS_NATIVE",
    "MAX_DECOMPRESSED_BYTES",
    "ArrowRows",
    "BatchBuilder",
    "BatchFilter",
    "BatchHeader",
    "Buffer",
    "Codec",
    "ControlType",
    "CorruptRecord",
    "DecompressedTooLarge",
    "EndTransactionMarker",
    "OffsetMap",
    "PureFallbackWarning",
    "Record",
    "RecordHeaders",
    "RecordLike",
    "UnsupportedMagic",
    "assign_offset",
    "binary_column",
    "build_batch",
    "build_end_transaction",
    "check_crc",
    "compress",
    "control_type",
    "crc32c",
    "decompress",
    "encode_rows",
    "filter_batches",
    "find_refused",
    "find_timestamp",
    "frame_batch",
    "frame_passing_batch",
    "from_arrow",
    "inspect_batches",
    "map_batches",
    "max_timestamp_record",
    "read_control_batch",
    "read_end_transaction",
    "read_header",
    "read_records",
    "recompress",
    "scan_headers",
    "set_log_append_time",
    "to_arrow",
    "validate_records",
]

assign_offset = twin.assign_offset
check_crc = twin.check_crc
crc32c = twin.crc32c
frame_batch = announced(twin.frame_batch)
frame_passing_batch = announced(twin.frame_passing_batch)
inspect_batches = announced(twin.inspect_batches)
read_header = twin.read_header
scan_headers = twin.scan_headers
set_log_append_time = twin.set_log_append_time
