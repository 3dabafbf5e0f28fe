"""Files are open while they are used, in a bounded number; nobody notices which of them are."""

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ottla.runtime import Disk, FileRange, is_shortage
from ottla.runtime.open_files import Descriptor, OpenFiles
from ottla.runtime.real_disk import RealDisk, RealFile
from ottla.testing import MemoryDisk

Place = tuple[Disk, str]


@pytest.fixture(params=["real", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "real":
        return RealDisk(), str(tmp_path)
    disk = MemoryDisk()
    disk.make_directory("/disk")
    return disk, "/disk"


def new_files(disk: Disk, root: str, count: int) -> list[RealFile]:
    """Synced, so that all of them may be closed."""
    files = [disk.open(f"{root}/{number}", create=True) for number in range(count)]
    for number, file in enumerate(files):
        file.append([b"%03d" % number])
        file.sync()
    return files  # type: ignore[return-value]  # either kind has what these tests look at


def are_open(files: list[RealFile]) -> list[int]:
    return [number for number, file in enumerate(files) if file.handle is not None]


def test_no_more_files_are_open_than_allowed_and_all_of_them_work(place: Place) -> None:
    disk, root = place
    disk.open_files.limit = 3
    files = new_files(disk, root, 10)
    assert len(disk.open_files) == len(are_open(files)) == 3
    for number, file in enumerate(files):
        assert file.size == 3
        assert file.append([b"+"]) == 3
        assert file.read_at(0, 10) == b"%03d+" % number
        assert FileRange(file, 1, 2).read() == b"%02d" % number
        assert len(disk.open_files) <= 3
    files[0].truncate(2)
    files[1].write_at(0, b"x")
    assert [disk.read(f"{root}/{number}") for number in (0, 1, 9)] == [b"00", b"x01+", b"009+"]
    assert disk.open_files.opened - disk.open_files.evicted == 3
    for file in files:
        file.close()
    assert len(disk.open_files) == 0


def test_the_least_recently_used_is_closed_first(place: Place) -> None:
    disk, root = place
    files = new_files(disk, root, 6)
    disk.open_files.evict(6)
    disk.open_files.limit = 3
    for number in (0, 1, 2):
        files[number].read_at(0, 1)
    assert disk.open_files.evict(0) == 0
    files[3].read_at(0, 1)
    assert 3 in are_open(files)
    kept = are_open(files)
    for _ in range(20):
        # Whoever is used all the time stays, whatever else comes and goes.
        files[kept[0]].read_at(0, 1)
        for number in range(6):
            files[kept[0]].read_at(0, 1)
            files[number].read_at(0, 1)
            assert kept[0] in are_open(files)


def test_unsynced_files_are_closed_last_while_they_are_few(place: Place) -> None:
    disk, root = place
    files = new_files(disk, root, 8)
    disk.open_files.limit = 8
    for number in (0, 1, 2):
        files[number].append([b"unsynced"])
    assert disk.open_files.evict(5) == 5
    assert are_open(files) == [0, 1, 2]
    files[1].sync()
    assert disk.open_files.evict(1) == 1
    assert are_open(files) == [0, 2]
    for file in files:
        file.append([b"unsynced"])
    assert len(disk.open_files) == 8
    # More than half: they go as well, and their sync opens them again.
    assert disk.open_files.evict(8) == 8
    for file in files:
        file.sync()
        assert not file.is_unsynced


def test_renamed_files_are_found_again(place: Place) -> None:
    disk, root = place
    disk.make_directory(f"{root}/old")
    moved, renamed, replacing = new_files(disk, f"{root}/old", 3)
    disk.open_files.evict(3)
    disk.rename(f"{root}/old/1", f"{root}/old/1.deleted")
    disk.rename(f"{root}/old/2", f"{root}/old/1")
    assert renamed.read_at(0, 3) == b"001"
    assert replacing.read_at(0, 3) == b"002"
    disk.rename(f"{root}/old", f"{root}/new")
    disk.open_files.evict(3)
    assert [file.read_at(0, 3) for file in (moved, renamed, replacing)] == [b"000", b"001", b"002"]
    assert moved.path == f"{root}/new/0"
    renamed.append([b"!"])
    assert disk.read(f"{root}/new/1.deleted") == b"001!"
    disk.delete(f"{root}/new/1.deleted")
    disk.open_files.evict(3)
    with pytest.raises(FileNotFoundError):
        renamed.read_at(0, 1)


def test_a_file_may_be_opened_later(place: Place) -> None:
    disk, root = place
    new_files(disk, root, 1)[0].close()
    opened = disk.open_files.opened
    later = disk.open_later(f"{root}/0", 3)
    missing = disk.open_later(f"{root}/1", 3)
    assert later.size == 3
    assert disk.open_files.opened == opened
    assert later.append([b"4"]) == 3
    assert later.read_at(0, 9) == b"0004"
    with pytest.raises(FileNotFoundError):
        missing.prepare()
    later.close()
    with pytest.raises(OSError, match=r"."):
        later.prepare()


def test_another_file_under_the_name_is_not_taken_for_it(tmp_path: Path) -> None:
    disk = RealDisk()
    (file,) = new_files(disk, str(tmp_path), 1)
    disk.open_files.evict(1)
    (tmp_path / "other").write_bytes(b"abc")
    os.replace(tmp_path / "other", tmp_path / "0")
    with pytest.raises(OSError, match="another file") as caught:
        file.read_at(0, 3)
    assert caught.value.errno == errno.ESTALE


def test_a_descriptor_in_use_is_not_closed(tmp_path: Path) -> None:
    disk = RealDisk()
    (file,) = new_files(disk, str(tmp_path), 1)
    handle = file.handle
    assert isinstance(handle, Descriptor)
    number = handle.number
    disk.open_files.evict(1)
    assert os.pread(number, 3, 0) == b"000"
    file.close()
    assert os.pread(number, 3, 0) == b"000"
    del handle
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)


def test_a_failed_sync_leaves_the_file_unsynced(tmp_path: Path) -> None:
    disk = MemoryDisk()
    disk.make_directory("/disk")
    file = disk.open("/disk/a", create=True)
    file.append([b"a"])
    disk.open_files.evict(1)
    disk.fail("open", errno.EMFILE)
    with pytest.raises(OSError, match="injected") as caught:
        file.sync()
    assert is_shortage(caught.value)
    assert file.is_unsynced
    file.sync()
    assert not file.is_unsynced


def test_threads_and_evictions_do_not_disturb_one_another(tmp_path: Path) -> None:
    """Appends on one thread; reads, syncs and renames on others, with fewer descriptors than threads."""
    disk = RealDisk()
    disk.open_files.limit = 2
    files = new_files(disk, str(tmp_path), 5)
    done = threading.Event()
    problems: list[BaseException] = []

    def until_done(work: object) -> threading.Thread:
        def run() -> None:
            try:
                while not done.is_set():
                    assert callable(work)
                    work()
            except BaseException as error:
                problems.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def read() -> None:
        for number, file in enumerate(files):
            assert file.read_at(0, 3) == b"%03d" % number
            assert file.is_resident(0, 3)

    def sync() -> None:
        for file in files:
            file.sync()

    def rename() -> None:
        for number, file in enumerate(files):
            disk.rename(file.path, str(tmp_path / f"{number}.deleted"))
            disk.rename(file.path, str(tmp_path / str(number)))

    threads = [until_done(work) for work in (read, sync, rename)]
    for step in range(300):
        for file in files:
            assert file.append([b"%05d" % step]) == 3 + 5 * step
    done.set()
    for thread in threads:
        thread.join()
    assert not problems
    assert len(disk.open_files) <= 2
    for number in range(5):
        expected = b"%03d" % number + b"".join(b"%05d" % step for step in range(300))
        assert (tmp_path / str(number)).read_bytes() == expected


WITHOUT_DESCRIPTORS = """
import os, resource, sys
from ottla.runtime.real_disk import RealDisk
disk = RealDisk()
resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
files = [disk.open(f"{sys.argv[1]}/{number}", create=True) for number in range(100)]
for number, file in enumerate(files):
    file.append([b"%03d" % number])
assert all(file.read_at(0, 3) == b"%03d" % number for number, file in enumerate(files))
assert len(disk.list_sizes(sys.argv[1])) == 100
disk.rename(f"{sys.argv[1]}/0", f"{sys.argv[1]}/zero")
disk.write_atomically(f"{sys.argv[1]}/1", b"new")
others = []
try:
    while True:
        others.append(os.open("/dev/null", os.O_RDONLY))
except OSError as error:
    print("system:", error.errno)
disk.open_files.evict(1)
others.append(os.open("/dev/null", os.O_RDONLY))
files[50].append([b"!"])
while disk.open_files.evict(1):
    others.append(os.open("/dev/null", os.O_RDONLY))
try:
    files[50].append([b"?"])
except OSError as error:
    print("append:", error.errno)
for other in others:
    os.close(other)
files[50].append([b"."])
print(files[50].read_at(0, 9).decode())
"""


def test_without_a_descriptor_left_files_give_theirs_to_one_another(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_DESCRIPTORS, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout == f"system: {errno.EMFILE}\nappend: {errno.EMFILE}\n050!.\n"


def test_what_is_closed_stays_closed() -> None:
    disk = MemoryDisk()
    disk.make_directory("/disk")
    file = disk.open("/disk/a", create=True)
    file.close()
    with pytest.raises(OSError, match="closed"):
        OpenFiles().admit(file, object())
