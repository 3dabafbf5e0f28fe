"""A crash at any call to the disk during a move leaves the old or the new log, whole, and the move ends later on."""

import asyncio
import contextlib
import random

import pytest
from tests.unit.log.compacting import Pair
from tests.unit.log.fragile import FragileDisk, PowerCut
from tests.unit.log.moving import ONE, PARTITION, TWO, MovingRig
from tests.unit.log.support import read_all

from ottla.log import moving
from ottla.protocol.errors import KafkaError

LOG_START = 3


class MovingDisk(FragileDisk):
    """Directories come and go as well."""

    mutating = (*FragileDisk.mutating, "delete_directory", "make_directory")


def pairs(number: int) -> tuple[Pair, Pair]:
    return (b"a", b"%d" % number), (b"b%d" % (number // 2), b"x" * 60)


async def filled(disk: FragileDisk) -> MovingRig:
    rig = MovingRig(disk)
    await rig.open()
    for number in range(12):
        await rig.write(*pairs(number), producer_id=5, sequence=2 * number, leader_epoch=number // 5)
    rig.log.advance_start(LOG_START)
    await rig.log.flush()
    await rig.manager.checkpoint_recovery_points()
    await rig.manager.checkpoint_log_start_offsets()
    return rig


async def move_with_writes(rig: MovingRig) -> None:
    """What is appended while the copy is made goes along; all of it is flushed, so nothing of it may be lost."""
    await rig.begin()
    await rig.write(*pairs(12), producer_id=5, sequence=24, leader_epoch=2)
    await rig.log.flush()
    await rig.finish()
    # The removal of the old directory.
    for _ in range(10):
        await asyncio.sleep(0)


async def crash_at(count: int, seed: int) -> bool:
    """Whether the move was over before the crash."""
    disk = MovingDisk()
    rig = await filled(disk)
    disk.calls_left = count
    with contextlib.suppress(PowerCut, KafkaError):
        await move_with_writes(rig)
    finished = not disk.is_off
    flushed_end = rig.log.recovery_point
    expected = read_all(rig.log)
    await drop_tasks()
    disk.power_on()
    log = await rig.crash(random.Random(seed).randrange)
    for is_over in (finished, True):
        assert log.log_start_offset == LOG_START
        assert log.log_end_offset >= flushed_end
        found = read_all(log)
        assert expected.startswith(found) or found.startswith(expected)
        assert log.producer_state.producers[5].last_sequence == log.log_end_offset - 1
        assert log.leader_epochs.entries() == [(0, LOG_START), (1, 10), (2, 20)]
        assert rig.names(rig.place()) == ["events-0"]
        others = [name for path in (ONE, TWO) if path != rig.place() for name in rig.names(path)]
        assert not is_over or others == []
        assert all(name.endswith("-future") for name in others)
        await rig.resume()
        await rig.finish()
        if rig.place() == ONE:
            await rig.move()
        assert rig.place() == TWO
        assert rig.manager.moves.get(PARTITION) is None
        log = await rig.restart()
    await rig.manager.shutdown()
    return finished


async def drop_tasks() -> None:
    """The machine is off: what was under way does not go on."""
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_a_crash_at_every_call_leaves_the_old_or_the_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving, "PIECE_BYTES", 256)
    monkeypatch.setattr(moving, "LAST_BYTES", 512)

    async def run() -> None:
        count = 0
        while not await crash_at(count, seed=count):
            count += 1
        assert count > 100

    asyncio.run(run())
