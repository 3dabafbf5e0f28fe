"""Where new logs go, and how their directories come about.

    chosen -> directory made, topic id written -> loader: first segment, directory synced -> parent synced

Many logs are created at once: the sync of the parent is shared by all whose directories were made before it began.
"""

from collections.abc import Iterable, Sequence

from ottla.log import files
from ottla.log.checkpoints import BadCheckpoint, decode_partition_metadata, encode_partition_metadata
from ottla.log.directory import LogDirectory
from ottla.log.group_commit import GroupCommit
from ottla.runtime import Disk, Executor, IdSource


class _ParentSync:
    """Makes the entries of new logs in one log directory durable."""

    def __init__(self, disk: Disk, executor: Executor, path: str) -> None:
        self._disk = disk
        self._executor = executor
        self._path = path
        self._made = 0
        self._synced = 0
        self._commit = GroupCommit(self._sync, lambda: self._synced)

    async def finish(self) -> None:
        self._made += 1
        await self._commit.reach(self._made)

    async def _sync(self) -> None:
        made = self._made
        await self._executor.run(self._disk.sync_directory, self._path)
        self._synced = made


class LogPlaces:
    """`counts` has how many logs are in each log directory, by its path, also those that are being created."""

    def __init__(self, directories: Sequence[LogDirectory], disk: Disk, executor: Executor, ids: IdSource) -> None:
        self._directories = directories
        self._disk = disk
        self._ids = ids
        self.counts = {directory.path: 0 for directory in directories}
        self._parents = {directory.path: _ParentSync(disk, executor, directory.path) for directory in directories}

    def by_load(self) -> list[LogDirectory]:
        """The directories that work, the one with the fewest logs first."""
        usable: Iterable[LogDirectory] = (each for each in self._directories if each.failure is None)
        return sorted(usable, key=lambda directory: self.counts[directory.path])

    def make(self, directory: LogDirectory, topic_partition: files.TopicPartition, topic_id: bytes) -> None:
        """In the executor: a directory that is there already, of another topic of that name, is set aside."""
        path = files.join(directory.path, str(topic_partition))
        if self._disk.exists(path) and self._other_topic(path, topic_id):
            name = files.deleted_directory_name(topic_partition, self._ids.uuid().hex(), files.STRAY_DIRECTORY_SUFFIX)
            self._disk.rename(path, files.join(directory.path, name))
        self._disk.make_directory(path)
        self.write_topic_id(path, topic_id, syncs_name=False)

    def _other_topic(self, path: str, topic_id: bytes) -> bool:
        try:
            data = self._disk.read(files.join(path, files.PARTITION_METADATA))
            return decode_partition_metadata(files.PARTITION_METADATA, data) != topic_id
        except (FileNotFoundError, BadCheckpoint):
            return False

    def write_topic_id(self, path: str, topic_id: bytes, *, syncs_name: bool = True) -> None:
        """In the executor."""
        data = encode_partition_metadata(topic_id)
        self._disk.write_atomically(files.join(path, files.PARTITION_METADATA), data, syncs_name=syncs_name)

    def moved(self, source: LogDirectory, target: LogDirectory) -> None:
        self.counts[source.path] -= 1
        self.counts[target.path] += 1

    async def finish(self, directory: LogDirectory) -> None:
        """Return once all logs made in the directory so far are there for good."""
        await self._parents[directory.path].finish()

    def remove_half_made(self, path: str) -> None:
        """In the executor: what a creation that failed left behind, or the log would be in two places.

        Never one with records.
        """
        for name, size_bytes in self._disk.list_sizes(path).items():
            if name.endswith(files.LOG_SUFFIX) and size_bytes:
                return
        self._disk.delete_directory(path)
