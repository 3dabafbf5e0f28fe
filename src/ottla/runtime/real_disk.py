"""The machine's own files, behind the interfaces of `ottla.runtime.disk`.

Appends and reads name their position (`pwritev`, `pread`), so one descriptor serves the loop, the threads that
sync it and `sendfile` at the same time, and there is no cursor to race for.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import struct
from collections.abc import Sequence

from ottla.runtime.disk import Buffer, DiskSpace

# How far apart residency is probed: the kernel reads ahead in windows of this size, so the pages between two
# probes that hit are nearly always there as well.
RESIDENCY_PROBE_BYTES = 128 * 1024
_MAX_CHUNKS = 1024  # IOV_MAX on every system this runs on

_sync_data = getattr(os, "fdatasync", os.fsync)
_preadv = getattr(os, "preadv", None)
_RWF_NOWAIT = getattr(os, "RWF_NOWAIT", 0)


class RealFile:
    """An open file. Only this object may change the file while it is open: `size` is what it remembers."""

    __slots__ = ("_descriptor", "path", "size")

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self.size = os.fstat(descriptor).st_size

    def append(self, chunks: Sequence[Buffer]) -> int:
        position = self.size
        try:
            if len(chunks) == 1:
                total = len(chunks[0])
                written = os.pwrite(self._descriptor, chunks[0], position)
            else:
                total = sum(map(len, chunks))
                written = os.pwritev(self._descriptor, chunks[:_MAX_CHUNKS], position)
            if written != total:
                self._write_rest(b"".join(chunks), position, written)
        except OSError:
            # The rest of a half-written append must never be taken for data. A failing truncate is not reported
            # in place of the first error: recovery cuts the tail off as well.
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, position)
            raise
        self.size = position + total
        return position

    def _write_rest(self, data: bytes, position: int, written: int) -> None:
        view = memoryview(data)
        while written < len(data):
            count = os.pwrite(self._descriptor, view[written:], position + written)
            if count == 0:
                raise OSError(errno.ENOSPC, f"the disk took {written} of {len(data)} bytes", self.path)
            written += count

    def write_at(self, position: int, data: Buffer) -> None:
        if position + len(data) > self.size:
            raise ValueError(
                f"write_at may only overwrite: {position} + {len(data)} is beyond {self.size} in {self.path}"
            )
        view = memoryview(data)
        written = 0
        while written < len(view):
            written += os.pwrite(self._descriptor, view[written:], position + written)

    def read_at(self, position: int, length: int) -> bytes:
        data = os.pread(self._descriptor, length, position)
        if len(data) == length or position + len(data) >= self.size:
            return data
        pieces = [data]
        count = len(data)
        while count < length:
            piece = os.pread(self._descriptor, length - count, position + count)
            if not piece:
                break
            pieces.append(piece)
            count += len(piece)
        return b"".join(pieces)

    def is_resident(self, position: int, length: int) -> bool:
        """Probes one byte in every read-ahead window and the last one; a system that cannot tell says yes."""
        if _preadv is None or length <= 0:
            return True
        probe = bytearray(1)
        last = position + length - 1
        for place in (*range(position, last, RESIDENCY_PROBE_BYTES), last):
            try:
                _preadv(self._descriptor, (probe,), place, _RWF_NOWAIT)
            except BlockingIOError:
                return False
            except OSError as error:
                if error.errno in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                    return True
                raise
        return True

    def read_resident(self, position: int, length: int) -> bytes | bytearray | None:
        if _preadv is None or not _RWF_NOWAIT:
            return None
        data = bytearray(length)
        try:
            count = _preadv(self._descriptor, (data,), position, _RWF_NOWAIT)
        except OSError:
            return None
        return data if count == length else None

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)
        self.size = size

    def sync(self) -> None:
        _sync_data(self._descriptor)

    def fileno(self) -> int:
        if self._descriptor < 0:
            raise OSError(errno.EBADF, "the file is closed", self.path)
        return self._descriptor

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __repr__(self) -> str:
        return f"RealFile({self.path!r}, size={self.size})"


class RealDiskLock:
    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _take_exclusive_lock(descriptor: int) -> None:
    """A lock that Java's `FileChannel.tryLock` sees, and that also holds against this very process.

    A plain POSIX lock would be lost as soon as the process closes any other descriptor of the file, so the lock of
    the open file description is taken where the system has it.
    """
    command = getattr(fcntl, "F_OFD_SETLK", None)
    if command is None:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    whole_file = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        fcntl.fcntl(descriptor, command, whole_file)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            raise BlockingIOError(error.errno, error.strerror) from None
        raise


class RealDisk:
    """The file system. Descriptors are closed over `exec`, and every rename is followed by a directory sync."""

    def open(self, path: str, *, create: bool = False) -> RealFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return RealFile(path, os.open(path, flags, 0o644))

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def write_atomically(self, path: str, data: bytes) -> None:
        temporary = path + ".tmp"
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        self.rename(temporary, path)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def list_directory(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def make_directory(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)
        parents = {os.path.dirname(source), os.path.dirname(target)}
        for parent in sorted(parents):
            self.sync_directory(parent)

    def delete(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def delete_directory(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(path)

    def sync_directory(self, path: str) -> None:
        descriptor = os.open(path or ".", os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def size_of(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def space(self, path: str) -> DiskSpace:
        found = os.statvfs(path)
        return DiskSpace(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)

    def lock(self, path: str) -> RealDiskLock:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            _take_exclusive_lock(descriptor)
        except OSError as error:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            os.close(descriptor)
            if isinstance(error, BlockingIOError):
                raise BlockingIOError(error.errno, f"held by process {holder or 'unknown'}", path) from None
            raise
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        return RealDiskLock(descriptor)
