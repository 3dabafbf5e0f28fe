"""Kafka's DumpLogSegments reads our files without a complaint."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from tests.peers.java import run_java
from tests.peers.paths import KAFKA_LIBS, KAFKA_VERSION, PeerMissing, require_libs
from tests.unit.log.support import START_MS, Rig, append, batch_of

from ottla.log.config import LogConfig
from ottla.records import Codec
from ottla.runtime.real_disk import RealDisk

BATCHES = 120
RECORDS = 3


@pytest.fixture(scope="module")
def libs() -> Path:
    try:
        return require_libs(KAFKA_LIBS, f"kafka-{KAFKA_VERSION}")
    except PeerMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed log of several segments with every codec and one idempotent producer."""
    path = tmp_path_factory.mktemp("dump")

    async def run() -> None:
        rig = Rig(LogConfig(segment_bytes=6000, index_interval_bytes=500), disk=RealDisk(), path=str(path))
        log = await rig.open()
        for number in range(BATCHES):
            batch = batch_of(
                [b"value %d" % number] * RECORDS,
                timestamp=START_MS + number,
                key=b"key",
                codec=list(Codec)[number % len(Codec)],
                producer_id=5,
                producer_epoch=1,
                base_sequence=number * RECORDS,
            )
            await append(log, batch, leader_epoch=number // 50)
        await rig.manager.shutdown()

    asyncio.run(run())
    return path / "events-0"


def dump(libs: Path, paths: list[Path], *flags: str) -> str:
    done = run_java(
        "org.apache.kafka.tools.DumpLogSegments", [*flags, "--files", ",".join(map(str, sorted(paths)))], libs
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARN" not in done.stderr
    assert "ERROR" not in done.stderr
    return done.stdout + done.stderr


def test_records_indexes_and_snapshots_are_read(libs: Path, directory: Path) -> None:
    suffixes = {".log", ".index", ".timeindex", ".snapshot"}
    paths = [path for path in directory.iterdir() if path.suffix in suffixes]
    text = dump(libs, paths, "--deep-iteration")
    assert len(re.findall(r"^\| offset: ", text, re.M)) == BATCHES * RECORDS
    assert text.count("isvalid: true") == BATCHES
    assert text.count("isvalid: false") == 0
    # The tool begins to count at -1 in every file, so a segment that does not begin at 0 is always named here.
    complaints = re.findall(r"^  (-?\d+) is followed by (\d+)$", text, re.M)
    assert [before for before, _ in complaints] == ["-1"] * (len(list(directory.glob("*.log"))) - 1)
    assert "mismatch" not in text.lower()
    assert "out of order" not in text.lower()
    end = BATCHES * RECORDS
    assert re.search(
        rf"producerId: 5 producerEpoch: 1 coordinatorEpoch: -1 currentTxnFirstOffset: OptionalLong.empty .*"
        rf"firstSequence: {end - RECORDS} lastSequence: {end - 1} lastOffset: {end - 1} offsetDelta: {RECORDS - 1}",
        text,
    )


def test_indexes_pass_the_sanity_check(libs: Path, directory: Path) -> None:
    paths = [*directory.glob("*.index"), *directory.glob("*.timeindex")]
    text = dump(libs, paths, "--index-sanity-check")
    assert text.count("passed sanity check") + text.count("is empty") == len(paths)
    assert text.count("passed sanity check") > len(paths) // 2
