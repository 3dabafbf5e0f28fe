"""The machine's own disk, of which single directories can be made to fail or to be full."""

import errno
from collections.abc import Sequence

from ottla.runtime.disk import Buffer, DiskSpace
from ottla.runtime.real_disk import RealDisk, RealDiskLock, RealFile


class FaultyDisk(RealDisk):
    """Everything below a `broken` path fails; below `unsyncable` only fsync does; below `full` nothing may grow."""

    def __init__(self) -> None:
        self.broken: set[str] = set()
        self.unsyncable: set[str] = set()
        self.full: set[str] = set()

    def check(self, path: str, *, grows: bool = False, syncs: bool = False) -> None:
        if _is_below(path, self.broken) or (syncs and _is_below(path, self.unsyncable)):
            raise OSError(errno.EIO, "the device does not answer", path)
        if grows and _is_below(path, self.full):
            raise OSError(errno.ENOSPC, "no space left on the device", path)

    def open(self, path: str, *, create: bool = False) -> RealFile:
        self.check(path, grows=create and not super().exists(path))
        return FaultyFile(super().open(path, create=create), self)

    def read(self, path: str) -> bytes:
        self.check(path)
        return super().read(path)

    def write_atomically(self, path: str, data: bytes) -> None:
        self.check(path, grows=True, syncs=True)
        super().write_atomically(path, data)

    def list_directory(self, path: str) -> list[str]:
        self.check(path)
        return super().list_directory(path)

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
        super().sync_directory(path)

    def space(self, path: str) -> DiskSpace:
        self.check(path)
        return super().space(path)

    def lock(self, path: str) -> RealDiskLock:
        self.check(path)
        return super().lock(path)


class FaultyFile(RealFile):
    __slots__ = ("_disk",)

    def __init__(self, file: RealFile, disk: FaultyDisk) -> None:
        super().__init__(file.path, file.fileno())
        self._disk = disk

    def append(self, chunks: Sequence[Buffer]) -> int:
        self._disk.check(self.path, grows=True)
        return super().append(chunks)

    def read_at(self, position: int, length: int) -> bytes:
        self._disk.check(self.path)
        return super().read_at(position, length)

    def sync(self) -> None:
        self._disk.check(self.path, syncs=True)
        super().sync()


def _is_below(path: str, tops: set[str]) -> bool:
    return any(path == top or path.startswith(top + "/") for top in tops)
