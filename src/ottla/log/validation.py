"""What a producer's bytes must satisfy before they are appended.

Only the 61 bytes of the header are read, and the CRC is checked, in one native call. The records themselves are
looked at in three cases that the topic asks for: a compacted topic refuses records without a key, a topic with a
limit on old timestamps needs the smallest one, and a topic with a codec of its own has batches compressed again.

| refused                                                                       | error               |
|-------------------------------------------------------------------------------|---------------------|
| no batch at all, more than one, an older message format                       | INVALID_RECORD      |
| a base offset other than 0, a count that contradicts the offsets, no records  | INVALID_RECORD      |
| a control batch, a producer id without a sequence                             | INVALID_RECORD      |
| an unknown codec                                                              | UNKNOWN_SERVER_ERROR |
| a record without a key on a compacted topic                                   | INVALID_RECORD      |
| larger than max.message.bytes, as it came or compressed again                 | MESSAGE_TOO_LARGE   |
| impossible lengths, a wrong CRC                                               | CORRUPT_MESSAGE     |
| a time outside of the topic's limits, or stamped as append time by a client   | INVALID_TIMESTAMP   |
"""

from ottla.log.config import LogConfig
from ottla.log.config_keys import INT64_MAX
from ottla.log.files import TopicPartition
from ottla.log.refused_records import UnnamedTimestamps, check_records, stamped_by_client
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.records import (
    HEADER_BYTES,
    BatchHeader,
    Codec,
    CorruptRecord,
    inspect_batches,
    read_header,
    recompress,
    set_log_append_time,
)

_ATTRIBUTES_LOW_BYTE = 22
_CODEC_BITS = 0x07
_LAST_CODEC = 4
_LOG_APPEND_TIME_BIT = 0x08
_CONTROL_BIT = 0x20
_SMALLEST_RECORD_BYTES = 7
_LENGTH_START, _LENGTH_END, _MAGIC, _LAST_MAGIC = 8, 12, 16, 2
_SMALLEST_BATCH_BYTES = 26
"""Of the oldest format: below this nothing can be a batch of any."""


class NotOneBatch(KafkaError):
    """A producer sends one whole batch for each partition."""

    def __init__(self, batches: int) -> None:
        super().__init__(ErrorCode.INVALID_RECORD, f"exactly one whole record batch expected, {batches} came")


def needs_records(config: LogConfig) -> bool:
    """Whether batches of this topic are looked into, not only at."""
    return (
        config.compression_type != "producer" or config.compact or config.message_timestamp_before_max_ms != INT64_MAX
    )


def must_decompress(records: memoryview, config: LogConfig) -> bool:
    """Whether validating this batch means work on compressed records, which takes too long for the loop."""
    if not needs_records(config):
        return False
    if config.compression_type != "producer":
        return True
    return len(records) >= HEADER_BYTES and bool(records[_ATTRIBUTES_LOW_BYTE] & _CODEC_BITS)


def validate_for_append(records: memoryview, config: LogConfig, now_ms: int) -> tuple[memoryview, list[BatchHeader]]:
    """The batch to append and its header, or KafkaError. The bytes are the ones given unless they had to change."""
    try:
        headers = inspect_batches(records, True)
    except CorruptRecord:
        _check_shape(records)
        raise
    if len(headers) != 1:
        raise NotOneBatch(len(headers))
    header = headers[0]
    size_bytes = header.size_bytes
    if size_bytes > config.max_message_bytes:
        raise _too_large(size_bytes, config)
    attributes = header.attributes
    if (
        header.base_offset != 0
        or header.record_count <= 0
        or header.last_offset_delta != header.record_count - 1
        or attributes & _CONTROL_BIT
        or (header.producer_id >= 0 and header.base_sequence < 0)
        or attributes & _CODEC_BITS > _LAST_CODEC
        or (not attributes & _CODEC_BITS and header.record_count * _SMALLEST_RECORD_BYTES > size_bytes - HEADER_BYTES)
    ):
        raise _invalid_header(header)
    if attributes & _LOG_APPEND_TIME_BIT:
        raise stamped_by_client(header)
    if len(records) != size_bytes:
        # A piece of a batch at the end is dropped, as Kafka does.
        _check_shape(records)
        records = records[:size_bytes]
    has_times = config.message_timestamp_type == "CreateTime"
    if has_times and header.max_timestamp - now_ms > config.message_timestamp_after_max_ms:
        raise UnnamedTimestamps(config, header.max_timestamp, now_ms)
    has_limit = has_times and config.message_timestamp_before_max_ms != INT64_MAX
    if has_limit or (config.cleanup_policy != ("delete",) and config.compact):
        check_records(records, config, now_ms)
    if has_times and config.compression_type == "producer":
        return records, headers
    return _rewrite(records, header, config, now_ms)


def _check_shape(records: memoryview) -> None:
    """Raise what Kafka finds when it only counts batches, which it does before it looks into one."""
    position = batches = 0
    while len(records) - position >= _LENGTH_END:
        size_bytes = _LENGTH_END + int.from_bytes(
            records[position + _LENGTH_START : position + _LENGTH_END], signed=True
        )
        if size_bytes < _SMALLEST_BATCH_BYTES:
            raise CorruptRecord(f"a batch of {_SMALLEST_BATCH_BYTES} bytes or more expected, {size_bytes} came")
        left_bytes = len(records) - position
        if left_bytes > _MAGIC and records[position + _MAGIC] > _LAST_MAGIC:
            raise CorruptRecord(f"a magic from 0 to {_LAST_MAGIC} expected, {records[position + _MAGIC]} came")
        if left_bytes < size_bytes:
            break
        position += size_bytes
        batches += 1
    if batches != 1:
        raise NotOneBatch(batches)


def _rewrite(
    records: memoryview, header: BatchHeader, config: LogConfig, now_ms: int
) -> tuple[memoryview, list[BatchHeader]]:
    """Give the batch the topic's codec and, where the topic wants it, the time of the append."""
    if config.compression_type != "producer":
        name = config.compression_type
        codec = Codec.NONE if name == "uncompressed" else Codec.from_name(name)
        if codec != header.compression:
            records = memoryview(bytearray(recompress(records, codec, _level(codec, config))))
            if len(records) > config.max_message_bytes:
                raise _too_large(len(records), config)
    if config.message_timestamp_type == "LogAppendTime":
        if records.readonly:
            records = memoryview(bytearray(records))
        set_log_append_time(records, 0, now_ms)
    return records, [read_header(records)]


def _level(codec: Codec, config: LogConfig) -> int | None:
    if codec is Codec.GZIP:
        return config.compression_gzip_level if config.compression_gzip_level != -1 else None
    if codec is Codec.LZ4:
        return config.compression_lz4_level
    return config.compression_zstd_level if codec is Codec.ZSTD else None


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, message)


def _invalid_header(header: BatchHeader) -> KafkaError:
    if header.base_offset != 0:
        return _invalid(f"a base offset of 0 expected from a producer, {header.base_offset} came")
    if header.is_control:
        return _invalid("control records expected from brokers only, a producer sent one")
    if header.record_count <= 0 or header.last_offset_delta != header.record_count - 1:
        return _invalid(
            f"as many records as offsets expected, {header.record_count} records came for a last offset delta of "
            f"{header.last_offset_delta}"
        )
    if header.producer_id >= 0 and header.base_sequence < 0:
        return _invalid(f"a sequence expected from producer {header.producer_id}, {header.base_sequence} came")
    if header.attributes & _CODEC_BITS > _LAST_CODEC:
        return KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"a codec from 0 to {_LAST_CODEC} expected, {header.attributes & _CODEC_BITS} came",
        )
    return _invalid(f"{header.record_count} records do not fit into {header.size_bytes} bytes")


def _too_large(size_bytes: int, config: LogConfig) -> KafkaError:
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"a batch of at most max.message.bytes={config.max_message_bytes} expected, {size_bytes} bytes came",
    )


def does_not_fit(
    topic_partition: TopicPartition, config: LogConfig, size_bytes: int, header: BatchHeader
) -> KafkaError:
    """Why a valid batch cannot be appended to any segment."""
    if size_bytes > config.segment_bytes:
        return KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"{topic_partition}: a batch of at most segment.bytes={config.segment_bytes} bytes expected, "
            f"{size_bytes} came",
        )
    return KafkaError(
        ErrorCode.INVALID_RECORD,
        f"{topic_partition}: {header.record_count} records do not fit into the offsets of one segment",
    )
