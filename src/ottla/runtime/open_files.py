"""Which files are open: a bounded number, least recently used closed first.

    not open --first use--> open --nobody used it for longest--> not open --next use--> open ...

A file that lost its descriptor opens it again by itself when it is used next, on whichever thread that is. It is never
closed under a user: whoever works with a descriptor holds a reference to its `Descriptor`, letting go of it only drops
the one that the file had, and the system's descriptor is closed with the last. So for the moment of a call there may be
as many descriptors above the limit as there are threads at work.

Unsynced files, those written to since their last sync, are passed over as long as they are no more than half of the
limit. Where a device fails to write a page back, Linux tells the next fsync of every descriptor that was open, or, when
none was, that of the first one opened after it; it forgets the failure only if it drops the inode from memory in
between. So a file that was closed unsynced and is opened for its fsync still hears of the failure, but for that one
case, and keeping the descriptor excludes that one too.

Recency is one flag, set by every use but the one that opened the file: on its way out, a file that was used again since
it was last looked at gets a second chance. So a row of files that are read once does not push out the busy ones.
"""

import contextlib
import errno
import os
import threading
from typing import Any

DEFAULT_LIMIT = 4096


def is_shortage(error: BaseException | None) -> bool:
    """Whether there was only no descriptor left: nothing is wrong with the file, and later it may work."""
    return isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)


class Descriptor:
    """A descriptor of the system, closed when nobody has a reference to this any more."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.number)


class PooledFile:
    """What a file must have to be let go of and opened again. `handle` is None while it is not open.

    `size` is remembered, since a file that is not open has one too.
    """

    __slots__ = ("handle", "is_closed", "is_recent", "is_unsynced", "path", "size")

    def __init__(self, path: str, size: int) -> None:
        self.path = path
        self.size = size
        self.handle: Any = None
        self.is_closed = False
        self.is_recent = False
        self.is_unsynced = False


class OpenFiles:
    """All files of a disk that are open, within `limit`. Any thread may call anything.

    `opened` and `evicted` count descriptors that were opened, and files that lost theirs to others.
    """

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self.limit = limit
        self.opened = 0
        self.evicted = 0
        self._lock = threading.Lock()
        self._synced: dict[PooledFile, None] = {}
        self._unsynced: dict[PooledFile, None] = {}

    def __len__(self) -> int:
        return len(self._synced) + len(self._unsynced)

    def admit(self, file: PooledFile, handle: Any) -> Any:
        """Give a file the handle that was opened for it, and close others until all fit; the handle to use.

        Two threads may have opened it at once: then the first one's is the file's.
        """
        with self._lock:
            if file.is_closed:
                raise OSError(errno.EBADF, "the file is closed", file.path)
            self.opened += 1
            if file.handle is not None:
                return file.handle
            dropped = self._evict(len(self) + 1 - self.limit)
            file.handle = handle
            file.is_recent = False
            (self._unsynced if file.is_unsynced else self._synced)[file] = None
        # Here, and not under the lock, is where they are closed.
        del dropped
        return handle

    def forget(self, file: PooledFile) -> None:
        """The file is closed for good."""
        with self._lock:
            file.is_closed = True
            self._synced.pop(file, None)
            self._unsynced.pop(file, None)
            handle, file.handle = file.handle, None
        del handle

    def note_write(self, file: PooledFile) -> None:
        """The file has bytes that no sync has covered. To be called after they were written."""
        with self._lock:
            file.is_unsynced = True
            if file in self._synced:
                del self._synced[file]
                self._unsynced[file] = None

    def note_sync(self, file: PooledFile) -> None:
        """A sync that covers everything up to now begins; what is written during it is unsynced again."""
        with self._lock:
            file.is_unsynced = False
            if file in self._unsynced:
                del self._unsynced[file]
                self._synced[file] = None

    def evict(self, count: int) -> int:
        """Let the `count` least recently used go; how many there were."""
        with self._lock:
            dropped = self._evict(count)
        return len(dropped)

    def _evict(self, count: int) -> list[Any]:
        """The handles of files that lose theirs."""
        dropped: list[Any] = []
        while len(dropped) < count and (self._synced or self._unsynced):
            must_spare = self._synced and len(self._unsynced) <= self.limit // 2
            members = self._synced if must_spare or not self._unsynced else self._unsynced
            file = next(iter(members))
            del members[file]
            if file.is_recent:
                file.is_recent = False
                members[file] = None
            else:
                dropped.append(file.handle)
                file.handle = None
        self.evicted += len(dropped)
        return dropped


class FileNames:
    """What the files of a disk are called now: one that is opened again must not be looked for under an old name.

    `renaming` is held from before a rename until the files know of it.
    """

    def __init__(self) -> None:
        self.renaming = threading.Lock()
        self.renames = 0
        self._lock = threading.Lock()
        self._by_directory: dict[str, dict[PooledFile, None]] = {}

    def add(self, file: PooledFile) -> None:
        with self._lock:
            self._by_directory.setdefault(_parent(file.path), {})[file] = None

    def remove(self, file: PooledFile) -> None:
        with self._lock:
            directory = _parent(file.path)
            files = self._by_directory.get(directory)
            if files is not None:
                files.pop(file, None)
                if not files:
                    del self._by_directory[directory]

    def renamed(self, source: str, target: str) -> None:
        """A file, or a directory that holds files only, has another name. Under `renaming`, before the old is used."""
        self.renames += 1
        with self._lock:
            moved = self._by_directory.pop(source, None)
            if moved is not None:
                for file in moved:
                    file.path = target + file.path[len(source) :]
                self._by_directory.setdefault(target, {}).update(moved)
                return
            siblings = self._by_directory.get(_parent(source), {})
            for file in [file for file in siblings if file.path == source]:
                del siblings[file]
                file.path = target
                self._by_directory.setdefault(_parent(target), {})[file] = None

    def are_as_at(self, renames: int) -> bool:
        """Whether nothing was renamed since `renames` was read; waits for a rename under way."""
        with self.renaming:
            return self.renames == renames


def _parent(path: str) -> str:
    return path.rpartition("/")[0]
