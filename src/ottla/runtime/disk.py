"""Files, as the core sees them.

| call                                  | where it may run                                                |
|---------------------------------------|-----------------------------------------------------------------|
| `File.append`, `read_at` of hot bytes | on the loop: page cache only                                    |
| `File.sync`, cold `read_at`           | in the executor                                                 |
| everything on `Disk`                  | in the executor, or before the loop starts                      |

Paths are plain strings, absolute. Errors are `OSError`, as the machine reports them: the log decides what a
failing disk means.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ottla.runtime.open_files import OpenFiles

Buffer = bytes | bytearray | memoryview


class File(Protocol):
    """A file in use. `append` goes to the end; reads name their position; there is no cursor.

    It may not be open at the moment (see `ottla.runtime.open_files`), so every call may have to open it, and may raise
    the `OSError` of that: EMFILE where the system has no descriptor left.
    """

    @property
    def path(self) -> str: ...

    @property
    def size(self) -> int:
        """Bytes in the file, tracked without a system call."""
        ...

    def append(self, chunks: Sequence[Buffer]) -> int:
        """Write all the chunks at the end and return the position of the first byte.

        All or nothing: when the disk refuses part of it (ENOSPC, EIO), the file is cut back to where it was
        and the `OSError` is raised.
        """
        ...

    def write_at(self, position: int, data: Buffer) -> None:
        """Overwrite bytes that exist already."""
        ...

    def read_at(self, position: int, length: int) -> bytes:
        """Up to `length` bytes; fewer only at the end of the file."""
        ...

    def is_resident(self, position: int, length: int) -> bool:
        """Whether a read would be answered from memory, without waiting for the device."""
        ...

    def read_resident(self, position: int, length: int) -> bytes | bytearray | None:
        """All of the bytes if they are in memory, in one call; None when the device would have to be asked."""
        ...

    def truncate(self, size: int) -> None: ...

    def sync(self) -> None:
        """Return once everything appended before the call is on the device."""
        ...

    def send(self, descriptor: int, position: int, count: int) -> int:
        """Hand up to `count` bytes to a socket with `sendfile`; `OSError` on a disk that has no descriptors."""
        ...

    def prepare(self) -> None:
        """Let what fails when a file is opened fail now: the next use needs no descriptor, or has one."""
        ...

    def close(self) -> None: ...


class DiskSpace(NamedTuple):
    """The size of a file system, and what of it this process may still fill."""

    total_bytes: int
    usable_bytes: int


class DiskLock(Protocol):
    """A lock on a directory, held by this process until released or until it dies."""

    def release(self) -> None: ...


class Disk(Protocol):
    """A tree of directories and files."""

    @property
    def open_files(self) -> OpenFiles:
        """How many of its files are open, and may be."""
        ...

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and appending; FileNotFoundError unless it exists or `create` is given."""
        ...

    def open_later(self, path: str, size: int) -> File:
        """A file that is there and has this size, to be opened on its first use."""
        ...

    def read(self, path: str) -> bytes:
        """The whole of a small file."""
        ...

    def write_atomically(self, path: str, data: bytes, *, syncs_name: bool = True) -> None:
        """Replace a small file so that a crash leaves the old or the new one: temporary, fsync, rename, fsync.

        Without `syncs_name` the last step is left to whoever syncs the directory; until then it may be the old one.
        """
        ...

    def exists(self, path: str) -> bool: ...

    def list_directory(self, path: str) -> list[str]:
        """Names in a directory, sorted."""
        ...

    def list_sizes(self, path: str) -> dict[str, int]:
        """What is in a directory, with the sizes of files, sorted by name; those of directories mean nothing."""
        ...

    def list_directories(self, path: str) -> list[str]:
        """The directories in a directory, sorted."""
        ...

    def is_directory(self, path: str) -> bool: ...

    def make_directory(self, path: str) -> None:
        """Create it with its parents; not an error when it is there."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Atomically, replacing a file at the target, and durable once it returns."""
        ...

    def delete(self, path: str) -> None:
        """One file; not an error when it is gone already."""
        ...

    def delete_directory(self, path: str) -> None:
        """With all that is in it."""
        ...

    def sync_directory(self, path: str) -> None:
        """Make creations, renames and deletions in it durable."""
        ...

    def size_of(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def space(self, path: str) -> DiskSpace:
        """Of the file system that holds the path."""
        ...

    def lock(self, path: str) -> DiskLock:
        """Take the lock file; `BlockingIOError` when another process holds it. Its content names the holder's pid."""
        ...


@dataclass(slots=True)
class FileRange:
    """A piece of a file that was read without reading it: the server sends it with `sendfile`.

    The bytes below a log's end never change, so a range stays valid until its file is closed for good, also after the
    segment left its log. Nobody changes a range; it is not frozen only because that makes it slow to create.
    """

    file: File
    position: int
    length: int

    def __len__(self) -> int:
        return self.length

    def read(self) -> bytes:
        return self.file.read_at(self.position, self.length)
