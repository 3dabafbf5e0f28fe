"""What the trouble of a disk means for those who use a log."""

from typing import TYPE_CHECKING

from ottla.log.directory import is_full
from ottla.log.segment import BrokenSegment
from ottla.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.log.log import Log


def unavailable(log: "Log") -> KafkaError:
    failure = log.directory.failure
    reason = "it is closed" if failure is None else f"its directory {log.directory.path} failed: {failure}"
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"log {log.topic_partition} cannot be used: {reason}")


def failed(log: "Log", error: OSError, what: str) -> KafkaError:
    """A full disk refuses this one request, anything else takes the directory out of use.

    Damaged bytes are this log's own trouble: the disk answered.
    """
    if isinstance(error, BrokenSegment):
        return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{what} in {log.topic_partition} failed: {error}")
    if not is_full(error):
        log.directory.fail(error)
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{what} in {log.topic_partition} failed: {error}")
