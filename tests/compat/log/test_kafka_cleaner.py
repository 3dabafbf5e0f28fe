"""The same log cleaned by Kafka's cleaner and by ours: the same batches, byte for byte where nothing is compressed."""

from __future__ import annotations

import asyncio
import random
import shutil
import time
from pathlib import Path

import pytest
from tests.compat.log.oracle import KafkaLog
from tests.compat.log.test_dump_log import dump
from tests.peers.paths import KAFKA_LIBS, KAFKA_VERSION, PeerMissing, require_libs
from tests.unit.log.compacting import CompactingRig
from tests.unit.log.support import TOPIC_ID

from ottla.log.cleaner import CleanerSettings
from ottla.records import Codec, read_records, scan_headers
from ottla.runtime.real_disk import RealDisk
from ottla.testing import ManualClock

HOUR_MS = 3_600_000
ROUNDS = 4
SETTINGS = {
    "internal_segment_bytes": 3000,
    "index_interval_bytes": 300,
    "cleanup_policy": "compact",
    "delete_retention_ms": HOUR_MS,
}
SMALL_MAP_BYTES = 24 * 20  # fewer than there are keys


@pytest.fixture(scope="module")
def libs() -> Path:
    try:
        return require_libs(KAFKA_LIBS, f"kafka-{KAFKA_VERSION}")
    except PeerMissing as missing:
        pytest.skip(str(missing))


async def write_some(rig: CompactingRig, dice: random.Random, codecs: list[Codec], sequences: dict[int, int]) -> None:
    for _ in range(dice.randrange(30, 60)):
        rig.clock.advance(dice.randrange(500))
        pairs = [
            (b"key %d" % dice.randrange(25), None if dice.random() < 0.2 else dice.randbytes(dice.randrange(50)))
            for _ in range(dice.randrange(1, 6))
        ]
        producer_id = dice.choice((-1, -1, 5, 6))
        sequence = sequences.get(producer_id, 0) if producer_id >= 0 else -1
        await rig.write(*pairs, codec=dice.choice(codecs), producer_id=producer_id, sequence=sequence)
        sequences[producer_id] = sequence + len(pairs)


def segments(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.glob("*.log"))}


def plain(data: bytes) -> list[object]:
    """Batches without their compressed bytes and what depends on them."""
    rows: list[object] = []
    for header in scan_headers(data):
        header.size_bytes = header.crc = 0
        rows.append(header)
    return [*rows, *read_records(data)]


def compressed(data: bytes) -> bool:
    return any(header.compression for header in scan_headers(data))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("codecs", [[Codec.NONE], list(Codec)], ids=["plain", "compressed"])
@pytest.mark.parametrize("map_bytes", [1 << 20, SMALL_MAP_BYTES], ids=["large map", "small map"])
def test_the_same_records_survive(
    kafka_log: KafkaLog, tmp_path: Path, seed: int, codecs: list[Codec], map_bytes: int
) -> None:
    async def run() -> None:
        dice = random.Random(seed)
        rig = CompactingRig(disk=RealDisk(), path=str(tmp_path), segment_bytes=3000, index_interval_bytes=300,
                            delete_retention_ms=HOUR_MS)  # fmt: skip
        # Not long ago: Kafka forgets producers that were silent for weeks when it opens a log.
        rig.clock = ManualClock(int(time.time() * 1000) - 24 * HOUR_MS)
        rig.settings = CleanerSettings(dedupe_buffer_bytes=map_bytes)
        await rig.open()
        sequences: dict[int, int] = {}
        first_dirty = 0
        ours, theirs = tmp_path / "events-0", tmp_path / "kafka" / "events-0"
        for _ in range(ROUNDS):
            await write_some(rig, dice, codecs, sequences)
            await rig.log.roll()
            await rig.restart()
            shutil.rmtree(theirs, ignore_errors=True)
            shutil.copytree(ours, theirs)
            assert kafka_log.open(theirs, TOPIC_ID, clean=True, **SETTINGS)[1] == rig.log.log_end_offset
            (answer,) = kafka_log.good("clean", first_dirty, rig.clock.now_ms(), map_bytes)
            kafka_log.good("close")
            assert await rig.cleaner.clean_dirtiest()
            first_dirty = rig.cleaner._first_dirty[rig.log.topic_partition][1]
            assert first_dirty == int(answer)
            found, expected = segments(ours), segments(theirs)
            assert {name: plain(data) for name, data in found.items()} == {
                name: plain(data) for name, data in expected.items()
            }
            assert all(data == expected[name] for name, data in found.items() if not compressed(data))
            rig.clock.advance(dice.choice((0, HOUR_MS // 2, HOUR_MS)))
        await rig.manager.shutdown()

    asyncio.run(run())


def test_a_compacted_log_is_dumped_without_a_complaint(libs: Path, tmp_path: Path) -> None:
    async def run() -> None:
        rig = CompactingRig(disk=RealDisk(), path=str(tmp_path), segment_bytes=3000, index_interval_bytes=300)
        await rig.open()
        sequences: dict[int, int] = {}
        for seed in range(2):
            await write_some(rig, random.Random(seed), list(Codec), sequences)
            await rig.clean()
        await rig.manager.shutdown()

    asyncio.run(run())
    paths = [path for path in (tmp_path / "events-0").iterdir() if path.suffix in {".log", ".index", ".timeindex"}]
    text = dump(libs, paths, "--deep-iteration")
    assert text.count("isvalid: true") > 10
    assert "isvalid: false" not in text
    assert "deleteHorizonMs: OptionalLong[" in text
    for complaint in ("mismatch", "out of order", "exception", "Could not"):
        assert complaint not in text
    indexes = [path for path in paths if path.suffix != ".log"]
    text = dump(libs, indexes, "--index-sanity-check")
    assert text.count("passed sanity check") + text.count("is empty") == len(indexes)
