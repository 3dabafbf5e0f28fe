"""Which log is cleaned, when, how far, and what happens to one that cannot be."""

import asyncio

import pytest
from tests.unit.log.compacting import CompactingRig, keyed_batch
from tests.unit.log.support import TOPIC, TOPIC_ID, append, until

from ottla.log.cleaner import CleanerSettings
from ottla.log.config import LogConfig
from ottla.log.log import Log
from ottla.records import assign_offset, crc32c
from ottla.runtime.real import ThreadExecutor
from ottla.runtime.real_disk import RealDisk

CHECKPOINT = "/data/cleaner-offset-checkpoint"


async def fill(rig: CompactingRig, rounds: int = 3) -> None:
    for number in range(rounds):
        await rig.write((b"k", b"%d" % number))
    await rig.log.roll()


def test_a_log_is_due_when_more_than_the_ratio_is_dirty() -> None:
    async def run() -> None:
        rig = CompactingRig(min_cleanable_dirty_ratio=0.5)
        await rig.open()
        await rig.write(*((b"%d" % number, b"v" * 50) for number in range(10)))
        await rig.clean()
        await rig.write((b"1", b"little"))
        await rig.log.roll()
        assert not await rig.cleaner.clean_dirtiest()
        await rig.write(*((b"%d" % number, b"w" * 60) for number in range(12)))
        await rig.log.roll()
        assert await rig.cleaner.clean_dirtiest()
        assert rig.offsets() == list(range(11, 23))
        await rig.manager.shutdown()

    asyncio.run(run())


def test_the_dirtiest_comes_first_and_topics_that_only_delete_never() -> None:
    async def run() -> None:
        rig = CompactingRig()
        await rig.open()
        await rig.write(*((b"%d" % number, b"v" * 50) for number in range(10)))
        await rig.clean()
        await fill(rig)
        dirtier = await rig.manager.create_log(TOPIC, 1, TOPIC_ID, rig.config)
        other = await rig.manager.create_log(TOPIC, 2, TOPIC_ID, LogConfig(cleanup_policy=("delete",)))
        for log in (dirtier, other):
            for _ in range(4):
                await append(log, keyed_batch([(b"k", b"v")]))
            log.high_watermark = log.log_end_offset
            await log.roll()
        sizes = [log.size_bytes for log in (rig.log, dirtier, other)]
        await rig.cleaner.clean_dirtiest()
        assert dirtier.size_bytes < sizes[1]
        assert rig.log.size_bytes == sizes[0]
        assert await rig.cleaner.clean_dirtiest()
        assert rig.log.size_bytes < sizes[0]
        assert not await rig.cleaner.clean_dirtiest()
        assert other.size_bytes == sizes[2]
        await rig.manager.shutdown()

    asyncio.run(run())


def test_young_records_wait_and_old_ones_do_not() -> None:
    async def run() -> None:
        rig = CompactingRig(min_compaction_lag_ms=1000)
        await rig.open()
        await fill(rig)
        rig.clock.advance(500)
        await fill(rig)
        assert not await rig.cleaner.clean_dirtiest()
        rig.clock.advance(500)
        assert await rig.cleaner.clean_dirtiest()
        assert rig.offsets() == [2, 3, 4, 5]
        await rig.manager.shutdown()

    asyncio.run(run())


def test_what_waited_too_long_is_cleaned_whatever_the_ratio() -> None:
    async def run() -> None:
        rig = CompactingRig(min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=1000)
        log = await rig.open()
        await fill(rig)
        rig.clock.advance(1000)
        assert not await rig.cleaner.clean_dirtiest()
        # After a restart the time of a segment's first batch has to be read again.
        await rig.restart()
        rig.clock.advance(1)
        assert await rig.cleaner.clean_dirtiest()
        assert rig.offsets() == [2]
        assert rig.log is not log
        # The active segment is closed in time to be cleaned.
        await rig.write((b"k", b"3"))
        assert rig.log.must_roll(100, rig.clock.now_ms() + 1001)
        await rig.manager.shutdown()

    asyncio.run(run())


def test_what_is_not_committed_stays() -> None:
    async def run() -> None:
        rig = CompactingRig()
        await rig.open()
        await fill(rig)
        await fill(rig)
        rig.log.high_watermark = 5
        assert await rig.cleaner.clean_dirtiest()
        assert rig.offsets() == [2, 3, 4, 5]
        assert not await rig.cleaner.clean_dirtiest()
        rig.log.high_watermark = 6
        assert await rig.cleaner.clean_dirtiest()
        assert rig.offsets() == [5]
        await rig.manager.shutdown()

    asyncio.run(run())


def test_the_checkpoint_is_kafkas_and_is_read_at_the_start() -> None:
    async def run() -> None:
        rig = CompactingRig()
        await rig.open()
        await fill(rig)
        await rig.cleaner.clean_dirtiest()
        assert rig.disk.read(CHECKPOINT) == b"0\n1\nevents 0 3\n"
        await rig.restart()
        assert not await rig.cleaner.clean_dirtiest()
        rig.disk.write_atomically(CHECKPOINT, b"0\n1\nevents 0 99\n")
        await rig.restart()
        # Beyond the end: it was another log's. Everything counts as dirty.
        assert await rig.cleaner.clean_dirtiest()
        assert rig.disk.read(CHECKPOINT) == b"0\n1\nevents 0 3\n"
        await rig.manager.delete_log(TOPIC, 0)
        await rig.manager.create_log(TOPIC, 0, TOPIC_ID, rig.config)
        found = rig.manager.get(TOPIC, 0)
        assert found is not None
        rig.log = found
        await fill(rig, 5)
        assert await rig.cleaner.clean_dirtiest()
        assert rig.disk.read(CHECKPOINT) == b"0\n1\nevents 0 5\n"
        await rig.manager.shutdown()

    asyncio.run(run())


def test_a_broken_checkpoint_means_cleaning_again_and_one_that_cannot_be_read_a_broken_disk() -> None:
    async def run() -> None:
        rig = CompactingRig()
        await rig.open()
        rig.disk.write_atomically(CHECKPOINT, b"nonsense")
        await rig.cleaner.read_checkpoints()
        await rig.write((b"k", b"v"))
        await rig.clean()
        assert b"events 0 1" in rig.disk.read(CHECKPOINT)
        rig.memory_disk.fail("read", path_part=CHECKPOINT)
        await rig.cleaner.read_checkpoints()
        assert rig.directory.failure is not None
        assert not await rig.cleaner.clean_dirtiest()

    asyncio.run(run())


def garbage_batch() -> bytes:
    """A right CRC over records that are none."""
    batch = bytearray(keyed_batch([(b"k", b"v" * 20)]))
    batch[61:] = b"\xff" * (len(batch) - 61)
    batch[17:21] = crc32c(batch[21:]).to_bytes(4, "big")
    return bytes(batch)


async def append_garbage(log: Log, batch: bytes) -> None:
    damaged = bytearray(batch)
    assign_offset(damaged, 0, log.log_end_offset, 0)
    log.segments[-1].append([bytes(damaged)], log.log_end_offset, log.log_end_offset, 1)
    log.log_end_offset += 1
    log.high_watermark = log.log_end_offset
    await log.roll()


@pytest.mark.parametrize("damage", ["records", "crc", "header"])
def test_a_log_with_a_batch_that_does_not_read_is_left_alone_and_the_others_are_not(
    damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        rig = CompactingRig()
        await rig.open()
        await rig.write((b"k", b"1"))
        await rig.write((b"k", b"2"))
        batch = bytearray(garbage_batch())
        if damage == "crc":
            batch[70] ^= 1
        elif damage == "header":
            batch[16] = 1
        await append_garbage(rig.log, bytes(batch))
        other = await rig.manager.create_log(TOPIC, 1, TOPIC_ID, rig.config)
        for _ in range(3):
            await append(other, keyed_batch([(b"k", b"v")]))
        other.high_watermark = other.log_end_offset
        await other.roll()
        sizes = rig.log.size_bytes, other.size_bytes
        while await rig.cleaner.clean_dirtiest():
            pass
        assert rig.cleaner.uncleanable(rig.directory)[0] == 1
        assert "events-0 cannot be compacted" in caplog.text
        assert rig.log.size_bytes == sizes[0]
        assert other.size_bytes < sizes[1]
        assert rig.directory.failure is None
        assert not [name for name in rig.names() if name.endswith(".cleaned")]
        await rig.manager.delete_log(TOPIC, 0)
        assert rig.cleaner.uncleanable(rig.directory)[0] == 0
        await rig.manager.shutdown()

    asyncio.run(run())


def test_closing_or_deleting_a_log_ends_its_cleaning() -> None:
    async def run() -> None:
        rig = CompactingRig(segment_bytes=400)
        await rig.open()
        for number in range(40):
            await rig.write((b"k%d" % (number % 3), b"%d" % number))
        expected = {record.key: record for record in rig.records()}
        await rig.log.roll()
        cleaning = asyncio.ensure_future(rig.cleaner.clean_dirtiest())
        await until(lambda: any(name.endswith(".cleaned") for name in rig.names()))
        log = await rig.restart()
        await cleaning
        assert {record.key: record for record in rig.records()} == expected
        assert not [name for name in rig.names() if name.endswith((".cleaned", ".swap"))]
        cleaning = asyncio.ensure_future(rig.cleaner.clean_dirtiest())
        await until(lambda: log.reshaping.locked())
        await rig.manager.delete_log(TOPIC, 0)
        await cleaning
        await rig.manager.shutdown()

    asyncio.run(run())


def test_it_runs_beside_a_log_in_use(tmp_path: object) -> None:
    """Threads, real files, and appends while segments are swapped."""

    async def run() -> None:
        executor = ThreadExecutor()
        rig = CompactingRig(disk=RealDisk(), path=f"{tmp_path}/data", executor=executor)
        rig.settings = CleanerSettings(backoff_ms=1, dedupe_buffer_bytes=1 << 20)
        await rig.open()
        running = asyncio.ensure_future(rig.cleaner.run())
        for number in range(400):
            await rig.write((b"k%d" % (number % 7), b"%d" % number))
            if number % 50 == 0:
                await rig.log.flush()
        wanted = {b"k%d" % (number % 7): b"%d" % number for number in range(393, 400)}
        await rig.log.roll()
        while len(rig.offsets()) > 7:
            assert {record.key: record.value for record in rig.records()} == wanted
            await asyncio.sleep(0)
            assert not running.done()
        assert rig.offsets() == list(range(393, 400))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await rig.restart()
        assert rig.offsets() == list(range(393, 400))
        await rig.manager.shutdown()
        executor.shutdown()

    asyncio.run(run())


@pytest.mark.parametrize("cleaner_first", [True, False])
def test_retention_and_compaction_take_turns(cleaner_first: bool) -> None:
    async def run() -> None:
        rig = CompactingRig(cleanup_policy=("compact", "delete"), retention_ms=1000, segment_bytes=400)
        await rig.open()
        for number in range(30):
            await rig.write((b"k%d" % (number % 3), b"%d" % number))
        await rig.log.roll()
        rig.clock.advance(2000)
        for number in range(30, 40):
            await rig.write((b"k%d" % (number % 3), b"%d" % number))
        await rig.log.roll()
        works = [rig.cleaner.clean_dirtiest(), rig.manager.apply_retention()]
        await asyncio.gather(*(works if cleaner_first else reversed(works)))
        while await rig.cleaner.clean_dirtiest():
            pass
        await rig.manager.apply_retention()
        assert rig.directory.failure is None
        assert rig.offsets() == [37, 38, 39]
        assert rig.log.log_start_offset == rig.log.segments[0].base_offset
        await rig.restart()
        assert rig.offsets() == [37, 38, 39]
        await rig.manager.shutdown()

    asyncio.run(run())
