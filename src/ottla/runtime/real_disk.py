"""The machine's own files, behind the interfaces of `ottla.runtime.disk`.

Appends and reads name their position (`pwritev`, `pread`), so one descriptor serves the loop, the threads that
sync it and `sendfile` at the same time, and there is no cursor to race for. Not every file has one all the time: see
`ottla.runtime.open_files`.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import struct
from collections.abc import Callable, Sequence
from typing import TypeVar

from ottla.runtime.disk import Buffer, DiskSpace
from ottla.runtime.open_files import Descriptor, FileNames, OpenFiles, PooledFile, is_shortage

Result = TypeVar("Result")

# How far apart residency is probed: the kernel reads ahead in windows of this size, so the pages between two
# probes that hit are nearly always there as well.
RESIDENCY_PROBE_BYTES = 128 * 1024
# A descriptor that was given up may be taken by another thread before it is used.
_SHORTAGE_ATTEMPTS = 4
_SMALL_FILE_BYTES = 64 * 1024
_MAX_CHUNKS = 1024  # IOV_MAX on every system this runs on

_sync_data = getattr(os, "fdatasync", os.fsync)
_preadv = getattr(os, "preadv", None)
_RWF_NOWAIT = getattr(os, "RWF_NOWAIT", 0)


class RealFile(PooledFile):
    """A file that is open whenever it is used, whether or not it has a descriptor at the moment.

    Only this object may change the file: `size` is what it remembers. A descriptor is held in a local variable for as
    long as a call uses it, since the file may lose it at any moment (see `open_files`).
    """

    __slots__ = ("_disk", "_identity")

    def __init__(self, disk: "RealDisk", path: str, size: int = 0) -> None:
        super().__init__(path, size)
        self._disk = disk
        self._identity: tuple[int, int] | None = None

    def open(self, number: int) -> None:
        """Take the descriptor with which the file was opened first."""
        handle = Descriptor(number)
        found = os.fstat(number)
        self.size = found.st_size
        self._identity = (found.st_dev, found.st_ino)
        self._disk.open_files.admit(self, handle)

    def _open_again(self) -> Descriptor:
        if self.is_closed:
            raise OSError(errno.EBADF, "the file is closed", self.path)
        handle = self._disk.find_again(self)
        found = os.fstat(handle.number)
        identity = (found.st_dev, found.st_ino)
        if self._identity not in (None, identity):
            raise OSError(errno.ESTALE, "another file has taken its name", self.path)
        self._identity = identity
        admitted: Descriptor = self._disk.open_files.admit(self, handle)
        return admitted

    def append(self, chunks: Sequence[Buffer]) -> int:
        handle = self.handle
        if handle is None:
            handle = self._open_again()
        else:
            self.is_recent = True
        descriptor = handle.number
        position = self.size
        try:
            if len(chunks) == 1:
                total = len(chunks[0])
                written = os.pwrite(descriptor, chunks[0], position)
            else:
                total = sum(map(len, chunks))
                written = os.pwritev(descriptor, chunks[:_MAX_CHUNKS], position)
            if written != total:
                self._write_rest(descriptor, b"".join(chunks), position, written)
        except OSError:
            # The rest of a half-written append must never be taken for data. A failing truncate is not reported
            # in place of the first error: recovery cuts the tail off as well.
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, position)
            raise
        self.size = position + total
        if not self.is_unsynced:
            self._disk.open_files.note_write(self)
        return position

    def _write_rest(self, descriptor: int, data: bytes, position: int, written: int) -> None:
        view = memoryview(data)
        while written < len(data):
            count = os.pwrite(descriptor, view[written:], position + written)
            if count == 0:
                raise OSError(errno.ENOSPC, f"the disk took {written} of {len(data)} bytes", self.path)
            written += count

    def write_at(self, position: int, data: Buffer) -> None:
        if position + len(data) > self.size:
            raise ValueError(
                f"write_at may only overwrite: {position} + {len(data)} is beyond {self.size} in {self.path}"
            )
        handle = self.handle or self._open_again()
        view = memoryview(data)
        written = 0
        while written < len(view):
            written += os.pwrite(handle.number, view[written:], position + written)
        self._disk.open_files.note_write(self)

    def read_at(self, position: int, length: int) -> bytes:
        handle = self.handle
        if handle is None:
            handle = self._open_again()
        else:
            self.is_recent = True
        descriptor = handle.number
        data = os.pread(descriptor, length, position)
        if len(data) == length or position + len(data) >= self.size:
            return data
        pieces = [data]
        count = len(data)
        while count < length:
            piece = os.pread(descriptor, length - count, position + count)
            if not piece:
                break
            pieces.append(piece)
            count += len(piece)
        return b"".join(pieces)

    def is_resident(self, position: int, length: int) -> bool:
        """Probes one byte in every read-ahead window and the last one; a system that cannot tell says yes."""
        if _preadv is None or length <= 0:
            return True
        handle = self.handle or self._open_again()
        probe = bytearray(1)
        last = position + length - 1
        for place in (*range(position, last, RESIDENCY_PROBE_BYTES), last):
            try:
                _preadv(handle.number, (probe,), place, _RWF_NOWAIT)
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
            handle = self.handle
            if handle is None:
                handle = self._open_again()
            else:
                self.is_recent = True
            count = _preadv(handle.number, (data,), position, _RWF_NOWAIT)
        except OSError:
            return None
        return data if count == length else None

    def send(self, descriptor: int, position: int, count: int) -> int:
        handle = self.handle
        if handle is None:
            handle = self._open_again()
        else:
            self.is_recent = True
        return os.sendfile(descriptor, handle.number, position, count)

    def prepare(self) -> None:
        if self.handle is None:
            self._open_again()

    def truncate(self, size: int) -> None:
        handle = self.handle or self._open_again()
        os.ftruncate(handle.number, size)
        self.size = size
        self._disk.open_files.note_write(self)

    def sync(self) -> None:
        handle = self.handle or self._open_again()
        open_files = self._disk.open_files
        open_files.note_sync(self)
        try:
            _sync_data(handle.number)
        except OSError:
            open_files.note_write(self)
            raise

    def close(self) -> None:
        if not self.is_closed:
            self._disk.forget(self)

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

    def __init__(self) -> None:
        self.open_files = OpenFiles()
        self._names = FileNames()

    # Descriptors.

    def open_descriptor(self, path: str, flags: int) -> int:
        """A descriptor of the system, closed over `exec`."""
        return self._with_room(self.ask_for_descriptor, path, flags | os.O_CLOEXEC)

    def ask_for_descriptor(self, path: str, flags: int) -> int:
        return os.open(path, flags, 0o644)

    def _with_room(self, ask: Callable[..., Result], *args: object) -> Result:
        """Ask the system. When it has no descriptor left, the least recently used file gives its own.

        Only one at a time: more would not be there the next time either, when connections wait for descriptors too.
        """
        for _ in range(_SHORTAGE_ATTEMPTS):
            try:
                return ask(*args)
            except OSError as error:
                if not is_shortage(error) or not self.open_files.evict(1):
                    raise
        return ask(*args)

    def sync_descriptor(self, descriptor: int, path: str) -> None:
        """Of a directory, or of a small file that is being written."""
        os.fsync(descriptor)

    def find_again(self, file: RealFile) -> Descriptor:
        """A descriptor of a file that has lost its own, under the name that it has now."""
        while True:
            renames, path = self._names.renames, file.path
            try:
                handle = Descriptor(self.open_descriptor(path, os.O_RDWR))
            except FileNotFoundError:
                if self._names.are_as_at(renames):
                    raise
                continue
            # A file gets its new name before another can take the old one: the same name means the same file.
            if file.path == path:
                return handle

    def new_file(self, path: str, size: int = 0) -> RealFile:
        """A file that is not open yet."""
        return RealFile(self, path, size)

    def forget(self, file: RealFile) -> None:
        """The file is closed for good."""
        self._names.remove(file)
        self.open_files.forget(file)

    # The interface of a disk.

    def open(self, path: str, *, create: bool = False) -> RealFile:
        file = self.open_later(path, 0)
        try:
            file.open(self.open_descriptor(path, os.O_RDWR | (os.O_CREAT if create else 0)))
        except OSError:
            file.close()
            raise
        return file

    def open_later(self, path: str, size: int) -> RealFile:
        file = self.new_file(path, size)
        self._names.add(file)
        return file

    def read(self, path: str) -> bytes:
        descriptor = self.open_descriptor(path, os.O_RDONLY)
        try:
            data = os.read(descriptor, _SMALL_FILE_BYTES)
            if len(data) < _SMALL_FILE_BYTES:
                return data
            pieces = [data]
            while data:
                data = os.read(descriptor, _SMALL_FILE_BYTES)
                pieces.append(data)
            return b"".join(pieces)
        except IsADirectoryError as error:
            # A directory opens as a file does, and only reading it fails, without a name.
            raise IsADirectoryError(error.errno, error.strerror, path) from None
        finally:
            os.close(descriptor)

    def write_atomically(self, path: str, data: bytes, *, syncs_name: bool = True) -> None:
        temporary = path + ".tmp"
        descriptor = self.open_descriptor(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            view = memoryview(data)
            while len(view):
                view = view[os.write(descriptor, view) :]
            self.sync_descriptor(descriptor, temporary)
        finally:
            os.close(descriptor)
        if syncs_name:
            self.rename(temporary, path)
        else:
            os.replace(temporary, path)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def list_directory(self, path: str) -> list[str]:
        return sorted(self._with_room(os.listdir, path))

    def list_sizes(self, path: str) -> dict[str, int]:
        with self._with_room(os.scandir, path) as entries:
            found = [(entry.name, entry.stat().st_size) for entry in entries]
        return dict(sorted(found))

    def list_directories(self, path: str) -> list[str]:
        with self._with_room(os.scandir, path) as entries:
            return sorted([entry.name for entry in entries if entry.is_dir()])

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def make_directory(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        """The directories are opened first: what has no descriptor to finish with must not begin."""
        with contextlib.ExitStack() as stack:
            opened: dict[str, int] = {}
            for parent in sorted({os.path.dirname(source), os.path.dirname(target)}):
                opened[parent] = self.open_descriptor(parent or ".", os.O_RDONLY)
                stack.callback(os.close, opened[parent])
            with self._names.renaming:
                os.replace(source, target)
                self._names.renamed(source, target)
            for parent, descriptor in opened.items():
                self.sync_descriptor(descriptor, parent)

    def delete(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def delete_directory(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._with_room(shutil.rmtree, path)

    def sync_directory(self, path: str) -> None:
        descriptor = self.open_descriptor(path or ".", os.O_RDONLY)
        try:
            self.sync_descriptor(descriptor, path)
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
        descriptor = self.open_descriptor(path, os.O_RDWR | os.O_CREAT)
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
