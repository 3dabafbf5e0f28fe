"""Disks that are full, read-only, gone or that fail to sync, under a broker in a process of its own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conftest import start_broker
from tests.peers.process import ServerFailed, ServerProcess
from tests.unit.broker.api.questions import batch, consume, create_topic, fetch, produce
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode

GOOD, BAD = ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR
PATIENCE_SECONDS = 60.0
POLL_SECONDS = 0.01
DISK_BYTES = 8 << 20
QUICK = {"replica.high.watermark.checkpoint.interval.ms": "50", "log.flush.offset.checkpoint.interval.ms": "50"}
CONFIGS = {"flush.messages": "1", "segment.bytes": "1048576"}

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts file systems")


def mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    mount("-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(place))
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture
def server(tmp_path: Path, small_disk: Path) -> Iterator[ServerProcess]:
    """Two directories; the second is on the small disk."""
    properties = {"log.dirs": f"{tmp_path / 'data'},{small_disk / 'more'}", **QUICK}
    started = start_broker("ottla", tmp_path, properties=properties)
    yield started
    started.kill()


def connect(server: ServerProcess) -> WireClient:
    assert server.port is not None
    return WireClient(server.port)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        time.sleep(POLL_SECONDS)


def write(client: WireClient, partition: int, value: bytes) -> int:
    return produce(client, "t", batch(value), partition=partition).error_code


def take_all_room(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


def fill_up(client: WireClient) -> list[bytes]:
    """Write until the disk is full; what was acknowledged."""
    stored: list[bytes] = []
    while write(client, 1, value := b"%d " % len(stored) + bytes(200_000)) == GOOD:
        stored.append(value)
        assert len(stored) * 200_000 < 2 * DISK_BYTES
    return stored


def test_full_killed_while_full_and_with_room_again(server: ServerProcess, small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(3 << 20))
    with connect(server) as client:
        create_topic(client, "t", partitions=2, configs=CONFIGS)
        stored = fill_up(client)
        assert len(stored) > 5
        assert [write(client, partition, bytes(200_000)) for partition in range(2)] == [GOOD, BAD]
        assert consume(client, "t", len(stored), partition=1) == stored
    server.kill()
    server.start()
    with connect(server) as client:
        until(lambda: fetch(client, "t", 0, partition=1).error_code == GOOD)
        assert consume(client, "t", len(stored), partition=1) == stored
        assert [write(client, partition, bytes(200_000)) for partition in range(2)] == [GOOD, BAD]
        ballast.unlink()
        until(lambda: write(client, 1, b"room") == GOOD)
        assert consume(client, "t", len(stored) + 1, partition=1) == [*stored, b"room"]
    assert server.stop() == 0


def test_read_only_while_running(server: ServerProcess, small_disk: Path) -> None:
    """What is open can still be written; the next file that has to be made cannot, and the directory is out of use."""
    with connect(server) as client:
        create_topic(client, "t", partitions=2, configs=CONFIGS)
        assert [write(client, partition, b"before") for partition in range(2)] == [GOOD, GOOD]
        mount("--bind", str(small_disk), str(small_disk))
        mount("-o", "remount,bind,ro", str(small_disk))
        acknowledged = [b"before"]
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (code := write(client, 1, b"%d" % len(acknowledged))) == GOOD:
            acknowledged.append(b"%d" % len(acknowledged))
            assert time.monotonic() < deadline
        assert code == BAD
        assert write(client, 0, b"after") == GOOD
        assert fetch(client, "t", 0, partition=1).error_code == BAD
    server.stop()
    subprocess.run(["umount", "--lazy", str(small_disk)], check=True)
    server.start()
    with connect(server) as client:
        until(lambda: fetch(client, "t", 0, partition=1).error_code == GOOD)
        # One that was refused may be there as well: it was written before the directory failed.
        assert consume(client, "t", len(acknowledged), partition=1)[: len(acknowledged)] == acknowledged
        assert [write(client, partition, b"again") for partition in range(2)] == [GOOD, GOOD]


def test_a_start_without_room_says_so(tmp_path: Path, small_disk: Path) -> None:
    server = start_broker("ottla", tmp_path, properties={"log.dirs": str(small_disk / "all"), **QUICK})
    with connect(server) as client:
        create_topic(client, "t", configs=CONFIGS)
        assert produce(client, "t", batch(b"value")).error_code == GOOD
    server.kill()
    ballast = small_disk / "ballast"
    take_all_room(ballast)
    with pytest.raises(ServerFailed):
        server.start()
    said = server.log_since_start()
    assert "Traceback" not in said
    assert str(small_disk / "all") in said
    assert "No space left" in said or "full" in said
    ballast.unlink()
    server.start()
    with connect(server) as client:
        until(lambda: fetch(client, "t", 0).error_code == GOOD)
        assert consume(client, "t", 1) == [b"value"]
        until(lambda: produce(client, "t", batch(b"room")).error_code == GOOD)
    server.kill()
