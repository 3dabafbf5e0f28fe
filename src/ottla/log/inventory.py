"""What lies in the log directories at a start, and what becomes of moves that a crash cut short.

A log that was moving may be found in two places, or in one that is not certain (see `moving` for the two signs):

| found                                                 | it means                          | so                  |
|-------------------------------------------------------|-----------------------------------|---------------------|
| a log, and a future directory                         | the copy was under way            | it goes on          |
| a log that has left, and its copy                     | the copy is whole, and the log    | the old one goes    |
| a log, and one of the same name with MOVE_TARGET      | the switch was called off         | the second one goes |
| one with either sign alone, all directories being here | the other one is gone for good   | it is the log       |
| one with either sign alone, and directories missing   | the other one may be the newer    | it is not opened    |

Blocking: runs in the executor.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from ottla.log import files
from ottla.log.directory import LogDirectory
from ottla.log.files import TopicPartition, join
from ottla.log.moving import MOVE_TARGET, moved_to, unmark_moved
from ottla.log.unusable import is_of_one_log
from ottla.runtime import Disk

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Found:
    """One directory of a log, in one log directory."""

    directory: LogDirectory
    name: str
    topic_partition: TopicPartition

    @property
    def path(self) -> str:
        return join(self.directory.path, self.name)


@dataclass(slots=True)
class Inventory:
    """`is_complete` when every directory of this broker is here and works."""

    disk: Disk
    is_complete: bool
    has_neighbours: bool
    logs: list[Found] = field(default_factory=list)
    futures: dict[TopicPartition, list[Found]] = field(default_factory=dict)
    deleted: dict[str, list[str]] = field(default_factory=dict)

    def take(self, directories: Sequence[LogDirectory]) -> None:
        """Look into all directories; one that does not read is marked as failed."""
        for directory in directories:
            if directory.failure is None:
                try:
                    self._list(directory)
                except OSError as error:
                    directory.fail(error)
                    self.is_complete = False
        self.has_neighbours = self.has_neighbours or not self.is_complete or bool(self.futures)
        if self.has_neighbours:
            self._finish_moves()
        for directory in directories:
            if directory.failure is None:
                try:
                    self._remove_deleted(directory)
                except OSError as error:
                    directory.fail(error)
        self.logs = [found for found in self.logs if found.directory.failure is None]

    def unfinished_moves(self) -> dict[TopicPartition, tuple[LogDirectory, str]]:
        """One future directory for each partition that has any; a second one is removed."""
        unfinished: dict[TopicPartition, tuple[LogDirectory, str]] = {}
        for topic_partition, futures in self.futures.items():
            usable = [found for found in futures if found.directory.failure is None]
            for found in usable[1:]:
                self._delete(found)
            if usable:
                unfinished[topic_partition] = (usable[0].directory, usable[0].name)
        return unfinished

    def _list(self, directory: LogDirectory) -> None:
        deleted = self.deleted[directory.path] = []
        for name in self.disk.list_directories(directory.path):
            if name.endswith(files.DELETE_DIRECTORY_SUFFIX):
                deleted.append(name)
                continue
            moving = files.parse_future_directory(name)
            topic_partition = files.parse_log_directory(name)
            if moving is not None:
                self.futures.setdefault(moving, []).append(Found(directory, name, moving))
            elif topic_partition is not None:
                self.logs.append(Found(directory, name, topic_partition))

    def _remove_deleted(self, directory: LogDirectory) -> None:
        """What was deleted before, and what moves that ended now leave."""
        for name in self.deleted[directory.path]:
            self.disk.delete_directory(join(directory.path, name))

    # Moves.

    def _finish_moves(self) -> None:
        by_partition: dict[TopicPartition, list[Found]] = {}
        for found in self.logs:
            by_partition.setdefault(found.topic_partition, []).append(found)
        self.logs = []
        for topic_partition, places in by_partition.items():
            try:
                self.logs += self._finish_move(topic_partition, places)
            except OSError as error:
                if is_of_one_log(error):
                    # Whoever opens it finds the same, and takes it alone out of use.
                    self.logs += places
                    continue
                guilty = [found for found in places if str(error.filename or "").startswith(found.directory.path)]
                for found in guilty or places:
                    found.directory.fail(error)

    def _finish_move(self, topic_partition: TopicPartition, places: list[Found]) -> list[Found]:
        """Where the log is; more than one place when that cannot be told."""
        names = {found.path: self.disk.list_directory(found.path) for found in places}
        left = [found for found in places if moved_to(names[found.path]) is not None]
        copies = [found for found in places if MOVE_TARGET in names[found.path]]
        stayed = [found for found in places if found not in left]
        if left and stayed:
            for found in stayed:
                self._settle_in(found)
            for found in left:
                self._set_aside(found, moved_to(names[found.path]) or "")
            return stayed
        if left:
            return self._follow(left[0], moved_to(names[left[0].path]) or "")
        if copies and len(copies) < len(places):
            for found in copies:
                self._set_aside(found, self.disk.read(join(found.path, MOVE_TARGET)).decode("ascii", "replace"))
        elif copies:
            if not self._is_certain(copies[0]):
                return []
            self._settle_in(copies[0])
        return [found for found in places if found not in copies] or copies

    def _follow(self, source: Found, unique: str) -> list[Found]:
        """The log left for a copy that has not got its name yet."""
        topic_partition = source.topic_partition
        futures = self.futures.get(topic_partition, [])
        for copy in futures:
            if copy.name == files.future_directory_name(topic_partition, unique):
                self.disk.rename(copy.path, join(copy.directory.path, str(topic_partition)))
                futures.remove(copy)
                copy.name = str(topic_partition)
                self._settle_in(copy)
                self._set_aside(source, unique)
                logger.info("%s has moved to %s", topic_partition, copy.directory.path)
                return [copy]
        if not self._is_certain(source):
            return []
        unmark_moved(self.disk, source.path, unique)
        return [source]

    def _is_certain(self, found: Found) -> bool:
        if not self.is_complete:
            logger.error("%s may be in a log directory that is missing, and is not opened", found.path)
        return self.is_complete

    def _settle_in(self, found: Found) -> None:
        self.disk.delete(join(found.path, MOVE_TARGET))
        self.disk.sync_directory(found.path)

    def _set_aside(self, found: Found, unique: str) -> None:
        name = files.deleted_directory_name(found.topic_partition, unique)
        self.disk.rename(found.path, join(found.directory.path, name))
        self.deleted[found.directory.path].append(name)

    def _delete(self, found: Found) -> None:
        try:
            self.disk.delete_directory(found.path)
        except OSError as error:
            found.directory.fail(error)
