"""Opening the log directories of a broker, in the order of `log.dirs`.

The first one must work, since the store is in it; another that does not is left out, with its partitions. One without
`meta.properties` is new and becomes this broker's, except when a directory that it has had is missing: then it may be
the place where a disk is not mounted, and is left as it is. An empty `meta.properties` says that it is meant to be new.
"""

import logging
import os
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import Self

from ottla.cluster.log_directories import known_directories, remember_directories
from ottla.coordination.store import Store
from ottla.log.directory import LogDirectory, UnusableDirectory
from ottla.log.files import parse_log_directory
from ottla.protocol.uuids import uuid_to_text
from ottla.runtime import Disk, IdSource

logger = logging.getLogger(__name__)

Opened = Callable[[LogDirectory], None]


class StoreMissing(OSError):
    """The store is not where it was, beside the records of its topics."""


def expect_store(disk: Disk, store_path: str, paths: Sequence[str]) -> None:
    """A store that is gone must not be begun anew where its topics have records."""
    if os.path.isfile(store_path) and os.path.getsize(store_path):
        return
    for path in paths:
        try:
            logs = [name for name in disk.list_directory(path) if parse_log_directory(name) is not None]
        except OSError:
            continue
        if logs:
            raise StoreMissing(
                f"{store_path} is missing or empty, and {path} has the records of {len(logs)} partitions, such as "
                f"{logs[0]}. It names the topics and their settings: put back a copy of it, or move these partitions "
                f"away to begin with no topics"
            )


def join_cluster(directories: Sequence[LogDirectory], cluster_id: str) -> None:
    """The directories belong to the cluster that the store is of; the first one has to, since the store is in it."""
    for number, directory in enumerate(directories):
        if directory.failure is None:
            try:
                directory.join_cluster(cluster_id)
            except UnusableDirectory:
                raise
            except OSError as error:
                if not number:
                    raise
                directory.fail(error)


def open_first(disk: Disk, path: str, node_id: int, ids: IdSource) -> LogDirectory:
    directory = LogDirectory(disk, path)
    directory.open(node_id, ids)
    return directory


def open_others(
    disk: Disk,
    paths: Sequence[str],
    first: LogDirectory,
    known: AbstractSet[bytes],
    ids: IdSource,
    opened: Opened,
) -> list[LogDirectory]:
    """All the others. `opened` is told of each as soon as it has to be closed again; `known` are the ids so far."""
    directories = [LogDirectory(disk, path) for path in paths]
    new: list[LogDirectory] = []
    for directory in directories:
        opened(directory)
        try:
            if directory.is_new():
                new.append(directory)
            else:
                directory.open(first.node_id, ids, first.cluster_id)
        except UnusableDirectory:
            raise
        except OSError as error:
            directory.fail(error)
    missing = missing_of(known, [first, *directories])
    # One that does not read is as good an explanation for a missing id.
    unexplained = len(missing) - sum(directory.failure is not None for directory in directories)
    for directory in new:
        try:
            if unexplained > 0:
                names = ", ".join(sorted(map(uuid_to_text, missing)))
                raise OSError(f"it has no meta.properties, and log directory {names} is missing: is its disk mounted?")
            directory.open(first.node_id, ids, first.cluster_id)
        except OSError as error:
            directory.fail(error)
    return directories


def missing_of(known: AbstractSet[bytes], directories: Sequence[LogDirectory]) -> AbstractSet[bytes]:
    """Directories of this broker that are not among these."""
    return known - {directory.directory_id for directory in directories}


class DirectoryRegister:
    """The ids of the directories that this broker has had, in the store: a disk that is not mounted is missed by it."""

    def __init__(self, store: Store, node_id: int, known: AbstractSet[bytes]) -> None:
        self._store = store
        self._node_id = node_id
        self._here: AbstractSet[bytes] = frozenset()
        self.known = known
        self.missing: AbstractSet[bytes] = frozenset()

    @classmethod
    async def read(cls, store: Store, first: LogDirectory) -> Self:
        return cls(store, first.node_id, await known_directories(store, first.node_id))

    async def update(self, directories: Sequence[LogDirectory]) -> None:
        """Before any log is made in them. An id that is missing is kept until it is certain that nothing is lost."""
        self.missing = missing_of(self.known, directories)
        for directory_id in sorted(self.missing):
            logger.error("log directory %s of this broker is not here", uuid_to_text(directory_id))
        self._here = {directory.directory_id for directory in directories if directory.directory_id}
        await self._write(self._here | self.missing)

    async def forget_missing(self) -> None:
        self.missing = frozenset()
        await self._write(self._here)

    async def _write(self, known: AbstractSet[bytes]) -> None:
        if known != self.known:
            self.known = frozenset(known)
            await remember_directories(self._store, self._node_id, self.known)
