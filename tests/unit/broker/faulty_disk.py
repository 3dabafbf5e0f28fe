"""The machine's own disk, of which single directories can be made to fail or to be full."""

import errno
import os
from collections.abc import Sequence

from ottla.runtime.disk import Buffer, DiskSpace
from ottla.runtime.real_disk import RealDisk, RealDiskLock, RealFile


class FaultyDisk(RealDisk):
    """Everything below a `broken` path fails; below `unsyncable` only fsync does; below `full` nothing may grow."""

    def __init__(self) -> None:
        super().__init__()
        self.broken: set[str] = set()
        self.unsyncable: set[str] = set()
        self.full: set[str] = set()

    def check(self, path: str, *, grows: bool = False, syncs: bool = False) -> None:
        if _is_below(path, self.broken) or (syncs and _is_below(path, self.unsyncable)):
            raise OSError(errno.EIO, "the device does not answer", path)
        if grows and _is_below(path, self.full):
            raise OSError(errno.ENOSPC, "no space left on the device", path)

    def new_file(self, path: str, size: int = 0) -> RealFile:
        return FaultyFile(self, path, size)

    def open_descriptor(self, path: str, flags: int) -> int:
        self.check(path, grows=bool(flags & os.O_CREAT) and not super().exists(path))
        return super().open_descriptor(path, flags)

    def read(self, path: str) -> bytes:
        self.check(path)
        return super().read(path)

    def write_atomically(self, path: str, data: bytes, *, syncs_name: bool = True) -> None:
        self.check(path, grows=True, syncs=True)
        super().write_atomically(path, data, syncs_name=syncs_name)

    def list_directory(self, path: str) -> list[str]:
        self.check(path)
        return super().list_directory(path)

    def list_directories(self, path: str) -> list[str]:
        self.check(path)
        return super().list_directories(path)

    def list_files(self, path: str) -> dict[str, int]:
        self.check(path)
        return super().list_files(path)

    def make_directory(self, path: str) -> None:
        self.check(path, grows=True)
        super().make_directory(path)

    def rename(self, source: str, target: str) -> None:
        self.check(source)
        super().rename(source, target)

    def delete_directory(self, path: str) -> None:
        self.check(path)
        super().delete_directory(path)

    def sync_descriptor(self, descriptor: int, path: str) -> None:
        self.check(path, syncs=True)
        super().sync_descriptor(descriptor, path)

    def space(self, path: str) -> DiskSpace:
        self.check(path)
        return super().space(path)

    def lock(self, path: str) -> RealDiskLock:
        self.check(path)
        return super().lock(path)


class FaultyFile(RealFile):
    __slots__ = ("_faults",)

    def __init__(self, disk: FaultyDisk, path: str, size: int) -> None:
        super().__init__(disk, path, size)
        self._faults = disk

    def append(self, chunks: Sequence[Buffer]) -> int:
        self._faults.check(self.path, grows=True)
        return super().append(chunks)

    def read_at(self, position: int, length: int) -> bytes:
        self._faults.check(self.path)
        return super().read_at(position, length)

    def sync(self) -> None:
        self._faults.check(self.path, syncs=True)
        super().sync()


def _is_below(path: str, tops: set[str]) -> bool:
    return any(path == top or path.startswith(top + "/") for top in tops)
