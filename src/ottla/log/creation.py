"""The directory of a new log. Blocking: runs in the executor."""

from ottla.log import files
from ottla.log.checkpoints import encode_partition_metadata
from ottla.runtime import Disk


def make_log_directory(disk: Disk, parent: str, path: str, topic_id: bytes) -> None:
    disk.make_directory(path)
    write_topic_id(disk, path, topic_id)
    disk.sync_directory(parent)


def write_topic_id(disk: Disk, path: str, topic_id: bytes) -> None:
    disk.write_atomically(files.join(path, files.PARTITION_METADATA), encode_partition_metadata(topic_id))


def remove_half_made(disk: Disk, path: str) -> None:
    """What a creation that failed left behind, or the log would be in two places; never one with records."""
    for name in disk.list_directory(path):
        if name.endswith(files.LOG_SUFFIX) and disk.size_of(files.join(path, name)):
            return
    disk.delete_directory(path)
