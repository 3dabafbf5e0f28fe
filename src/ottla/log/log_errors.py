"""What the trouble of a disk means for those who use a log."""

from typing import TYPE_CHECKING

from ottla.log.directory import is_passing
from ottla.log.segment import BrokenSegment
from ottla.log.unusable import is_of_one_log
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.runtime import is_shortage

if TYPE_CHECKING:
    from ottla.log.log import Log


def unavailable(log: "Log") -> KafkaError:
    """The log is closed, or its directory failed."""
    failure = log.directory.failure
    reason = "it is closed" if failure is None else f"its directory {log.directory.path} failed: {failure}"
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"log {log.topic_partition} cannot be used: {reason}")


def failed(log: "Log", error: OSError, what: str) -> KafkaError:
    """What may pass, or a file in the way, refuses this one request; anything else takes the directory out of use.

    Damaged bytes are this log's own trouble: the disk answered.
    """
    message = f"{what} in {log.topic_partition} failed: {error}"
    if isinstance(error, BrokenSegment):
        return KafkaError(ErrorCode.CORRUPT_MESSAGE, message)
    if not (is_passing(error) or is_of_one_log(error)):
        log.directory.fail(error)
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)


def sync_failed(log: "Log", error: OSError) -> KafkaError:
    """A full disk is no excuse for a sync: nobody knows what of it is on the device.

    Without a descriptor no sync was begun, so none has failed; a file in the way is the log's own trouble.
    """
    if not (is_shortage(error) or is_of_one_log(error)):
        log.directory.fail(error)
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"flush of {log.topic_partition} failed: {error}")


def out_of_range(log: "Log", offset: int) -> KafkaError:
    limits = f"an offset from {log.log_start_offset} to {log.log_end_offset} expected, {offset} came"
    return KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{log.topic_partition}: {limits}")


def beyond_high_watermark(log: "Log", offset: int) -> KafkaError:
    limits = f"an offset up to the high watermark {log.high_watermark} expected, {offset} came"
    return KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{log.topic_partition}: {limits}")
