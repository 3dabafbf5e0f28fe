"""Transactions in Kafka's log and in ours: the same errors, files and committed records, and the same cleaning."""

from __future__ import annotations

import asyncio
import random
import shutil
import time
from pathlib import Path

import pytest
from tests.compat.log.histories import LEADER_EPOCH, History, Step, take
from tests.compat.log.oracle import KafkaLog
from tests.compat.log.test_dump_log import dump
from tests.compat.log.test_kafka_cleaner import HOUR_MS, compressed, plain, segments
from tests.compat.log.test_kafka_cleaner import SETTINGS as CLEANED
from tests.peers.paths import KAFKA_LIBS, KAFKA_VERSION, PeerMissing, require_libs
from tests.unit.log.compacting import CompactingRig
from tests.unit.log.support import TOPIC_ID, Rig

from ottla.log.config import LogConfig
from ottla.log.log import Log
from ottla.log.stability import aborted_within, last_stable_offset
from ottla.records import Codec, scan_headers
from ottla.runtime.real_disk import RealDisk
from ottla.testing import ManualClock

CONFIG = LogConfig(segment_bytes=3000, index_interval_bytes=300)
SETTINGS = {"internal_segment_bytes": 3000, "index_interval_bytes": 300}
ROUNDS = 5


@pytest.fixture(scope="module")
def libs() -> Path:
    try:
        return require_libs(KAFKA_LIBS, f"kafka-{KAFKA_VERSION}")
    except PeerMissing as missing:
        pytest.skip(str(missing))


def rig_at(path: Path, now_ms: int) -> Rig:
    rig = Rig(CONFIG, disk=RealDisk(), path=str(path))
    rig.clock = ManualClock(now_ms)
    return rig


def tell(kafka_log: KafkaLog, step: Step) -> str:
    """What becomes of a step in Kafka's log."""
    if step.version is None:
        answer = kafka_log.append(step.batch, LEADER_EPOCH)
    else:
        answer = kafka_log.append_own(step.batch, LEADER_EPOCH, step.version)
    return answer.error or answer.words[0]


def check_committed(kafka_log: KafkaLog, log: Log) -> None:
    """Both give the same pieces, and name the same transactions, but for some of Kafka's that begin behind the piece:
    where that ends at an entry of the index, its search may find the next one.

    Kafka cuts at a byte, so that it is asked for as many bytes as we gave.
    """
    log.high_watermark = log.log_end_offset
    log.producer_state.transactions.replicated(log.high_watermark)
    stable, offset, pieces = last_stable_offset(log), log.log_start_offset, 0
    while (found := log.read(offset, 700, up_to_offset=stable)) is not None:
        data = found.read()
        aborted = [(each.producer_id, each.first_offset) for each in aborted_within(log, offset, found)]
        end_offset = scan_headers(data, True)[-1].next_offset
        expected_stable, expected, named = kafka_log.committed(offset, len(data))
        assert (expected_stable, expected) == (stable, data)
        assert [each for each in named if each in aborted or each[1] < end_offset] == aborted
        offset = end_offset
        pieces += 1
    assert pieces > 5
    assert offset == stable


def indexes(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.glob("*.txnindex")) if path.stat().st_size}


@pytest.mark.parametrize("seed", range(4))
def test_the_same_steps_have_the_same_outcome(kafka_log: KafkaLog, tmp_path: Path, seed: int) -> None:
    async def run() -> None:
        now_ms = int(time.time() * 1000) - HOUR_MS
        rig = rig_at(tmp_path, now_ms)
        log = await rig.open()
        ours, theirs = tmp_path / "events-0", tmp_path / "kafka" / "events-0"
        kafka_log.open(theirs, TOPIC_ID, clean=True, **SETTINGS)
        history = History(log, seed, list(Codec), now_ms, mistakes=seed % 2 == 1)
        for number, step in enumerate(history.steps()):
            assert (number, await take(log, step)) == (number, tell(kafka_log, step))
        check_committed(kafka_log, log)
        await rig.manager.shutdown()
        kafka_log.good("close")
        assert segments(ours) == segments(theirs)
        assert indexes(ours) == indexes(theirs) != {}

    asyncio.run(run())


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_each_opens_what_the_other_wrote(kafka_log: KafkaLog, tmp_path: Path, clean: bool) -> None:
    async def run() -> None:
        now_ms = int(time.time() * 1000) - HOUR_MS
        rig = rig_at(tmp_path / "ours", now_ms)
        log = await rig.open()
        ours, theirs = tmp_path / "ours" / "events-0", tmp_path / "kafka" / "events-0"
        kafka_log.open(theirs, TOPIC_ID, clean=True, **SETTINGS)
        for step in History(log, 7, list(Codec), now_ms).steps():
            assert await take(log, step) == tell(kafka_log, step)
        kafka_log.good("close")
        await rig.manager.shutdown()
        if not clean:
            for name in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
                (tmp_path / "ours" / name).unlink()
        exchanged = tmp_path / "exchanged" / "events-0"
        shutil.move(ours, exchanged)
        shutil.move(theirs, ours)
        kafka_log.open(exchanged, TOPIC_ID, clean=clean, **SETTINGS)
        check_committed(kafka_log, await rig.open())
        kafka_log.good("close")
        await rig.manager.shutdown()
        assert indexes(ours) == indexes(exchanged) != {}

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("codecs", [[Codec.NONE], list(Codec)], ids=["plain", "compressed"])
def test_transactions_are_cleaned_alike(kafka_log: KafkaLog, tmp_path: Path, seed: int, codecs: list[Codec]) -> None:
    async def run() -> None:
        dice = random.Random(seed)
        rig = CompactingRig(disk=RealDisk(), path=str(tmp_path), segment_bytes=3000, index_interval_bytes=300,
                            delete_retention_ms=HOUR_MS)  # fmt: skip
        rig.clock = ManualClock(int(time.time() * 1000) - 24 * HOUR_MS)
        await rig.open()
        ours, theirs = tmp_path / "events-0", tmp_path / "kafka" / "events-0"
        first_dirty = 0
        for number in range(ROUNDS):
            history = History(rig.log, seed * ROUNDS + number, codecs, rig.clock.now_ms())
            for step in (*history.steps(), *history.ending()):
                assert (await take(rig.log, step)).isdecimal()
            await rig.log.roll()
            await rig.restart()
            shutil.rmtree(theirs, ignore_errors=True)
            shutil.copytree(ours, theirs)
            assert kafka_log.open(theirs, TOPIC_ID, clean=True, **CLEANED)[1] == rig.log.log_end_offset
            (answer,) = kafka_log.good("clean", first_dirty, rig.clock.now_ms(), 1 << 20)
            kafka_log.good("close")
            assert await rig.cleaner.clean_dirtiest()
            first_dirty = rig.cleaner._first_dirty[rig.log.topic_partition][1]
            assert first_dirty == int(answer)
            found, expected = segments(ours), segments(theirs)
            assert {name: plain(data) for name, data in found.items()} == {
                name: plain(data) for name, data in expected.items()
            }
            assert all(data == expected[name] for name, data in found.items() if not compressed(data))
            assert indexes(ours) == indexes(theirs)
            rig.clock.advance(dice.choice((HOUR_MS // 2, HOUR_MS)))
        await rig.manager.shutdown()

    asyncio.run(run())


def test_kafka_dumps_markers_and_aborted_transactions(libs: Path, tmp_path: Path) -> None:
    async def run() -> int:
        rig = rig_at(tmp_path, int(time.time() * 1000))
        log = await rig.open()
        for step in History(log, 1, list(Codec), rig.clock.now_ms()).steps():
            await take(log, step)
        aborted = sum(len(segment.transactions()) for segment in log.segments)
        await rig.manager.shutdown()
        return aborted

    aborted = asyncio.run(run())
    paths = [path for path in (tmp_path / "events-0").iterdir() if path.suffix in {".log", ".txnindex"}]
    text = dump(libs, paths, "--deep-iteration")
    assert "isvalid: false" not in text
    assert text.count("version: 0 producerId: ") == aborted > 3
    assert "endTxnMarker: ABORT coordinatorEpoch: 3" in text
    assert "endTxnMarker: COMMIT coordinatorEpoch: 3" in text
    for complaint in ("mismatch", "out of order", "exception", "Could not"):
        assert complaint not in text
