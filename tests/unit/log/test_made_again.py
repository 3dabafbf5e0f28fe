"""A topic that is deleted and made again has nothing of its predecessor, whenever the power is cut."""

import asyncio
import random

import pytest
from tests.unit.log.support import TOPIC, Rig, append, batch_of, read_all

from ottla.log.config import LogConfig
from ottla.log.directory import (
    CHECKPOINTS,
    CLEANER_CHECKPOINT,
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    REPLICATION_CHECKPOINT,
)
from ottla.log.files import TopicPartition
from ottla.log.log import Log
from ottla.records import read_records

PARTITION = TopicPartition(TOPIC, 0)
NEW_ID = bytes(range(2, 18))
SMALL = LogConfig(segment_bytes=400, file_delete_delay_ms=0)


async def write(log: Log, count: int) -> None:
    for _ in range(count):
        await append(log, batch_of([b"v" * 60]))
    log.high_watermark = log.log_end_offset


async def old_life(rig: Rig) -> None:
    """A log of 100 records that every checkpoint knows."""
    log = await rig.open()
    await write(log, 100)
    log.advance_start(50)
    await log.flush()
    await rig.manager.checkpoint_recovery_points()
    await rig.manager.checkpoint_high_watermarks()
    await rig.manager.checkpoint_log_start_offsets()
    rig.directory.write_checkpoint(CLEANER_CHECKPOINT, {PARTITION: 70, TopicPartition("other", 0): 7})
    for name in CHECKPOINTS:
        assert rig.directory.read_checkpoint(name)[PARTITION] >= 50


async def make_again(rig: Rig) -> Log:
    await rig.manager.delete_log(TOPIC, 0)
    return await rig.manager.create_log(TOPIC, 0, NEW_ID, SMALL)


@pytest.mark.parametrize("is_restarted", [False, True])
def test_no_checkpoint_knows_a_log_that_was_just_made(is_restarted: bool) -> None:
    async def run() -> None:
        rig = Rig(SMALL)
        await old_life(rig)
        if is_restarted:
            # The files are there, and this process has not written them.
            await rig.crash(lambda limit: 0)
        await make_again(rig)
        for name in CHECKPOINTS:
            assert PARTITION not in rig.directory.read_checkpoint(name)
        # What was said of another log that is not there went with it.
        assert rig.directory.read_checkpoint(CLEANER_CHECKPOINT) == {}
        await rig.manager.shutdown()

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(20))
def test_after_a_power_cut_only_records_of_the_new_one_are_there(seed: int) -> None:
    async def run() -> None:
        rig = Rig(SMALL)
        await old_life(rig)
        log = await make_again(rig)
        await write(log, 3)
        await log.flush()
        await write(log, 30)
        expected = read_all(log)
        rig.topic_id = NEW_ID
        found = await rig.crash(random.Random(seed).randrange)
        assert found.log_start_offset == 0
        assert found.log_end_offset >= 3
        assert expected.startswith(read_all(found))
        assert len(read_records(read_all(found))) == found.log_end_offset
        await rig.manager.shutdown()

    asyncio.run(run())


def test_a_checkpoint_that_is_being_written_meanwhile_does_not_bring_it_back() -> None:
    async def run() -> None:
        for turns in range(6):
            rig = Rig(SMALL)
            await old_life(rig)
            await write(rig.log, 1)
            writing = [
                asyncio.create_task(rig.manager.checkpoint_recovery_points()),
                asyncio.create_task(rig.manager.checkpoint_high_watermarks()),
                asyncio.create_task(rig.manager.checkpoint_log_start_offsets()),
            ]
            for _ in range(turns):
                await asyncio.sleep(0)
            await make_again(rig)
            await asyncio.gather(*writing)
            for name in (RECOVERY_POINT_CHECKPOINT, REPLICATION_CHECKPOINT, LOG_START_CHECKPOINT):
                assert rig.directory.read_checkpoint(name).get(PARTITION, 0) == 0
            await rig.manager.shutdown()

    asyncio.run(run())
