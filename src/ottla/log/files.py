"""Names of files and directories, as Kafka lays them out."""

from typing import NamedTuple

from ottla.runtime import Disk

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
SNAPSHOT_SUFFIX = ".snapshot"
SEGMENT_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
DELETED_SUFFIX = ".deleted"
# A compaction that was cut short left them.
COMPACTION_SUFFIXES = (".cleaned", ".swap")
# Left over by an interrupted delete, compaction or atomic write: never data.
STRAY_SUFFIXES = (DELETED_SUFFIX, ".cleaned", ".tmp")

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"

DELETE_DIRECTORY_SUFFIX = "-delete"
# A log that belongs to no topic, kept for somebody to look at.
STRAY_DIRECTORY_SUFFIX = "-stray"
FUTURE_DIRECTORY_SUFFIX = "-future"

MAX_DIRECTORY_NAME = 255
UNIQUE_CHARACTERS = 32


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def offset_name(offset: int, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


def offset_of_name(name: str, suffix: str) -> int | None:
    """The offset in a file's name, or None when the name is no such file's."""
    digits = name.removesuffix(suffix)
    if len(digits) != 20 or len(name) != 20 + len(suffix) or not (digits.isascii() and digits.isdigit()):
        return None
    return int(digits)


def split_name(name: str) -> tuple[int, str] | None:
    """The offset and the suffix of a file that is named after an offset."""
    digits, suffix = name[:20], name[20:]
    if len(digits) != 20 or not (digits.isascii() and digits.isdigit()):
        return None
    return int(digits), suffix


def join(directory: str, name: str) -> str:
    return f"{directory}/{name}"


def parse_log_directory(name: str) -> TopicPartition | None:
    """`orders-3` is partition 3 of orders; a name of any other form is None."""
    topic, dash, digits = name.rpartition("-")
    if not dash or not topic or not (digits.isascii() and digits.isdigit()):
        return None
    partition = int(digits)
    if str(partition) != digits or partition > 2**31 - 1:
        return None
    return TopicPartition(topic, partition)


def deleted_directory_name(
    topic_partition: TopicPartition, unique: str, last_suffix: str = DELETE_DIRECTORY_SUFFIX
) -> str:
    """`<topic>-<partition>.<32 characters>-delete`; a long topic is cut so that the name stays legal."""
    suffix = f"-{topic_partition.partition}.{unique}{last_suffix}"
    return topic_partition.topic[: MAX_DIRECTORY_NAME - len(suffix)] + suffix


def future_directory_name(topic_partition: TopicPartition, unique: str) -> str:
    """`<topic>-<partition>.<32 characters>-future`: longer than a directory's name may be where the topic's is long."""
    return f"{topic_partition}.{unique}{FUTURE_DIRECTORY_SUFFIX}"


def parse_future_directory(name: str) -> TopicPartition | None:
    """The partition whose log is being copied to a directory of this name; None for any other name."""
    front, dot, unique = name.removesuffix(FUTURE_DIRECTORY_SUFFIX).rpartition(".")
    if not name.endswith(FUTURE_DIRECTORY_SUFFIX) or not dot or len(unique) != UNIQUE_CHARACTERS:
        return None
    return parse_log_directory(front)


def write_file(disk: Disk, path: str, data: bytes) -> None:
    """Replace a file's content, not atomically and not synced: for files that recovery can do without."""
    file = disk.open(path, create=True)
    try:
        if file.size:
            file.truncate(0)
        if data:
            file.append([data])
    finally:
        file.close()


def sync_paths(disk: Disk, paths: list[str]) -> None:
    """Force files to the device that are not open."""
    for path in paths:
        file = disk.open(path)
        try:
            file.sync()
        finally:
            file.close()
