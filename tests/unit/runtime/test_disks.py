"""Both disks keep the same promises; the real one is the machine's."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.runtime import Disk, FileRange
from ottla.runtime.open_files import Descriptor
from ottla.runtime.real_disk import RealDisk
from ottla.testing import MemoryDisk

Place = tuple[Disk, str]


@pytest.fixture(params=["real", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "real":
        return RealDisk(), str(tmp_path)
    disk = MemoryDisk()
    disk.make_directory("/disk")
    return disk, "/disk"


def test_appends_go_to_the_end_and_reads_name_their_place(place: Place) -> None:
    disk, root = place
    file = disk.open(f"{root}/a", create=True)
    assert file.append([b"hello"]) == 0
    assert file.append([b" ", bytearray(b"big "), memoryview(b"world")]) == 5
    assert file.size == 15
    assert file.read_at(0, 100) == b"hello big world"
    assert file.read_at(6, 3) == b"big"
    assert file.read_at(15, 5) == b""
    assert FileRange(file, 10, 5).read() == b"world"
    file.sync()
    file.close()
    assert disk.read(f"{root}/a") == b"hello big world"
    assert disk.open(f"{root}/a").size == 15


def test_many_chunks_at_once(place: Place) -> None:
    disk, root = place
    file = disk.open(f"{root}/a", create=True)
    chunks = [bytes([number % 256]) for number in range(3000)]
    assert file.append(chunks) == 0
    assert file.read_at(0, 5000) == b"".join(chunks)


def test_overwriting_and_truncating(place: Place) -> None:
    disk, root = place
    file = disk.open(f"{root}/a", create=True)
    file.append([b"abcdef"])
    file.write_at(2, b"XY")
    assert file.read_at(0, 6) == b"abXYef"
    with pytest.raises(ValueError, match="only overwrite"):
        file.write_at(5, b"zz")
    file.truncate(3)
    assert (file.size, file.read_at(0, 10)) == (3, b"abX")
    assert file.append([b"!"]) == 3
    assert file.read_at(0, 10) == b"abX!"


def test_files_that_are_not_there(place: Place) -> None:
    disk, root = place
    attempts: list[Callable[[], object]] = [
        lambda: disk.open(f"{root}/none"),
        lambda: disk.open(f"{root}/none/none", create=True),
        lambda: disk.read(f"{root}/none"),
        lambda: disk.rename(f"{root}/none", f"{root}/other"),
        lambda: disk.list_directory(f"{root}/none"),
        lambda: disk.size_of(f"{root}/none"),
    ]
    for attempt in attempts:
        with pytest.raises(FileNotFoundError):
            attempt()
    disk.delete(f"{root}/none")
    disk.delete_directory(f"{root}/none")
    assert not disk.exists(f"{root}/none")


def test_directories(place: Place) -> None:
    disk, root = place
    disk.make_directory(f"{root}/b/c")
    disk.make_directory(f"{root}/b/c")
    disk.write_atomically(f"{root}/b/c/file", b"one")
    disk.write_atomically(f"{root}/b/c/file", b"two")
    disk.write_atomically(f"{root}/b/a", b"")
    disk.sync_directory(f"{root}/b")
    assert disk.list_directory(f"{root}/b") == ["a", "c"]
    assert disk.is_directory(f"{root}/b/c")
    assert not disk.is_directory(f"{root}/b/a")
    assert disk.read(f"{root}/b/c/file") == b"two"
    assert disk.size_of(f"{root}/b/c/file") == 3
    disk.rename(f"{root}/b/c", f"{root}/d")
    assert disk.read(f"{root}/d/file") == b"two"
    assert disk.list_directory(root) == ["b", "d"]
    disk.rename(f"{root}/b/a", f"{root}/d/file")
    assert disk.read(f"{root}/d/file") == b""
    disk.delete_directory(f"{root}/d")
    assert not disk.exists(f"{root}/d/file")


def test_an_open_file_outlives_its_name(place: Place) -> None:
    disk, root = place
    file = disk.open(f"{root}/a", create=True)
    file.append([b"still here"])
    disk.delete(f"{root}/a")
    assert file.read_at(0, 100) == b"still here"


def test_a_lock_holds_against_the_same_process_too(place: Place) -> None:
    disk, root = place
    lock = disk.lock(f"{root}/.lock")
    for _ in range(2):
        with pytest.raises(BlockingIOError, match="held by"):
            disk.lock(f"{root}/.lock")
    lock.release()
    lock.release()
    disk.lock(f"{root}/.lock").release()


def test_a_closed_file_is_of_no_use(place: Place) -> None:
    disk, root = place
    file = disk.open(f"{root}/a", create=True)
    file.close()
    file.close()
    with pytest.raises(OSError, match=r"."):
        file.read_at(0, 1)
    with pytest.raises(OSError, match=r"."):
        file.prepare()


def test_another_process_sees_the_lock_and_its_death_frees_it(tmp_path: Path) -> None:
    code = (
        "import sys, time\nfrom ottla.runtime.real_disk import RealDisk\n"
        "lock = RealDisk().lock(sys.argv[1])\nprint('locked', flush=True)\ntime.sleep(60)\n"
    )
    path = str(tmp_path / ".lock")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    holder = subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE, env=environment)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        with pytest.raises(BlockingIOError, match=f"process {holder.pid}"):
            RealDisk().lock(path)
    finally:
        holder.kill()
        holder.communicate()
    RealDisk().lock(path).release()


def test_a_refused_append_leaves_nothing_behind(tmp_path: Path) -> None:
    """A limit on the size of files makes the kernel take a part of a write and then refuse."""
    code = (
        "import resource, signal, sys\nfrom ottla.runtime.real_disk import RealDisk\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "file = RealDisk().open(sys.argv[1], create=True)\n"
        "file.append([b'a' * 900])\n"
        "for chunks in ([b'b' * 200], [b'c' * 50, b'd' * 150]):\n"
        "    try:\n        file.append(chunks)\n    except OSError as error:\n        print(error.errno, file.size)\n"
        "file.append([b'e' * 100])\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code, str(tmp_path / "a")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert done.stdout == f"{errno.EFBIG} 900\n" * 2
    assert (tmp_path / "a").read_bytes() == b"a" * 900 + b"e" * 100


def test_hot_bytes_are_resident(tmp_path: Path) -> None:
    file = RealDisk().open(str(tmp_path / "a"), create=True)
    file.append([bytes(1_000_000)])
    assert file.is_resident(0, 1_000_000)
    assert file.is_resident(999_999, 1)
    assert file.is_resident(5, 0)
    assert isinstance(file.handle, Descriptor)
    assert os.get_inheritable(file.handle.number) is False


def test_modification_time(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"")
    os.utime(path, ns=(0, 1_700_000_000_123_000_000))
    assert RealDisk().modified_ms(str(path)) == 1_700_000_000_123


def test_the_room_on_a_disk(place: Place) -> None:
    disk, root = place
    total_bytes, usable_bytes = disk.space(root)
    assert 0 < usable_bytes <= total_bytes
    with pytest.raises(FileNotFoundError):
        disk.space(f"{root}/nothing")


def test_the_room_on_a_disk_of_known_size() -> None:
    disk = MemoryDisk(capacity_bytes=1000)
    disk.make_directory("/disk")
    disk.open("/disk/a", create=True).append([bytes(300)])
    assert disk.space("/disk") == (1000, 700)
