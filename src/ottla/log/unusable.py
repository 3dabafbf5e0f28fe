"""Logs that could not be opened though their directory works: each is out of use by itself, and is tried again.

What the checkpoints said about such a log is kept, and written again with those of the others, so that it opens later
as if nothing had happened.
"""

import errno
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ottla.log.checkpoints import BadCheckpoint
from ottla.log.directory import (
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    REPLICATION_CHECKPOINT,
    LogDirectory,
)
from ottla.log.files import TopicPartition
from ottla.log.segment import BrokenSegment

Checkpoints = Mapping[str, Mapping[TopicPartition, int]]

# What is wrong with one file, as opposed to the device: its kind, its rights, its absence.
_OF_ONE_FILE = frozenset(
    (errno.EISDIR, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.ENOENT, errno.EEXIST, errno.ENOTEMPTY, errno.ELOOP)
)


def is_of_one_log(error: OSError) -> bool:
    """Whether the trouble is in the files of one log, so that the others beside it can be relied on."""
    return isinstance(error, BrokenSegment | BadCheckpoint) or error.errno in _OF_ONE_FILE


@dataclass(frozen=True, slots=True)
class LogPlace:
    """Where a log is, and what the checkpoints of its directory say about it, by their names."""

    directory: LogDirectory
    name: str
    was_clean: bool
    offsets: Mapping[str, int]

    @classmethod
    def of(
        cls, directory: LogDirectory, name: str, topic_partition: TopicPartition, checkpoints: Checkpoints
    ) -> "LogPlace":
        offsets = {file: known[topic_partition] for file, known in checkpoints.items() if topic_partition in known}
        return cls(directory, name, directory.was_clean, offsets)

    @property
    def recovery_point(self) -> int:
        return self.offsets.get(RECOVERY_POINT_CHECKPOINT, 0)

    @property
    def log_start_offset(self) -> int:
        return self.offsets.get(LOG_START_CHECKPOINT, 0)

    @property
    def high_watermark(self) -> int:
        return self.offsets.get(REPLICATION_CHECKPOINT, 0)


class UnusableLogs:
    def __init__(self) -> None:
        self._places: dict[TopicPartition, LogPlace] = {}

    def __len__(self) -> int:
        return len(self._places)

    def add(self, topic_partition: TopicPartition, place: LogPlace) -> None:
        self._places[topic_partition] = place

    def pop(self, topic_partition: TopicPartition) -> None:
        self._places.pop(topic_partition, None)

    def place_of(self, topic_partition: TopicPartition) -> LogPlace | None:
        return self._places.get(topic_partition)

    def checkpointed(self, directory: LogDirectory, file: str) -> Iterator[tuple[TopicPartition, int]]:
        """What the checkpoint file of a directory goes on to say about these logs."""
        for topic_partition, place in self._places.items():
            if place.directory is directory and file in place.offsets:
                yield topic_partition, place.offsets[file]
