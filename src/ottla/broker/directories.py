"""Opening the log directories of a broker, in the order of `log.dirs`.

The first one must work, since the store is in it; another that does not is left out, with its partitions. One without
`meta.properties` is new and becomes this broker's, except when a directory that it has had is missing: then it may be
the place where a disk is not mounted, and is left as it is. An empty `meta.properties` says that it is meant to be new.
"""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from ottla.log.directory import LogDirectory, UnusableDirectory
from ottla.protocol.uuids import uuid_to_text
from ottla.runtime import Disk, IdSource

Opened = Callable[[LogDirectory], None]


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
