"""What a crash may do to the disk in memory, and what it may not."""

import errno
import random

import pytest

from ottla.testing import MemoryDisk

ROUNDS = range(60)


def crashed(seed: int, prepare: list[str]) -> MemoryDisk:
    """A disk where file `/d/a` got b'one', then each step, then a crash."""
    disk = MemoryDisk()
    disk.make_directory("/d")
    disk.sync_directory("")
    file = disk.open("/d/a", create=True)
    file.append([b"one"])
    for step in prepare:
        if step == "sync":
            file.sync()
        elif step == "sync directory":
            disk.sync_directory("/d")
        elif step == "append":
            file.append([b"two" * 10])
        elif step == "truncate":
            file.truncate(1)
        elif step == "delete":
            disk.delete("/d/a")
    disk.crash(random.Random(seed).randrange)
    with pytest.raises(OSError, match="not open"):
        file.read_at(0, 1)
    return disk


def test_synced_bytes_with_a_synced_name_are_always_there() -> None:
    for seed in ROUNDS:
        disk = crashed(seed, ["sync", "sync directory"])
        assert disk.read("/d/a") == b"one"


def test_a_name_that_was_not_synced_may_be_gone() -> None:
    assert {crashed(seed, ["sync"]).exists("/d/a") for seed in ROUNDS} == {True, False}


def test_unsynced_bytes_may_be_lost_cut_or_torn_but_never_the_synced_ones() -> None:
    whole = b"one" + b"two" * 10
    found = [crashed(seed, ["sync", "sync directory", "append"]).read("/d/a") for seed in range(300)]
    assert all(data.startswith(b"one") for data in found)
    assert all(len(data) <= len(whole) for data in found)
    assert whole in found
    assert b"one" in found
    assert any(whole.startswith(data) and 3 < len(data) < len(whole) for data in found)
    assert any(not whole.startswith(data) for data in found)


def test_an_unsynced_truncation_or_deletion_may_not_have_happened() -> None:
    synced = ["sync", "sync directory"]
    assert {crashed(seed, [*synced, "truncate"]).read("/d/a") for seed in ROUNDS} == {b"one", b"o"}
    assert {crashed(seed, [*synced, "delete"]).exists("/d/a") for seed in ROUNDS} == {True, False}
    assert {crashed(seed, [*synced, "delete", "sync directory"]).exists("/d/a") for seed in ROUNDS} == {False}


def test_atomic_writes_and_renames_survive() -> None:
    for seed in ROUNDS:
        disk = crashed(seed, ["sync", "sync directory"])
        disk.write_atomically("/d/b", b"b")
        disk.rename("/d/a", "/d/c")
        disk.crash(random.Random(seed).randrange)
        assert (disk.list_directory("/d"), disk.read("/d/c")) == (["b", "c"], b"one")


def test_a_seed_repeats_a_crash() -> None:
    steps = ["sync", "sync directory", "append"]
    for seed in ROUNDS:
        assert crashed(seed, steps).read("/d/a") == crashed(seed, steps).read("/d/a")


def test_locks_are_gone_after_a_crash() -> None:
    disk = MemoryDisk()
    disk.lock("/.lock")
    disk.crash(random.Random(0).randrange)
    disk.lock("/.lock")


def test_a_full_disk_refuses_whole_appends() -> None:
    disk = MemoryDisk(capacity_bytes=10)
    file = disk.open("/a", create=True)
    file.append([b"12345"])
    with pytest.raises(OSError, match="full") as caught:
        file.append([b"123", b"456"])
    assert caught.value.errno == errno.ENOSPC
    assert file.size == 5
    file.append([b"12345"])


def test_faults_hit_as_often_as_asked_and_where_asked() -> None:
    disk = MemoryDisk()
    disk.fail("sync", errno.EIO, path_part="b", times=2)
    first, second = disk.open("/a", create=True), disk.open("/b", create=True)
    first.sync()
    for _ in range(2):
        with pytest.raises(OSError, match="injected"):
            second.sync()
    second.sync()
