"""A disk in memory that can crash, fill up and fail.

It promises no more than POSIX does. After a crash
- bytes that were synced are there; of the others any prefix is, and its end may be torn: zeros or garbage,
- a file or directory entry is certain only once its directory was synced (a rename counts as synced);
  an unsynced creation, truncation or deletion may or may not have happened.

Which of the possible outcomes comes about is drawn from dice the caller hands in, so a seed repeats it.
"""

import errno
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ottla.runtime.disk import Buffer, DiskSpace
from ottla.runtime.open_files import FileNames, OpenFiles, PooledFile

_TORN_BYTES = 512
_TORN_A_LITTLE_BYTES = 24
_ENDLESS_BYTES = 2**63 - 1


@dataclass(slots=True)
class _Node:
    """A file's content now, what of it is on the device, and how much of the two is known to agree."""

    data: bytearray = field(default_factory=bytearray)
    synced: bytearray = field(default_factory=bytearray)
    stable_bytes: int = 0
    modified_ms: int = 0

    def sync(self) -> None:
        self.synced[self.stable_bytes :] = self.data[self.stable_bytes :]
        self.stable_bytes = len(self.data)

    def crash(self, below: Callable[[int], int]) -> None:
        unsynced = len(self.data) - self.stable_bytes
        if unsynced or len(self.synced) != self.stable_bytes:
            outcome = below(4)
            if outcome == 0:
                self.data[:] = self.synced
            elif outcome > 1:
                # The length of a file may be on the device before its bytes are.
                kept = unsynced if below(2) else below(unsynced + 1)
                self._tear(below, kept, torn=outcome == 3)
        self.synced[:] = self.data
        self.stable_bytes = len(self.data)

    def _tear(self, below: Callable[[int], int], kept: int, *, torn: bool) -> None:
        del self.data[self.stable_bytes + kept :]
        if torn:
            count = min(kept, 1 + below(_TORN_BYTES if below(2) else _TORN_A_LITTLE_BYTES))
            if count:
                self.data[-count:] = bytes(count) if below(2) else bytes(below(256) for _ in range(count))


@dataclass(slots=True)
class _Fault:
    operation: str
    number: int
    path_part: str
    times: int
    skip: int


class MemoryFile(PooledFile):
    """A file in use; of no use any more after a crash. Like a real one it may lose its node, and finds it by name."""

    handle: _Node | None

    def __init__(self, disk: "MemoryDisk", path: str, size: int) -> None:
        super().__init__(path, size)
        self._disk = disk
        self._life = disk.life

    def _node(self, operation: str) -> _Node:
        if self.is_closed or self._life != self._disk.life:
            raise OSError(errno.EBADF, "the file is not open any more", self.path)
        self._disk.check_fault(operation, self.path)
        return self._opened()

    def _opened(self) -> _Node:
        if self.handle is not None:
            self.is_recent = True
            return self.handle
        self._disk.check_fault("open", self.path)
        node: _Node = self._disk.open_files.admit(self, self._disk.node_at(self.path))
        return node

    def append(self, chunks: Sequence[Buffer]) -> int:
        node = self._node("append")
        position = len(node.data)
        self._disk.reserve(sum(map(len, chunks)), self.path)
        for chunk in chunks:
            node.data += chunk
        self._changed(node)
        return position

    def _changed(self, node: _Node) -> None:
        node.modified_ms = self._disk.now_ms()
        self.size = len(node.data)
        self._disk.open_files.note_write(self)

    def write_at(self, position: int, data: Buffer) -> None:
        node = self._node("write_at")
        if position + len(data) > len(node.data):
            raise ValueError(f"write_at may only overwrite: {position} + {len(data)} is beyond the end of {self.path}")
        node.data[position : position + len(data)] = data
        node.stable_bytes = min(node.stable_bytes, position)
        self._changed(node)

    def read_at(self, position: int, length: int) -> bytes:
        return bytes(self._node("read_at").data[position : position + length])

    def is_resident(self, position: int, length: int) -> bool:
        return self.path not in self._disk.cold_paths

    def read_resident(self, position: int, length: int) -> bytes | bytearray | None:
        return self.read_at(position, length) if self.is_resident(position, length) else None

    def send(self, descriptor: int, position: int, count: int) -> int:
        raise OSError(errno.EBADF, "a file in memory has no descriptor", self.path)

    def prepare(self) -> None:
        if self.handle is None:
            self._node("prepare")

    def truncate(self, size: int) -> None:
        node = self._node("truncate")
        del node.data[size:]
        node.data.extend(bytes(size - len(node.data)))
        node.stable_bytes = min(node.stable_bytes, size)
        self._changed(node)

    def sync(self) -> None:
        node = self._node("sync")
        self._disk.open_files.note_sync(self)
        node.sync()

    def close(self) -> None:
        self._disk.forget(self)


class MemoryDiskLock:
    def __init__(self, disk: "MemoryDisk", path: str) -> None:
        self._disk = disk
        self._path = path

    def release(self) -> None:
        self._disk.locked_paths.discard(self._path)


class MemoryDisk:
    """See the module. Directories are entries without a node."""

    def __init__(self, now_ms: Callable[[], int] = lambda: 0, capacity_bytes: int | None = None) -> None:
        self.now_ms = now_ms
        self.capacity_bytes = capacity_bytes
        self.cold_paths: set[str] = set()
        self.locked_paths: set[str] = set()
        self.life = 0
        self._entries: dict[str, _Node | None] = {"": None}
        self._durable: dict[str, _Node | None] = {"": None}
        self._faults: list[_Fault] = []
        self.open_files = OpenFiles()
        self._names = FileNames()
        # How often each operation was called.
        self.calls: Counter[str] = Counter()

    # Faults.

    def fail(
        self, operation: str, number: int = errno.EIO, *, path_part: str = "", times: int = 1, skip: int = 0
    ) -> None:
        """Let `times` calls of an operation (`append`, `sync`, `open` ...) raise OSError(number), after `skip` more."""
        self._faults.append(_Fault(operation, number, path_part, times, skip))

    @property
    def has_faults(self) -> bool:
        """Whether there are faults that nobody has met yet."""
        return any(fault.times for fault in self._faults)

    def clear_faults(self) -> None:
        self._faults.clear()

    def check_fault(self, operation: str, path: str) -> None:
        self.calls[operation] += 1
        for fault in self._faults:
            if fault.operation == operation and fault.path_part in path and fault.times > 0:
                if fault.skip:
                    fault.skip -= 1
                    continue
                fault.times -= 1
                raise OSError(fault.number, "injected", path)

    def reserve(self, count: int, path: str) -> None:
        if self.capacity_bytes is not None and self._used_bytes() + count > self.capacity_bytes:
            raise OSError(errno.ENOSPC, "the disk is full", path)

    def _used_bytes(self) -> int:
        return sum(len(node.data) for node in self._entries.values() if node is not None)

    def crash(self, below: Callable[[int], int]) -> None:
        """Lose what was not synced, as the dice fall. Open files and locks are gone."""
        self.life += 1
        self.locked_paths.clear()
        survivors: dict[str, _Node | None] = {}
        for path in sorted(self._entries.keys() | self._durable.keys()):
            parent_survived = path == "" or _parent(path) in survivors
            now, before = self._entries.get(path, path), self._durable.get(path, path)
            chosen = now if now is before or below(2) else before
            # A path stands for "no entry": no node is a string.
            if parent_survived and not isinstance(chosen, str):
                survivors[path] = chosen
        for node in survivors.values():
            if node is not None:
                node.crash(below)
        self._entries = survivors
        self._durable = dict(survivors)

    # The interface of a disk.

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        self.check_fault("open", path)
        node = self._entries.get(path)
        if node is None:
            if path in self._entries:
                raise IsADirectoryError(errno.EISDIR, "a directory", path)
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            self._need_parent(path)
            node = self._entries[path] = _Node(modified_ms=self.now_ms())
        file = self.open_later(path, len(node.data))
        self.open_files.admit(file, node)
        return file

    def open_later(self, path: str, size: int) -> MemoryFile:
        file = MemoryFile(self, path, size)
        self._names.add(file)
        return file

    def forget(self, file: MemoryFile) -> None:
        """The file is closed for good."""
        self._names.remove(file)
        self.open_files.forget(file)

    def _need_parent(self, path: str) -> None:
        if self._entries.get(_parent(path), path) is not None:
            raise FileNotFoundError(errno.ENOENT, "no such directory", _parent(path))

    def read(self, path: str) -> bytes:
        self.check_fault("read", path)
        return bytes(self.node_at(path).data)

    def node_at(self, path: str) -> _Node:
        node = self._entries.get(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return node

    def write_atomically(self, path: str, data: bytes, *, syncs_name: bool = True) -> None:
        self.check_fault("write_atomically", path)
        self._need_parent(path)
        self.reserve(len(data), path)
        node = _Node(bytearray(data), modified_ms=self.now_ms())
        node.sync()
        self._entries[path] = node
        if syncs_name:
            self.sync_directory(_parent(path))

    def exists(self, path: str) -> bool:
        return path in self._entries

    def list_directory(self, path: str) -> list[str]:
        self.check_fault("list_directory", path)
        if not self.is_directory(path):
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        return sorted(entry[len(path) + 1 :] for entry in self._entries if entry and _parent(entry) == path)

    def list_sizes(self, path: str) -> dict[str, int]:
        nodes = [(name, self._entries[f"{path}/{name}"]) for name in self.list_directory(path)]
        return {name: 0 if node is None else len(node.data) for name, node in nodes}

    def list_directories(self, path: str) -> list[str]:
        return [name for name in self.list_directory(path) if self.is_directory(f"{path}/{name}")]

    def is_directory(self, path: str) -> bool:
        return path in self._entries and self._entries[path] is None

    def make_directory(self, path: str) -> None:
        self.check_fault("make_directory", path)
        parts = path.split("/")
        for count in range(1, len(parts) + 1):
            self._entries.setdefault("/".join(parts[:count]), None)

    def rename(self, source: str, target: str) -> None:
        self.check_fault("rename", source)
        if source not in self._entries:
            raise FileNotFoundError(errno.ENOENT, "no such file", source)
        for entries in (self._entries, self._durable):
            moved = [path for path in entries if path == source or path.startswith(source + "/")]
            for path in moved:
                entries[target + path[len(source) :]] = entries.pop(path)
        with self._names.renaming:
            self._names.renamed(source, target)
        for parent in {_parent(source), _parent(target)}:
            self.sync_directory(parent)

    def delete(self, path: str) -> None:
        self.check_fault("delete", path)
        self._entries.pop(path, None)

    def delete_directory(self, path: str) -> None:
        self.check_fault("delete_directory", path)
        for entry in [entry for entry in self._entries if entry == path or entry.startswith(path + "/")]:
            del self._entries[entry]

    def sync_directory(self, path: str) -> None:
        path = path.rstrip("/")
        self.check_fault("sync_directory", path)
        if not self.is_directory(path):
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        for entry in [entry for entry in self._durable if entry and _parent(entry) == path]:
            if entry not in self._entries:
                del self._durable[entry]
        for entry, node in self._entries.items():
            if entry and _parent(entry) == path:
                self._durable[entry] = node

    def size_of(self, path: str) -> int:
        return len(self.node_at(path).data)

    def modified_ms(self, path: str) -> int:
        return self.node_at(path).modified_ms

    def space(self, path: str) -> DiskSpace:
        self.check_fault("space", path)
        if not self.exists(path):
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        total_bytes = _ENDLESS_BYTES if self.capacity_bytes is None else self.capacity_bytes
        return DiskSpace(total_bytes, max(0, total_bytes - self._used_bytes()))

    def lock(self, path: str) -> MemoryDiskLock:
        if path in self.locked_paths:
            raise BlockingIOError(errno.EAGAIN, "held by this process", path)
        self.open(path, create=True).close()
        self.locked_paths.add(path)
        return MemoryDiskLock(self, path)


def _parent(path: str) -> str:
    return path.rpartition("/")[0]
