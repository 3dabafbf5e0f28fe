"""A log directory: whose it is, who uses it, and how the last stop went."""

import pytest

from ottla.log.directory import LogDirectory, UnusableDirectory
from ottla.protocol.uuids import uuid_to_text
from ottla.testing import ManualClock, MemoryDisk, SeededIds

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"


def opened(disk: MemoryDisk, node_id: int = 1, cluster_id: str | None = CLUSTER) -> LogDirectory:
    directory = LogDirectory(disk, "/data/logs")
    directory.open(node_id, SeededIds(node_id), cluster_id)
    directory.join_cluster(cluster_id or CLUSTER)
    return directory


def test_a_new_directory_becomes_the_brokers() -> None:
    disk = MemoryDisk()
    directory = opened(disk)
    expected = f"#\ncluster.id={CLUSTER}\ndirectory.id={uuid_to_text(directory.directory_id)}\nnode.id=1\nversion=1\n"
    assert disk.read("/data/logs/meta.properties").decode() == expected
    assert not directory.was_clean


def test_identity_is_kept() -> None:
    disk = MemoryDisk()
    first = opened(disk, cluster_id=None)
    first.close()
    second = LogDirectory(disk, "/data/logs")
    second.open(1, SeededIds(99))
    assert (second.cluster_id, second.directory_id) == (CLUSTER, first.directory_id)


@pytest.mark.parametrize("left", ["", "#\n", "\x00" * 80, "cluster.id\x00 nonsense"])
def test_what_does_not_say_whose_it_is_joins_the_cluster_of_its_store(left: str) -> None:
    disk = MemoryDisk()
    opened(disk).close()
    disk.write_atomically("/data/logs/meta.properties", left.encode())
    directory = LogDirectory(disk, "/data/logs")
    directory.open(1, SeededIds(2))
    assert directory.cluster_id == ""
    assert disk.read("/data/logs/meta.properties") == left.encode()
    directory.join_cluster(CLUSTER)
    directory.close()
    assert opened(disk, cluster_id=None).cluster_id == CLUSTER


def test_the_cluster_of_the_store_is_the_one_that_counts() -> None:
    disk = MemoryDisk()
    opened(disk).close()
    directory = LogDirectory(disk, "/data/logs")
    directory.open(1, SeededIds(2))
    with pytest.raises(UnusableDirectory, match=r"meta.properties: expected cluster.id=another"):
        directory.join_cluster("another")


def test_a_directory_that_kafka_formatted_is_taken() -> None:
    disk = MemoryDisk()
    disk.make_directory("/data/logs")
    identity = "directory.id=CTw0TEGJ6y8ee9XUfm_Owg\nnode.id=1\nversion=1\n"
    text = f"#\n#Sat Nov 15 21:00:00 UTC 2025\ncluster.id={CLUSTER}\n{identity}"
    disk.write_atomically("/data/logs/meta.properties", text.encode())
    assert uuid_to_text(opened(disk).directory_id) == "CTw0TEGJ6y8ee9XUfm_Owg"
    assert disk.read("/data/logs/meta.properties") == text.encode()


@pytest.mark.parametrize(
    ("node_id", "cluster_id", "expected"), [(2, CLUSTER, "node.id=2"), (1, "another", "cluster.id=another")]
)
def test_a_directory_of_another_broker_is_refused(node_id: int, cluster_id: str, expected: str) -> None:
    disk = MemoryDisk()
    opened(disk).close()
    with pytest.raises(UnusableDirectory, match=expected):
        opened(disk, node_id, cluster_id)
    opened(disk)


def test_other_versions_and_broken_ids_are_refused() -> None:
    for text in ("version=0\nbroker.id=1\n", "version=1\nnode.id=1\ndirectory.id=short\n"):
        disk = MemoryDisk()
        disk.make_directory("/data/logs")
        disk.write_atomically("/data/logs/meta.properties", text.encode())
        with pytest.raises(UnusableDirectory):
            opened(disk)


def test_a_directory_in_use_is_refused() -> None:
    disk = MemoryDisk()
    directory = opened(disk)
    with pytest.raises(UnusableDirectory, match="in use"):
        opened(disk)
    directory.close()
    opened(disk)


def test_the_marker_of_a_clean_stop_is_taken_once() -> None:
    disk = MemoryDisk()
    directory = opened(disk)
    directory.write_clean_shutdown_marker(42)
    assert disk.read("/data/logs/.kafka_cleanshutdown") == b'{"version":0,"brokerEpoch":42}'
    directory.close()
    second = opened(disk)
    assert (second.was_clean, second.last_broker_epoch) == (True, 42)
    second.close()
    third = opened(disk)
    assert (third.was_clean, third.last_broker_epoch) == (False, -1)


def test_an_empty_marker_of_an_older_broker_counts() -> None:
    disk = MemoryDisk()
    opened(disk).close()
    disk.write_atomically("/data/logs/.kafka_cleanshutdown", b"")
    directory = opened(disk)
    assert (directory.was_clean, directory.last_broker_epoch) == (True, -1)


def test_the_first_failure_is_kept() -> None:
    directory = opened(MemoryDisk())
    first = OSError("first")
    directory.fail(first)
    directory.fail(OSError("second"))
    assert directory.failure is first


def test_the_checkpoint_of_the_cleaner_is_there_for_kafka() -> None:
    disk = MemoryDisk(ManualClock().now_ms)
    LogDirectory(disk, "/data").open(1, SeededIds(1))
    assert disk.read("/data/cleaner-offset-checkpoint") == b"0\n0\n"
