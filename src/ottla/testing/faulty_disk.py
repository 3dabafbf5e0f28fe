"""The machine's files, with faults on demand and without waiting for the device.

Only a power cut shows whether a sync happened, and a test has none: so a sync that is not to fail returns at once,
which makes a broker start in milliseconds. What was written is in the page cache, and survives a killed broker.
"""

import errno
import threading
import weakref
from collections.abc import Sequence

from ottla.runtime.disk import Buffer, DiskSpace
from ottla.runtime.real_disk import RealDisk, RealDiskLock, RealFile


class FaultyDisk(RealDisk):
    """Appends fail while it is full, syncs while they are to fail; its other small files are always written.

    Single directories can be worse off: everything below a `broken` path fails, below an `unsyncable` one every sync
    does, and below a `full` one nothing may grow.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_full = False
        self.broken: set[str] = set()
        self.unsyncable: set[str] = set()
        self.full: set[str] = set()
        self._lock = threading.Lock()
        self._failing_syncs: int | None = 0
        self._files: weakref.WeakSet[FaultyFile] = weakref.WeakSet()

    # Faults

    def fail_syncs(self, times: int | None) -> None:
        """Let the next `times` syncs of files fail; None for all of them."""
        with self._lock:
            self._failing_syncs = times

    def take_sync_failure(self) -> bool:
        with self._lock:
            if self._failing_syncs:
                self._failing_syncs -= 1
                return True
            return self._failing_syncs is None

    def check(self, path: str, *, grows: bool = False, syncs: bool = False) -> None:
        """Raise what is to happen to a path."""
        if _is_below(path, self.broken) or (syncs and _is_below(path, self.unsyncable)):
            raise OSError(errno.EIO, "the device does not answer: a fault of the test", path)
        if grows and _is_below(path, self.full):
            raise OSError(errno.ENOSPC, "the disk is full: a fault of the test", path)

    def close_files(self) -> None:
        """Close what a killed broker left open, as the death of a process does."""
        with self._lock:
            files = list(self._files)
        for file in files:
            file.close()

    # The interface of a disk, as far as it differs

    def new_file(self, path: str, size: int = 0) -> "FaultyFile":
        return self.known(FaultyFile(self, path, size))

    def known(self, file: "FaultyFile") -> "FaultyFile":
        """One more that has to be closed when a killed broker's files are."""
        with self._lock:
            self._files.add(file)
        return file

    def open(self, path: str, *, create: bool = False) -> RealFile:
        self.check(path, grows=create and not self.exists(path))
        return super().open(path, create=create)

    def read(self, path: str) -> bytes:
        self.check(path)
        return super().read(path)

    def write_atomically(self, path: str, data: bytes, *, syncs_name: bool = True) -> None:
        self.check(path, grows=True, syncs=True)
        super().write_atomically(path, data, syncs_name=syncs_name)

    def list_directory(self, path: str) -> list[str]:
        self.check(path)
        return super().list_directory(path)

    def list_sizes(self, path: str) -> dict[str, int]:
        self.check(path)
        return super().list_sizes(path)

    def list_directories(self, path: str) -> list[str]:
        self.check(path)
        return super().list_directories(path)

    def make_directory(self, path: str) -> None:
        self.check(path, grows=True)
        super().make_directory(path)

    def rename(self, source: str, target: str) -> None:
        self.check(source)
        super().rename(source, target)

    def delete_directory(self, path: str) -> None:
        self.check(path)
        super().delete_directory(path)

    def sync_directory(self, path: str) -> None:
        self.check(path, syncs=True)

    def space(self, path: str) -> DiskSpace:
        self.check(path)
        return super().space(path)

    def lock(self, path: str) -> RealDiskLock:
        self.check(path)
        return super().lock(path)

    def sync_descriptor(self, descriptor: int, path: str) -> None:
        pass


class FaultyFile(RealFile):
    __slots__ = ("__weakref__", "_faults")

    def __init__(self, disk: FaultyDisk, path: str, size: int) -> None:
        super().__init__(disk, path, size)
        self._faults = disk

    def append(self, chunks: Sequence[Buffer]) -> int:
        if self._faults.is_full:
            raise OSError(errno.ENOSPC, "the disk is full: a fault of the test", self.path)
        self._faults.check(self.path, grows=True)
        return super().append(chunks)

    def read_at(self, position: int, length: int) -> bytes:
        self._faults.check(self.path)
        return super().read_at(position, length)

    def sync(self) -> None:
        self._faults.check(self.path, syncs=True)
        if self._faults.take_sync_failure():
            raise OSError(errno.EIO, "the device does not answer: a fault of the test", self.path)
        self.prepare()
        self._faults.open_files.note_sync(self)


def _is_below(path: str, tops: set[str]) -> bool:
    return any(path == top or path.startswith(top + "/") for top in tops)
