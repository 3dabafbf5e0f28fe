"""What is on the device, who waits for it, and what happens when it does not get there."""

import asyncio
import errno
import random

import pytest
from tests.unit.log.held import HeldExecutor
from tests.unit.log.support import Rig, append, batch_of, read_all

from ottla.log.config import LogConfig
from ottla.protocol.errors import ErrorCode, KafkaError


async def turns(count: int = 10) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_one_sync_serves_all_who_wait_and_late_comers_share_the_next() -> None:
    async def run() -> None:
        executor = HeldExecutor("sync")
        log = await Rig(executor=executor).open()
        await append(log, batch_of([b"a"]))
        early = [asyncio.ensure_future(log.flush()) for _ in range(3)]
        await turns()
        assert len(executor.held) == 1
        await append(log, batch_of([b"b"]))
        late = [asyncio.ensure_future(log.flush()) for _ in range(3)]
        covered = asyncio.ensure_future(log.flush(1))
        await turns()
        assert len(executor.held) == 1
        executor.held[0].set()
        await turns()
        assert all(task.done() for task in (*early, covered))
        assert not any(task.done() for task in late)
        assert log.flushed_offset == 1
        assert len(executor.held) == 2
        executor.held[1].set()
        await asyncio.gather(*late)
        assert log.flushed_offset == 2
        assert len(executor.held) == 2

    asyncio.run(run())


def test_a_caller_who_gives_up_does_not_take_the_flush_from_the_others() -> None:
    async def run() -> None:
        executor = HeldExecutor("sync")
        log = await Rig(executor=executor).open()
        await append(log, batch_of([b"a"]))
        first, second = asyncio.ensure_future(log.flush()), asyncio.ensure_future(log.flush())
        await turns()
        first.cancel()
        await turns()
        executor.held[0].set()
        await second
        assert first.cancelled()
        assert log.flushed_offset == 1

    asyncio.run(run())


def test_a_failing_sync_fails_for_all_and_for_good() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await append(log, batch_of([b"a"]))
        rig.memory_disk.fail("sync", errno.EIO)
        results = await asyncio.gather(*(log.flush() for _ in range(3)), return_exceptions=True)
        assert [getattr(result, "code", None) for result in results] == [ErrorCode.KAFKA_STORAGE_ERROR] * 3
        assert log.flushed_offset == 0
        # The page cache may have forgotten what it could not write: a second try would lie.
        with pytest.raises(KafkaError):
            await log.flush()
        with pytest.raises(KafkaError):
            await append(log, batch_of([b"b"]))
        assert isinstance(rig.directory.failure, OSError)

    asyncio.run(run())


def test_a_full_disk_that_refuses_the_epochs_is_flushed_later() -> None:
    """Nothing was synced yet, so nothing can be lost; a sync that meets a full disk is another matter."""

    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await append(log, batch_of([b"a"]), leader_epoch=3)
        rig.memory_disk.fail("write_atomically", errno.ENOSPC)
        with pytest.raises(KafkaError) as caught:
            await log.flush()
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        assert (log.flushed_offset, rig.directory.failure) == (0, None)
        await log.flush()
        assert log.flushed_offset == 1
        assert rig.disk.read(f"{rig.log_path}/leader-epoch-checkpoint") == b"0\n1\n3 0\n"
        await append(log, batch_of([b"b"]))
        rig.memory_disk.fail("sync", errno.ENOSPC)
        with pytest.raises(KafkaError):
            await log.flush()
        assert rig.directory.failure is not None

    asyncio.run(run())


def test_a_directory_that_failed_gets_no_marker_of_a_clean_stop() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await append(log, batch_of([b"a"]))
        rig.memory_disk.fail("sync", errno.EIO)
        await rig.manager.shutdown()
        assert not rig.disk.exists("/data/.kafka_cleanshutdown")
        await rig.open()
        assert not rig.directory.was_clean

    asyncio.run(run())


def test_flush_messages_counts_records() -> None:
    async def run() -> None:
        log = await Rig(LogConfig(flush_messages=3)).open()
        await append(log, batch_of([b"a", b"b"]))
        assert not log.flush_due()
        await append(log, batch_of([b"c"]))
        assert log.flush_due()
        await log.flush()
        assert not log.flush_due()
        assert not (await Rig().open()).flush_due()

    asyncio.run(run())


def test_flush_ms_is_kept_by_the_manager() -> None:
    async def run() -> None:
        rig = Rig(LogConfig(flush_ms=1000))
        log = await rig.open()
        await append(log, batch_of([b"a"]))
        rig.clock.advance(999)
        await rig.manager.flush_overdue()
        assert log.flushed_offset == 0
        rig.clock.advance(1)
        await rig.manager.flush_overdue()
        assert log.flushed_offset == 1

    asyncio.run(run())


def test_an_old_segment_is_flushed_after_a_roll_without_being_asked() -> None:
    async def run() -> None:
        log = await Rig().open()
        await append(log, batch_of([b"a"]))
        await log.roll()
        await turns(30)
        assert log.flushed_offset == 1

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(20))
def test_what_was_flushed_survives_a_crash(seed: int) -> None:
    async def run() -> None:
        rig = Rig(LogConfig(segment_bytes=400))
        log = await rig.open()
        for number in range(10):
            await append(log, batch_of([b"%d" % number]))
        await log.flush()
        flushed = read_all(log)
        await append(log, batch_of([b"lost?"]))
        assert read_all(await rig.crash(random.Random(seed).randrange)).startswith(flushed)

    asyncio.run(run())
