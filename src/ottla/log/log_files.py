"""What a log does to its files: the blocking half of `Log`, which runs in the executor.

Nothing here touches the log's own state; inputs are handed in, results are handed back.
"""

from ottla.log import files
from ottla.log.checkpoints import encode_epochs
from ottla.log.config import LogConfig
from ottla.log.files import join, offset_name, sync_paths, write_file
from ottla.log.index_cache import IndexCache
from ottla.log.segment import Segment, create_segment
from ottla.runtime import Disk, File

Epochs = list[tuple[int, int]]


class EpochsNotWritten(OSError):
    """A flush ended before it began to sync: the small file beside the records could not be replaced.

    On a full disk that is no failure. A sync that fails is one even there: accepted pages may be lost.
    """


class LogFiles:
    def __init__(self, disk: Disk, path: str, cache: IndexCache) -> None:
        self._disk = disk
        self._cache = cache
        self.path = path

    def next_segment(self, old: Segment, base_offset: int, snapshot: bytes, config: LogConfig, now_ms: int) -> Segment:
        """Close the books on `old` and make the next segment. Only the directory is synced: a flush does the rest."""
        old.write_indexes()
        write_file(self._disk, self._snapshot_path(base_offset), snapshot)
        return create_segment(self._disk, self.path, base_offset, self._cache, config, now_ms)

    def sync(self, closed: tuple[Segment, ...], active_file: File, epochs: Epochs | None) -> None:
        """Force all that lies between the recovery point and the end to the device.

        The recovery point moves over the closed segments next, and nobody looks at their indexes again, so these
        must be on the device as well. The same goes for the epochs, unless they have not changed.
        """
        if epochs is not None:
            try:
                self._write_epochs(epochs)
            except OSError as error:
                raise EpochsNotWritten(error.errno, error.strerror, self.path) from error
        for segment in closed:
            segment.file.sync()
            sync_paths(self._disk, segment.paths_to_sync())
            if self._disk.exists(self._snapshot_path(segment.base_offset)):
                sync_paths(self._disk, [self._snapshot_path(segment.base_offset)])
        active_file.sync()

    def finish(self, active: Segment, end_offset: int, snapshot: bytes, epochs: Epochs) -> None:
        """Leave everything that a start without recovery needs."""
        active.write_indexes()
        write_file(self._disk, self._snapshot_path(end_offset), snapshot)
        self._write_epochs(epochs)
        sync_paths(self._disk, [*active.paths_to_sync(), self._snapshot_path(end_offset)])
        self._disk.sync_directory(self.path)

    def set_aside(self, segments: tuple[Segment, ...]) -> list[str]:
        """Rename the files of segments that left the log, so that they never count again; returns the new names.

        Oldest first, and of each segment the records first: a crash in between leaves whole segments without a hole,
        and index files that nobody misses. A segment's snapshot is of no use without the records after it.
        """
        renamed: list[str] = []
        for segment in segments:
            for suffix in (*files.SEGMENT_SUFFIXES, files.SNAPSHOT_SUFFIX):
                path = segment.path_of(suffix)
                if self._disk.exists(path):
                    self._disk.rename(path, path + files.DELETED_SUFFIX)
                elif not self._disk.exists(path + files.DELETED_SUFFIX):
                    continue
                renamed.append(path + files.DELETED_SUFFIX)
        return renamed

    def rename(self, new_path: str) -> None:
        self._disk.rename(self.path, new_path)
        self.path = new_path

    def delete(self) -> None:
        self._disk.delete_directory(self.path)

    def _snapshot_path(self, offset: int) -> str:
        return join(self.path, offset_name(offset, files.SNAPSHOT_SUFFIX))

    def _write_epochs(self, entries: Epochs) -> None:
        self._disk.write_atomically(join(self.path, files.LEADER_EPOCH_CHECKPOINT), encode_epochs(entries))
