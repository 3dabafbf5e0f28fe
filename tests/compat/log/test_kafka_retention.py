"""The same records deleted from Kafka's log and from ours: the same segments stay, byte for byte."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from pathlib import Path

import pytest
from tests.compat.log.oracle import KafkaLog
from tests.compat.log.test_kafka_log import CONFIG, SETTINGS, batches, our_append, same_files
from tests.unit.log.support import TOPIC_ID, Rig

from ottla.log.log import Log
from ottla.runtime.real_disk import RealDisk

FOR_EVER_MS = -1


async def delete_in_both(kafka_log: KafkaLog, rig: Rig, log: Log, dice: random.Random) -> None:
    """Move the start, or apply a retention that some segments do not survive, or that none does."""
    log.high_watermark = log.log_end_offset
    if dice.random() < 0.4:
        offset = dice.randrange(log.log_start_offset, log.log_end_offset + 1)
        log.advance_start(offset)
        assert kafka_log.good("start", offset) == [str(offset)]
    now_ms = max(segment.max_timestamp for segment in log.segments)
    now_ms += dice.choice((0, 0, 0, 10_000_000))
    rig.clock.advance(now_ms - rig.clock.now_ms())
    retention = {"retention_ms": FOR_EVER_MS, "retention_bytes": -1}
    if dice.random() < 0.5:
        retention["retention_ms"] = dice.choice((20_000, 60_000, 120_000))
    else:
        retention["retention_bytes"] = dice.choice((0, 5000, 12_000, log.size_bytes))
    log.update_config(replace(CONFIG, **retention))  # type: ignore[arg-type]  # whole numbers
    await rig.manager.apply_retention()
    keys = {**SETTINGS, **retention}
    words = kafka_log.good("retain", now_ms, *(f"{name.replace('_', '.')}={value}" for name, value in keys.items()))
    assert [log.log_start_offset, log.log_end_offset] == [int(word) for word in words]


@pytest.mark.parametrize("seed", range(6))
def test_both_logs_forget_the_same(kafka_log: KafkaLog, tmp_path: Path, seed: int) -> None:
    theirs, ours = tmp_path / "kafka" / "events-0", tmp_path / "ottla" / "events-0"
    kafka_log.open(theirs, TOPIC_ID, clean=True, **SETTINGS)
    starts: set[int] = set()

    async def run() -> None:
        dice = random.Random(seed)
        rig = Rig(CONFIG, disk=RealDisk(), path=str(ours.parent))
        log = await rig.open()
        for number, (batch, leader_epoch) in enumerate(batches(seed, 420)):
            expected = kafka_log.append(batch, leader_epoch)
            found = await our_append(log, batch, leader_epoch)
            assert found == (expected.error, expected.words[: 0 if expected.error else 2])
            if number % 50 == 49:
                await delete_in_both(kafka_log, rig, log, dice)
                starts.add(log.log_start_offset)
        kafka_log.good("close")
        await rig.manager.shutdown()

    asyncio.run(run())
    assert len(starts) > 2
    for directory in (theirs, ours):
        for path in directory.glob("*.deleted"):
            path.unlink()
    same_files(theirs, ours)
