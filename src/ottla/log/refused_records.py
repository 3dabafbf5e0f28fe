"""Which records of a batch a topic refuses, so that a client can send the others again without them.

| refused                                              | error of the batch |
|------------------------------------------------------|--------------------|
| a record without a key on a compacted topic          | INVALID_RECORD     |
| a record whose time is out of limits                 | INVALID_TIMESTAMP  |
| all records of a batch stamped with log append time  | INVALID_TIMESTAMP  |

A batch with the first two has INVALID_TIMESTAMP, and a record with both faults is named for its key, as in Kafka.
"""

from typing import NamedTuple, NoReturn

from ottla.log.config import LogConfig
from ottla.log.config_keys import INT64_MAX
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.records import BatchHeader, CorruptRecord, find_refused
from ottla.runtime import Executor

MOST_NAMED_RECORDS = 10_000
"""More are not named, the first ones are: what a client can make the broker answer is bounded."""
_NO_KEY = "a key for every record expected on a compacted topic, none came"
_CREATE_TIME = "CreateTime"
_CODEC_BITS = 0x07


class RefusedRecord(NamedTuple):
    batch_index: int
    message: str


class RefusedRecords(KafkaError):
    """A batch is refused for the sake of the `records` that it names, by their places in the batch."""

    def __init__(self, code: ErrorCode, records: list[RefusedRecord]) -> None:
        first = f"record {records[0].batch_index} of the batch: {records[0].message}"
        super().__init__(code, first if len(records) == 1 else f"{first}; {len(records)} records are refused")
        self.records = records


class UnnamedTimestamps(KafkaError):
    """The header of a batch has a time beyond the limit. Only its records, which nobody has read, say which it is.

    That may take decompressing, so `refuse` reads them beside the loop. Nothing need wait for it, since a refused
    batch has no place in the log.
    """

    def __init__(self, config: LogConfig, timestamp: int, now_ms: int) -> None:
        self._needs_key = config.compact
        self._limits = _limits(config, now_ms)
        super().__init__(ErrorCode.INVALID_TIMESTAMP, f"{_expected(*self._limits)}, {timestamp} came")

    async def refuse(self, executor: Executor, records: bytes) -> NoReturn:
        """Raise the refusal that names the records; this one where none can be named."""
        raise await executor.run(self._named, records)

    def _named(self, records: bytes) -> KafkaError:
        """This very error where the records do not read, or only the header has such a time."""
        try:
            return _refused(records, self._needs_key, self._limits) or self
        except CorruptRecord:
            return self


def stamped_by_client(header: BatchHeader) -> KafkaError:
    """The error of a batch that a client has stamped with log append time. How many records a compressed one has is
    not known before it is decompressed: its header may say anything, so none is named."""
    code, message = ErrorCode.INVALID_TIMESTAMP, "a batch without log append time expected: the broker gives it"
    if header.attributes & _CODEC_BITS:
        return KafkaError(code, message)
    named = range(min(header.record_count, MOST_NAMED_RECORDS))
    return RefusedRecords(code, [RefusedRecord(place, message) for place in named])


def check_records(records: memoryview, config: LogConfig, now_ms: int) -> None:
    """Raise `RefusedRecords` where there is a record that the topic does not take."""
    try:
        refused = _refused(records, config.compact, _limits(config, now_ms))
    except CorruptRecord as error:
        if not config.compact:
            raise
        message = f"records that can be read expected on a compacted topic: {error}"
        raise KafkaError(ErrorCode.INVALID_RECORD, message) from error
    if refused is not None:
        raise refused


def _limits(config: LogConfig, now_ms: int) -> tuple[int, int]:
    """The earliest and the latest time that a record may have, in 64 bits."""
    if config.message_timestamp_type != _CREATE_TIME:
        return -INT64_MAX - 1, INT64_MAX
    earliest_ms = now_ms - config.message_timestamp_before_max_ms
    return earliest_ms, min(now_ms + config.message_timestamp_after_max_ms, INT64_MAX)


def _refused(records: bytes | memoryview, needs_key: bool, limits: tuple[int, int]) -> RefusedRecords | None:
    keyless, mistimed = find_refused(
        records, needs_key=needs_key, earliest_ms=limits[0], latest_ms=limits[1], limit=MOST_NAMED_RECORDS
    )
    if not keyless and not mistimed:
        return None
    wrong_time = f"{_expected(*limits)}, another one came"
    refused = [RefusedRecord(place, _NO_KEY) for place in keyless]
    refused += [RefusedRecord(place, wrong_time) for place in mistimed]
    return RefusedRecords(ErrorCode.INVALID_TIMESTAMP if mistimed else ErrorCode.INVALID_RECORD, sorted(refused))


def _expected(earliest_ms: int, latest_ms: int) -> str:
    return f"a timestamp from {max(earliest_ms, 0)} to {latest_ms} expected"
