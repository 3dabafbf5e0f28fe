"""How segments go: beside reads, appends and flushes, and so that a crash at any moment leaves no hole."""

import asyncio
import errno
import random

import pytest
from tests.unit.log.aging import SEGMENT_BYTES, base_offsets, filled, names, numbers, settings, values
from tests.unit.log.held import HeldExecutor
from tests.unit.log.support import START_MS, TOPIC, TOPIC_ID, Rig, append, batch_of, until

from ottla.protocol.errors import ErrorCode, KafkaError

# While others work.


async def turns(count: int = 30) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_reads_that_began_before_go_on_until_the_files_are_removed() -> None:
    async def run() -> None:
        rig = Rig(settings(retention_bytes=0, file_delete_delay_ms=60_000))
        log = await filled(rig)
        found = log.read(1, 100, up_to_offset=9)
        assert found is not None
        expected = found.read()
        await rig.manager.apply_retention()
        assert log.log_start_offset == 9
        assert [name.removesuffix(".deleted") for name in names(rig, ".log.deleted")] == [
            f"{offset:020d}.log" for offset in (0, 2, 4, 6, 8)
        ]
        assert names(rig, ".log") == [f"{9:020d}.log"]
        assert found.read() == expected
        log = await rig.restart()
        assert names(rig, ".deleted") == []
        assert (log.log_start_offset, log.log_end_offset) == (9, 9)
        with pytest.raises(OSError, match="not open"):
            found.read()

    asyncio.run(run())


def test_a_flush_keeps_the_files_it_works_on() -> None:
    async def run() -> None:
        executor = HeldExecutor("sync")
        rig = Rig(settings(retention_bytes=0), executor=executor)
        log = await filled(rig, 1)
        flush = asyncio.ensure_future(log.flush())
        await turns()
        assert len(executor.held) == 1
        deletion = asyncio.ensure_future(rig.manager.apply_retention())
        await turns()
        # The segment was rolled, but the flush that began before has it in its hands.
        assert base_offsets(log) == [0, 1]
        executor.name = ""
        executor.held[0].set()
        await asyncio.gather(flush, deletion)
        assert base_offsets(log) == [1]
        await until(lambda: not names(rig, ".deleted"))
        await append(log, batch_of([b"01"]))
        await log.flush()
        assert (log.flushed_offset, rig.directory.failure) == (2, None)

    asyncio.run(run())


def test_appends_and_reads_go_on_while_files_are_renamed() -> None:
    async def run() -> None:
        executor = HeldExecutor("set_aside")
        rig = Rig(settings(retention_bytes=2 * SEGMENT_BYTES), executor=executor)
        log = await filled(rig)
        deletion = asyncio.ensure_future(rig.manager.apply_retention())
        await turns()
        assert len(executor.held) == 1
        assert log.log_start_offset == 4
        for number in range(9, 13):
            await append(log, batch_of([b"%02d" % number]))
        await log.flush()
        assert values(log) == numbers(4, 13)
        executor.held[0].set()
        await deletion
        assert (values(log), rig.directory.failure) == (numbers(4, 13), None)

    asyncio.run(run())


@pytest.mark.parametrize("ending", ["close", "delete"])
def test_a_log_ends_only_after_its_segments_were_renamed(ending: str) -> None:
    async def run() -> None:
        executor = HeldExecutor("set_aside")
        rig = Rig(settings(retention_bytes=0), executor=executor)
        await filled(rig)
        caller = asyncio.ensure_future(rig.manager.apply_retention())
        await turns()
        caller.cancel()
        work = rig.manager.shutdown() if ending == "close" else rig.manager.delete_log(TOPIC, 0)
        end = asyncio.ensure_future(work)
        await turns()
        assert not end.done()
        executor.held[0].set()
        await end
        assert rig.directory.failure is None
        if ending == "close":
            assert rig.disk.exists("/data/.kafka_cleanshutdown")
            log = await rig.open()
            assert (log.log_start_offset, log.log_end_offset) == (9, 9)

    asyncio.run(run())


def test_a_closed_log_is_left_alone() -> None:
    async def run() -> None:
        rig = Rig(settings(retention_bytes=SEGMENT_BYTES))
        log = await filled(rig)
        await log.close()
        await rig.manager.apply_retention()
        assert len(names(rig, ".log")) == 5
        with pytest.raises(KafkaError) as caught:
            log.advance_start(1)
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR

    asyncio.run(run())


def test_a_search_by_time_skips_what_went_meanwhile() -> None:
    async def run() -> None:
        executor = HeldExecutor("find_first_at_or_after", after=True)
        rig = Rig(settings(), executor=executor)
        log = await filled(rig, 4)
        await append(log, batch_of([b"04"], timestamp=START_MS + 5))
        log.high_watermark = 5
        # As if each segment had a young record that is below the start.
        for segment in log.segments:
            segment.max_timestamp = START_MS + 5
        search = asyncio.ensure_future(log.offset_for_timestamp(START_MS + 1))
        await turns()
        assert len(executor.held) == 1
        log.advance_start(4)
        await rig.manager.apply_retention()
        await until(lambda: not names(rig, ".deleted"))
        executor.name = ""
        executor.held[0].set()
        assert await search == (4, START_MS + 5, 0)

    asyncio.run(run())


# Faults and crashes.


def test_a_disk_that_cannot_rename_is_out_of_use() -> None:
    async def run() -> None:
        rig = Rig(settings(retention_bytes=0))
        log = await filled(rig)
        rig.memory_disk.fail("rename", errno.EIO)
        await rig.manager.apply_retention()
        assert rig.directory.failure is not None
        with pytest.raises(KafkaError):
            await append(log, batch_of([b"09"]))

    asyncio.run(run())


@pytest.mark.parametrize("offset", [0, 2, 4, 6])
@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex", ".snapshot"])
def test_a_crash_between_two_renames_leaves_no_hole(offset: int, suffix: str) -> None:
    async def run() -> None:
        rig = Rig(settings(retention_bytes=0))
        log = await filled(rig)
        await log.flush()
        await rig.manager.checkpoint_recovery_points()
        rig.memory_disk.fail("rename", path_part=f"{offset:020d}{suffix}")
        await rig.manager.apply_retention()
        log = await rig.crash(random.Random(offset).randrange)
        first = offset if suffix == ".log" else offset + 2
        if (offset, suffix) == (0, ".snapshot"):
            first = 9  # There is no such file, so nothing failed.
        assert (log.log_start_offset, log.log_end_offset) == (first, 9)
        assert values(log) == numbers(first, 9)
        assert names(rig, ".deleted") == []
        assert (await append(log, batch_of([b"09"]))).first_offset == 9

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(20))
def test_a_crash_after_the_rename_or_in_the_middle_of_the_removal(seed: int) -> None:
    async def run() -> None:
        rig = Rig(settings(retention_bytes=SEGMENT_BYTES, file_delete_delay_ms=60_000 if seed % 2 else 0))
        log = await filled(rig)
        await log.flush()
        await rig.manager.checkpoint_recovery_points()
        await rig.manager.apply_retention()
        await turns(seed)
        log = await rig.crash(random.Random(seed).randrange)
        assert (log.log_start_offset, log.log_end_offset) == (6, 9)
        assert values(log) == numbers(6, 9)
        assert names(rig, ".deleted") == []

    asyncio.run(run())


@pytest.mark.parametrize("written_down", [True, False])
def test_a_moved_start_survives_a_crash_once_it_is_written_down(written_down: bool) -> None:
    async def run() -> None:
        rig = Rig(settings())
        log = await filled(rig)
        await log.flush()
        log.advance_start(5)
        if written_down:
            await rig.manager.checkpoint_log_start_offsets()
        log = await rig.crash(random.Random(1).randrange)
        assert log.log_start_offset == (5 if written_down else 0)

    asyncio.run(run())


def test_a_new_topic_does_not_inherit_the_start_of_a_deleted_one() -> None:
    async def run() -> None:
        rig = Rig(settings())
        log = await filled(rig)
        log.advance_start(5)
        await rig.manager.checkpoint_log_start_offsets()
        await rig.manager.delete_log(TOPIC, 0)
        log = await rig.manager.create_log(TOPIC, 0, TOPIC_ID, rig.config)
        await append(log, batch_of([b"00"]))
        await log.flush()
        log = await rig.crash(random.Random(1).randrange)
        assert (log.log_start_offset, values(log)) == (0, numbers(0, 1))

    asyncio.run(run())
