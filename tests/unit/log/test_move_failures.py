"""Disks that fail or are full while a log moves: it stays where it is, whole, and the log says so."""

import asyncio
import contextlib
import errno

import pytest
from tests.unit.log.moving import ONE, TWO, MovingRig, fill, use_small_pieces
from tests.unit.log.support import read_all, until

from ottla.protocol.errors import KafkaError


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    use_small_pieces(monkeypatch)


OPERATIONS = ("open", "append", "sync", "make_directory", "write_atomically", "sync_directory", "rename", "read_at")


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_target_that_fails_or_is_full_leaves_the_log_where_it_is(
    operation: str, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail_at(skipped: int) -> bool:
        """Whether the fault was met."""
        rig = MovingRig()
        await rig.open()
        await fill(rig)
        before = read_all(rig.log)
        caplog.clear()
        rig.disk.fail(operation, number, path_part="/two", times=1, skip=skipped)
        with contextlib.suppress(KafkaError):
            await rig.move()
        met = not rig.disk.has_faults
        if met and rig.place() == ONE:
            (line,) = [record.message for record in caplog.records if record.levelname == "ERROR"]
            assert "/two" in line
            assert "stays in /one" in line
            assert (rig.directories[1].failure is not None) == (number == errno.EIO)
        elif met:
            # It had moved already when its new directory failed.
            assert operation in ("sync_directory", "read_at")
        assert rig.directories[0].failure is None
        rig.disk.clear_faults()
        if rig.log.directory.failure is None:
            assert read_all(rig.log) == before
            await fill(rig, 1)
        end_offset = rig.log.log_end_offset
        await rig.restart()
        assert rig.log.log_end_offset == end_offset
        assert read_all(rig.log).startswith(before)
        await rig.manager.shutdown()
        return met

    async def run() -> None:
        skipped = 0
        while await fail_at(skipped):
            skipped += 1
        assert skipped or operation == "read_at"

    asyncio.run(run())


def test_a_source_that_fails_ends_the_move_and_is_recovered() -> None:
    async def run() -> None:
        rig = MovingRig()
        await rig.open()
        await fill(rig)
        await rig.log.flush()
        before = read_all(rig.log)
        rig.disk.fail("read_at", errno.EIO, path_part="/one", times=1)
        await rig.move()
        assert rig.directories[0].failure is not None
        assert rig.directories[1].failure is None
        await rig.restart()
        assert (rig.place(), read_all(rig.log)) == (ONE, before)
        await rig.manager.shutdown()

    asyncio.run(run())


def test_a_log_can_leave_a_disk_that_is_full() -> None:
    async def run() -> None:
        rig = MovingRig()
        await rig.open()
        await fill(rig)
        before = read_all(rig.log)
        for operation in ("append", "write_atomically", "make_directory"):
            rig.disk.fail(operation, errno.ENOSPC, path_part="/one", times=1000)
        await rig.move()
        assert (rig.place(), read_all(rig.log)) == (TWO, before)
        await until(lambda: rig.names(ONE) == [])
        rig.disk.clear_faults()
        await rig.manager.shutdown()

    asyncio.run(run())
