"""What can be wrong with a record batch, said in the same words by the native code and by its pure twin.

Both twins find a fault as a number and a place; the sentences live here once, so the twins cannot drift apart.
"""

from enum import IntEnum

from ottla.protocol.errors import ErrorCode, KafkaError


class CorruptRecord(KafkaError):
    """The bytes are not a record batch, or not the one their checksum was made for."""

    def __init__(self, message: str, code: ErrorCode = ErrorCode.CORRUPT_MESSAGE) -> None:
        super().__init__(code, message)


class UnsupportedMagic(CorruptRecord):
    """A batch in a message format older than record batch v2, which is the only one kept here."""

    def __init__(self, message: str) -> None:
        super().__init__(message, ErrorCode.INVALID_RECORD)


class DecompressedTooLarge(CorruptRecord):
    """A compressed batch grows beyond the limit; it was given up before the memory was taken."""

    def __init__(self, codec_name: str, limit_bytes: int) -> None:
        message = f"{codec_name} batch: at most {limit_bytes} bytes after decompression expected, more came"
        super().__init__(message, ErrorCode.MESSAGE_TOO_LARGE)


class PureFallbackWarning(RuntimeWarning):
    """The compiled extension is missing, so records are handled by the slow pure-Python twin."""


class Fault(IntEnum):
    """What is wrong inside the records of a batch; numbered as in _wire.h."""

    VARINT = 1
    RECORD_LENGTH = 2
    KEY_LENGTH = 3
    VALUE_LENGTH = 4
    HEADER_COUNT = 5
    HEADER_KEY_LENGTH = 6
    HEADER_VALUE_LENGTH = 7
    RECORD_SIZE = 8
    RECORD_COUNT = 9
    TRAILING_BYTES = 10
    OFFSET_RANGE = 11
    TIMESTAMP_RANGE = 12
    OFFSET_ORDER = 13


_SENTENCES = {
    Fault.VARINT: "a variable-length number is cut off or too long",
    Fault.RECORD_LENGTH: "the record's length reaches beyond the batch or is smaller than any record",
    Fault.KEY_LENGTH: "the key's length reaches beyond the record or is below -1",
    Fault.VALUE_LENGTH: "the value's length reaches beyond the record or is below -1",
    Fault.HEADER_COUNT: "the number of headers is negative or more than the record can hold",
    Fault.HEADER_KEY_LENGTH: "a header key's length reaches beyond the record or is negative",
    Fault.HEADER_VALUE_LENGTH: "a header value's length reaches beyond the record or is below -1",
    Fault.RECORD_SIZE: "the fields do not fill the record's declared length",
    Fault.RECORD_COUNT: "the batch declares a record count that is negative or more than its bytes can hold",
    Fault.TRAILING_BYTES: "bytes are left over after the declared number of records",
    Fault.OFFSET_RANGE: "base offset and offset delta do not add up to a 64-bit offset",
    Fault.TIMESTAMP_RANGE: "base timestamp and timestamp delta do not add up to a 64-bit timestamp",
    Fault.OFFSET_ORDER: "the offset delta is not the record's place in the batch",
}


def record_fault(fault: int, record_index: int) -> CorruptRecord:
    return CorruptRecord(f"record {record_index} of the batch: {_SENTENCES[Fault(fault)]}")


def last_offset_delta_differs(last_offset_delta: int, record_count: int) -> CorruptRecord:
    return CorruptRecord(
        f"a last offset delta of {record_count - 1} expected for {record_count} records, {last_offset_delta} came"
    )


def short_header(position: int, came_bytes: int, header_bytes: int) -> CorruptRecord:
    return CorruptRecord(f"batch at {position}: a header of {header_bytes} bytes expected, {came_bytes} bytes came")


def impossible_length(position: int, length: int, smallest: int) -> CorruptRecord:
    return CorruptRecord(f"batch at {position}: a length of {smallest} or more expected, {length} came")


def unknown_magic(position: int, magic: int) -> CorruptRecord:
    message = f"batch at {position}: magic 2 expected, {magic} came"
    return UnsupportedMagic(message) if magic in (0, 1) else CorruptRecord(message)


def cut_batch(position: int, size_bytes: int, came_bytes: int) -> CorruptRecord:
    return CorruptRecord(f"batch at {position}: {size_bytes} bytes expected, {came_bytes} bytes came")


def wrong_crc(position: int, stored: int, computed: int) -> CorruptRecord:
    return CorruptRecord(f"batch at {position}: CRC-32C 0x{stored:08x} expected, the bytes give 0x{computed:08x}")


def unknown_codec(number: int) -> CorruptRecord:
    return CorruptRecord(f"a compression codec from 0 to 4 expected, {number} came")


def payload_too_large(payload_bytes: int) -> OverflowError:
    return OverflowError(f"a batch of less than 2 GiB expected, {payload_bytes} bytes of records came")


def column_full() -> OverflowError:
    return OverflowError("at most 2 GiB for each column of one Arrow batch expected, more came: pass fewer buffers")


def broken_column(row: int) -> ValueError:
    return ValueError(f"row {row}: Arrow offsets inside their data expected, offsets beyond it came")


def short_column(what: str) -> ValueError:
    return ValueError(f"an Arrow column with a buffer for all its rows expected, a shorter one came: {what}")


def nameless_header(row: int) -> ValueError:
    return ValueError(f"row {row}: a header with a name expected, null came")


def timestamp_distance(first: int, later: int) -> OverflowError:
    return OverflowError(f"a 64-bit distance between timestamps expected, {first} and {later} came")


def row_too_large(row: int) -> OverflowError:
    return OverflowError(f"row {row}: a record of less than 2 GiB expected, a larger one came")
