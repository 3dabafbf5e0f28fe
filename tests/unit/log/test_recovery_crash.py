"""The power goes again while a log is recovered: the next recovery finds a log without a hole."""

import asyncio
import random

import pytest
from tests.unit.log.fragile import FragileDisk, end_tasks
from tests.unit.log.support import Rig, append, batch_of, read_all

from ottla.log.config import LogConfig

SMALL = LogConfig(segment_bytes=400, index_interval_bytes=100)


def with_torn_middle(disk: FragileDisk, loop: asyncio.AbstractEventLoop) -> tuple[Rig, bytes]:
    """A log of several segments none of which was flushed; a power cut tore one in the middle."""
    rig = Rig(SMALL, disk=disk)
    rig.memory_disk = disk
    log = loop.run_until_complete(rig.open())
    for _ in range(16):
        loop.run_until_complete(append(log, batch_of([b"v" * 20])))
    content = read_all(log)
    assert len(log.segments) > 3
    torn = log.segments[1].file.path
    end_tasks(loop)
    disk.crash(lambda limit: 1)
    file = disk.open(torn)
    file.truncate(file.size - 5)
    file.sync()
    file.close()
    return rig, content


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("calls", range(14))
def test_a_crash_during_recovery_leaves_no_hole(calls: int, seed: int) -> None:
    loop = asyncio.new_event_loop()
    try:
        disk = FragileDisk()
        rig, content = with_torn_middle(disk, loop)
        with disk.cut_after(calls):
            loop.run_until_complete(rig.open())
        end_tasks(loop)
        disk.power_on()
        log = loop.run_until_complete(rig.crash(random.Random(seed).randrange))
        found = read_all(log)
        assert found
        assert content.startswith(found)
        loop.run_until_complete(rig.manager.shutdown())
        loop.run_until_complete(asyncio.sleep(0))
    finally:
        loop.close()
