"""What it means when a disk refuses something."""

from ottla.log.directory import LogDirectory, is_passing
from ottla.log.files import TopicPartition
from ottla.log.segment import BrokenSegment
from ottla.log.unusable import is_of_one_log
from ottla.protocol.errors import ErrorCode, KafkaError


def unavailable(topic_partition: TopicPartition, directory: LogDirectory) -> KafkaError:
    """A log that is closed, or whose directory failed."""
    failure = directory.failure
    reason = "it is closed" if failure is None else f"its directory {directory.path} failed: {failure}"
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"log {topic_partition} cannot be used: {reason}")


def refused(topic_partition: TopicPartition, directory: LogDirectory, error: OSError, what: str) -> KafkaError:
    """What may pass, or a file in the way, refuses this one request; anything else takes the directory out of use.

    Damaged bytes are this log's own trouble: the disk answered.
    """
    message = f"{what} in {topic_partition} failed: {error}"
    if isinstance(error, BrokenSegment):
        return KafkaError(ErrorCode.CORRUPT_MESSAGE, message)
    if not (is_passing(error) or is_of_one_log(error)):
        directory.fail(error)
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)
