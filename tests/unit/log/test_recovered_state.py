"""What a log knows besides its records, after a restart or a crash: leader epochs and producers."""

import asyncio
import struct

import pytest
from tests.unit.log.support import START_MS, Rig, append, batch_of
from tests.unit.log.test_recovery import SMALL, fill, kill, log_name, prepared

from ottla.log.files import sync_paths
from ottla.log.log import Log
from ottla.log.producer_snapshot import encode_snapshot
from ottla.log.producer_state import ProducerEntry, StoredBatch
from ottla.records import Record, build_batch


def test_epochs_of_segments_that_are_not_scanned_come_from_the_checkpoint() -> None:
    async def run() -> None:
        rig = Rig(SMALL)
        log = await rig.open()
        for epoch in (1, 3, 4):
            await fill(log, 4, leader_epoch=epoch)
        await log.flush()
        await fill(log, 4, leader_epoch=9)
        await rig.manager.checkpoint_recovery_points()
        await kill(rig)
        log = await rig.open()
        assert log.leader_epochs.entries() == [(1, 0), (3, 4), (4, 8), (9, 12)]

    asyncio.run(run())


def test_epochs_beyond_the_end_are_forgotten() -> None:
    async def run() -> None:
        rig = Rig(SMALL)
        log = await rig.open()
        await fill(log, 2, leader_epoch=1)
        log.leader_epochs.assign(7, 2)
        log = await rig.restart()
        assert log.leader_epochs.entries() == [(1, 0)]

    asyncio.run(run())


def test_a_log_that_had_to_begin_anew_stays_without_its_producers() -> None:
    """A snapshot from before would bring back one that has been forgotten, with a sequence of long ago."""

    async def run() -> None:
        rig = Rig(SMALL)
        log = await rig.open()
        await produce(log, 1)
        await log.flush()
        await log.roll()
        sync_paths(rig.disk, [f"{rig.log_path}/00000000000000000001.snapshot"])
        await fill(log, 1)
        log.high_watermark = log.log_end_offset
        log.advance_start(2)
        await rig.manager.checkpoint_log_start_offsets()
        log = await rig.crash(lambda limit: 0)
        assert (log.log_start_offset, log.log_end_offset, log.producer_state.producers) == (2, 2, {})
        await fill(log, 1)
        await rig.manager.checkpoint_log_start_offsets()
        await kill(rig)
        log = await rig.open()
        assert (log.log_start_offset, log.log_end_offset, log.producer_state.producers) == (2, 3, {})

    asyncio.run(run())


async def produce(log: Log, count: int, first: int = 0) -> None:
    for sequence in range(first, first + count):
        await append(log, batch_of([b"v" * 20], producer_id=5, producer_epoch=0, base_sequence=sequence))


async def is_known(log: Log, sequence: int) -> bool:
    batch = batch_of([b"v" * 20], producer_id=5, producer_epoch=0, base_sequence=sequence)
    return (await append(log, batch)).duplicate


@pytest.mark.parametrize("clean", [True, False])
def test_producers_are_known_after_a_restart(clean: bool) -> None:
    async def run() -> None:
        rig = Rig(SMALL)
        await produce(await rig.open(), 12)
        if clean:
            log = await rig.restart()
        else:
            await kill(rig)
            log = await rig.open()
        assert await is_known(log, 11)
        await produce(log, 3, first=12)

    asyncio.run(run())


def test_a_broken_snapshot_is_done_without() -> None:
    async def run() -> None:
        rig = Rig(SMALL)
        await produce(await rig.open(), 12)
        await rig.manager.shutdown()
        path = f"{rig.log_path}/{log_name(12, '.snapshot')}"
        rig.disk.open(path).write_at(20, b"?")
        log = await rig.open()
        assert not rig.disk.exists(path)
        assert await is_known(log, 11)
        assert await is_known(log, 9)

    asyncio.run(run())


def test_a_snapshot_from_beyond_the_end_is_not_believed() -> None:
    async def run() -> None:
        rig, _ = await prepared()
        stray = encode_snapshot([ProducerEntry(5, 0, batches=[StoredBatch(90, 90, 30, 30, START_MS)])])
        rig.disk.write_atomically(f"{rig.log_path}/{log_name(31, '.snapshot')}", stray)
        log = await rig.open()
        assert not rig.disk.exists(f"{rig.log_path}/{log_name(31, '.snapshot')}")
        await produce(log, 30)
        log = await rig.restart()
        assert await is_known(log, 29)

    asyncio.run(run())


def test_snapshots_are_kept_for_segments_and_the_end() -> None:
    async def run() -> None:
        rig = Rig(SMALL)
        await produce(await rig.open(), 10)
        log = await rig.restart()
        await produce(log, 1, first=10)
        log = await rig.restart()
        bases = [segment.base_offset for segment in log.segments]
        snapshots = [name for name in rig.disk.list_directory(rig.log_path) if name.endswith(".snapshot")]
        assert snapshots == [log_name(offset, ".snapshot") for offset in [*bases[1:], 11]]

    asyncio.run(run())


def test_expired_producers_are_not_loaded() -> None:
    async def run() -> None:
        rig = Rig(SMALL)
        await produce(await rig.open(), 3)
        rig.clock.advance(86_400_000)
        log = await rig.restart()
        assert not log.producer_state.producers

    asyncio.run(run())


def test_transaction_markers_are_replayed() -> None:
    async def run() -> None:
        rig = Rig(SMALL)
        log = await rig.open()
        await append(log, batch_of([b"t"], producer_id=5, producer_epoch=0, base_sequence=0, transactional=True))
        await kill(rig)
        log = await rig.open()
        assert log.producer_state.producers[5].current_txn_first_offset == 0
        await kill(rig)
        # version, type (1 is commit); version, coordinator epoch
        marker = Record(timestamp=START_MS + 5, key=struct.pack(">hh", 0, 1), value=struct.pack(">hi", 0, 33))
        batch = build_batch(
            [marker], base_offset=1, producer_id=5, producer_epoch=0, transactional=True, control=True, leader_epoch=0
        )
        rig.disk.open(f"{rig.log_path}/{log_name(0)}").append([batch])
        log = await rig.open()
        entry = log.producer_state.producers[5]
        assert (entry.current_txn_first_offset, entry.coordinator_epoch) == (-1, 33)
        assert entry.last_sequence == 0

    asyncio.run(run())
