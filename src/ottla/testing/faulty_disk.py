"""The machine's files, with faults on demand and without waiting for the device.

Only a power cut shows whether a sync happened, and a test has none: so a sync that is not to fail returns at once,
which makes a broker start in milliseconds. What was written is in the page cache, and survives a killed broker.
"""

import errno
import threading
import weakref
from collections.abc import Sequence

from ottla.runtime.disk import Buffer
from ottla.runtime.real_disk import RealDisk, RealFile


class FaultyDisk(RealDisk):
    """Appends fail while it is full, syncs while they are to fail; its other small files are always written."""

    def __init__(self) -> None:
        super().__init__()
        self.is_full = False
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

    def close_files(self) -> None:
        """Close what a killed broker left open, as the death of a process does."""
        with self._lock:
            files = list(self._files)
        for file in files:
            file.close()

    # The interface of a disk, as far as it differs

    def new_file(self, path: str, size: int = 0) -> "FaultyFile":
        file = FaultyFile(self, path, size)
        with self._lock:
            self._files.add(file)
        return file

    def sync_directory(self, path: str) -> None:
        pass

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
        return super().append(chunks)

    def sync(self) -> None:
        if self._faults.take_sync_failure():
            raise OSError(errno.EIO, "the device does not answer: a fault of the test", self.path)
        self.prepare()
        self._faults.open_files.note_sync(self)
