"""A crash at any call to the disk leaves a log with every latest value, and the next cleaning ends where it should."""

import asyncio
import random

from tests.unit.log.compacting import CompactingRig
from tests.unit.log.fragile import FragileDisk, PowerCut

from ottla.records import Record

SEEDS = range(6)


async def filled(disk: FragileDisk) -> CompactingRig:
    rig = CompactingRig(disk=disk, segment_bytes=700, delete_retention_ms=0)
    rig.memory_disk = disk
    await rig.open()
    for number in range(6):
        await rig.write((b"a", b"%d" % number), (b"b%d" % (number // 2), b"x" * 40))
    await rig.write((b"b0", None), producer_id=5, sequence=0)
    await rig.clean()
    for number in range(4):
        await rig.write((b"a", b"again %d" % number), (b"c%d" % (number // 2), b"x" * 40))
    await rig.write((b"b1", b"last"))
    await rig.log.roll()
    await rig.log.flush()
    await rig.manager.checkpoint_recovery_points()
    return rig


def is_failed(rig: CompactingRig) -> bool:
    return rig.directory.failure is not None


def latest(records: list[Record]) -> dict[bytes | None, Record]:
    return {record.key: record for record in records}


async def crash_at(count: int, seed: int) -> bool:
    """Whether the cleaning was over before the crash."""
    disk = FragileDisk()
    rig = await filled(disk)
    before = {record.offset: record for record in rig.records()}
    wanted = {key: record for key, record in latest(rig.records()).items() if record.value is not None}
    disk.calls_left = count
    finished = True
    try:
        while await rig.cleaner.clean_dirtiest():
            pass
    except PowerCut:
        finished = False
    disk.calls_left = None
    log = await rig.crash(random.Random(seed).randrange)
    assert not [name for name in rig.names() if name.endswith(".deleted")]
    for _ in range(2):
        records = rig.records()
        assert log.log_end_offset == 22
        assert all(before[record.offset] == record for record in records)
        found = {key: record for key, record in latest(records).items() if record.value is not None}
        assert found == wanted
        assert log.producer_state.producers[5].last_sequence == 0
        assert not [name for name in rig.names() if name.endswith((".cleaned", ".swap"))]
        await rig.clean()
    assert rig.offsets() == sorted(record.offset for record in wanted.values())
    await rig.manager.shutdown()
    return finished


def test_a_crash_at_every_call_leaves_the_old_or_the_new() -> None:
    async def run() -> None:
        for seed in SEEDS:
            count = 0
            while not await crash_at(count, seed):
                count += 1
            assert count > 30

    asyncio.run(run())


def test_a_disk_that_fails_takes_its_directory_out_of_use_and_a_full_one_does_not() -> None:
    async def run() -> None:
        disk = FragileDisk()
        rig = await filled(disk)
        before = rig.content()
        disk.fail("append", 28, path_part=".cleaned", times=1)
        assert not await rig.cleaner.clean_dirtiest()
        assert not is_failed(rig)
        assert rig.content() == before
        assert not [name for name in rig.names() if name.endswith(".cleaned")]
        disk.fail("rename", 5, path_part=".cleaned")
        assert not await rig.cleaner.clean_dirtiest()
        assert is_failed(rig)
        await rig.manager.shutdown()
        await rig.open()
        assert rig.content() == before

    asyncio.run(run())


def test_leftovers_of_kafka_are_understood() -> None:
    """A swap beside a `.cleaned` file of the same or a lower offset is void; one without is finished."""

    async def run() -> None:
        disk = FragileDisk()
        rig = await filled(disk)
        await rig.manager.shutdown()
        base = f"{rig.log_path}/{0:020d}"
        records = disk.read(f"{base}.log")
        disk.write_atomically(f"{base}.log.swap", records[:0])
        disk.write_atomically(f"{base}.index.cleaned", b"")
        await rig.open()
        assert disk.read(f"{base}.log") == records
        await rig.manager.shutdown()
        disk.write_atomically(f"{base}.log.swap", records)
        disk.write_atomically(f"{base}.timeindex.swap", b"")
        before = rig.names()
        await rig.open()
        assert disk.read(f"{base}.log") == records
        assert [name for name in before if name.endswith(".swap")]
        assert not [name for name in rig.names() if name.endswith(".swap")]
        await rig.manager.shutdown()

    asyncio.run(run())
