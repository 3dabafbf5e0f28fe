"""A disk without room refuses what does not fit; when there is room again, everything goes on by itself."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker_thread import BrokerThread
from tests.unit.broker.api.questions import PATIENCE_MS, batch, consume, create_topic, fetch, produce
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.testing.faulty_disk import FaultyDisk

GOOD, FULL = ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR
QUICK_CHECKPOINTS = {
    "replica.high.watermark.checkpoint.interval.ms": "1",
    "log.flush.offset.checkpoint.interval.ms": "1",
    "log.flush.start.offset.checkpoint.interval.ms": "1",
}
SMALL_SEGMENTS = {"segment.bytes": "1048576"}
ROUNDS = 100_000


@pytest.fixture
def disk() -> FaultyDisk:
    return FaultyDisk()


@pytest.fixture
def port(tmp_path: Path, disk: FaultyDisk) -> Iterator[int]:
    with BrokerThread(tmp_path, QUICK_CHECKPOINTS, disk=disk) as running:
        yield running.port
        disk.full.clear()


@pytest.fixture
def client(port: int) -> Iterator[WireClient]:
    with WireClient(port) as connected:
        yield connected


@pytest.mark.parametrize("configs", [{}, {"flush.messages": "1"}])
def test_appends_are_refused_while_the_disk_is_full(
    client: WireClient, tmp_path: Path, disk: FaultyDisk, configs: dict[str, str]
) -> None:
    create_topic(client, "t", configs=configs)
    assert produce(client, "t", batch(b"one")).error_code == GOOD
    disk.full.add(str(tmp_path))
    for _ in range(200):  # Long enough for checkpoints to be refused as well.
        assert produce(client, "t", batch(b"refused")).error_code == FULL
    assert consume(client, "t", 1) == [b"one"]
    disk.full.clear()
    assert produce(client, "t", batch(b"two")).base_offset == 1
    assert consume(client, "t", 2) == [b"one", b"two"]


def test_a_segment_that_cannot_be_rolled_is_rolled_later(client: WireClient, tmp_path: Path, disk: FaultyDisk) -> None:
    create_topic(client, "t", configs=SMALL_SEGMENTS)
    large = batch(bytes(600_000))
    assert produce(client, "t", large).error_code == GOOD
    disk.full.add(str(tmp_path))
    assert produce(client, "t", large).error_code == FULL
    disk.full.clear()
    assert [produce(client, "t", large).base_offset for _ in range(2)] == [1, 2]
    assert len(consume(client, "t", 3)) == 3


def test_a_topic_that_is_created_on_a_full_disk_is_there_when_it_is_not(
    client: WireClient, tmp_path: Path, disk: FaultyDisk
) -> None:
    disk.full.add(str(tmp_path))
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)], timeout_ms=PATIENCE_MS
    )
    client.ask(request, CreateTopicsResponse)
    assert produce(client, "t", batch(b"refused")).error_code == FULL
    disk.full.clear()
    for _ in range(ROUNDS):
        if produce(client, "t", batch(b"value")).error_code == GOOD:
            break
    assert consume(client, "t", 1) == [b"value"]
    metadata = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), MetadataResponse)
    (partition,) = metadata.topics[0].partitions
    assert (partition.leader_id, partition.leader_epoch, partition.offline_replicas) == (1, 0, [])


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Eight megabytes in memory, mounted for this test alone."""
    if os.geteuid() != 0:
        pytest.skip("mounting a disk needs root")
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"mounting is not allowed here: {mounted.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_disk_that_is_really_full(tmp_path: Path, small_disk: Path) -> None:
    """The partitions on it refuse, the ones elsewhere do not, and all work once somebody has made room."""
    properties = {"log.dirs": f"{tmp_path / 'large'},{small_disk / 'logs'}", **QUICK_CHECKPOINTS}
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(4 << 20))
    large = batch(bytes(300_000))
    with BrokerThread(tmp_path, properties) as running, WireClient(running.port) as client:
        create_topic(client, "t", partitions=2, configs=SMALL_SEGMENTS)
        stored = 0
        while produce(client, "t", large, partition=1).error_code == GOOD:
            stored += 1
            assert stored < 100
        assert stored > 5
        for _ in range(100):
            assert produce(client, "t", large, partition=1).error_code == FULL
            assert produce(client, "t", batch(b"small"), partition=0).error_code == GOOD
        assert fetch(client, "t", stored - 1, partition=1).error_code == GOOD
        ballast.unlink()
        assert produce(client, "t", large, partition=1).base_offset == stored
        assert len(consume(client, "t", stored + 1, partition=1)) == stored + 1
        assert (running.broker.logs.directories[1].failure) is None
