"""Very many logs: a start and a stop do nothing for a log that needs nothing, and the loop has its turn."""

import asyncio
from collections import Counter

import pytest
from tests.unit.log.support import TOPIC, TOPIC_ID, Rig, append, batch_of, read_all

from ottla.log.directory import LOG_START_CHECKPOINT, REPLICATION_CHECKPOINT

WRITES = ("append", "sync", "truncate", "write_atomically", "rename", "delete", "sync_directory", "make_directory")
COUNT = 60
AT_ONCE = 10


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that 60 logs are very many."""
    for module in ("log_checkpoints", "upkeep"):
        monkeypatch.setattr(f"ottla.log.{module}._LOGS_AT_ONCE", AT_ONCE)


async def many(rig: Rig) -> None:
    await rig.open()
    for number in range(1, COUNT):
        await rig.manager.create_log(TOPIC, number, TOPIC_ID, rig.config)


def writes_in_logs(rig: Rig, calls: Counter[str]) -> dict[str, int]:
    return {name: rig.memory_disk.calls[name] - calls[name] for name in WRITES if name != "write_atomically"}


def test_logs_that_did_not_change_are_closed_without_a_write() -> None:
    async def scenario() -> None:
        rig = Rig()
        log = await rig.open()
        await append(log, batch_of([b"a"], producer_id=7, producer_epoch=0, base_sequence=0))
        await rig.restart()
        rig.log.leader_epochs.assign(1, rig.log.log_end_offset)
        path = rig.log.path
        before = {name: rig.disk.read(f"{path}/{name}") for name in rig.disk.list_directory(path)}
        calls = Counter(rig.memory_disk.calls)
        await rig.log.close()
        assert writes_in_logs(rig, calls) == dict.fromkeys(writes_in_logs(rig, calls), 0)
        assert rig.memory_disk.calls["write_atomically"] == calls["write_atomically"]
        assert before == {name: rig.disk.read(f"{path}/{name}") for name in rig.disk.list_directory(path)}
        await rig.manager.shutdown()
        log = await rig.open()
        assert log.recovery_point == log.log_end_offset == 1
        assert list(log.producer_state.producers) == [7]
        await append(log, batch_of([b"b"]))
        await rig.restart()
        assert rig.log.log_end_offset == 2
        await rig.manager.shutdown()

    asyncio.run(scenario())


def test_after_a_clean_stop_no_file_of_an_empty_log_is_opened() -> None:
    async def scenario() -> None:
        rig = Rig()
        await many(rig)
        await rig.manager.shutdown()
        calls = Counter(rig.memory_disk.calls)
        await rig.open()
        assert len(rig.manager.all_logs()) == COUNT
        # One for the lock of the directory.
        assert rig.memory_disk.calls["open"] - calls["open"] == 1
        log = rig.manager.get(TOPIC, COUNT - 1)
        assert log is not None
        await append(log, batch_of([b"a"]))
        assert read_all(log)
        await rig.manager.shutdown()

    asyncio.run(scenario())


def test_a_checkpoint_that_says_nothing_new_is_not_written() -> None:
    async def scenario() -> None:
        rig = Rig()
        await many(rig)
        await rig.manager.checkpoint_high_watermarks()
        written = rig.memory_disk.calls["write_atomically"]
        await rig.manager.checkpoint_high_watermarks()
        assert rig.memory_disk.calls["write_atomically"] == written
        rig.log.high_watermark = 5
        await rig.manager.checkpoint_high_watermarks()
        assert rig.memory_disk.calls["write_atomically"] == written + 1
        offsets = rig.directory.read_checkpoint(REPLICATION_CHECKPOINT)
        assert len(offsets) == COUNT
        assert offsets[rig.log.topic_partition] == 5
        await rig.manager.shutdown()

    asyncio.run(scenario())


def test_a_deleted_log_is_in_no_checkpoint_once_its_name_is_used_again() -> None:
    """Also when one was begun before: it must not be written after the one without the log."""

    async def scenario() -> None:
        rig = Rig()
        await many(rig)
        await append(rig.log, batch_of([b"a"]))
        rig.log.high_watermark = 1
        rig.log.advance_start(1)
        begun = asyncio.ensure_future(rig.manager.checkpoint_log_start_offsets())
        await asyncio.sleep(0)
        await rig.manager.delete_log(TOPIC, 0)
        await begun
        await rig.manager.create_log(TOPIC, 0, bytes(range(16)), rig.config)
        assert rig.directory.read_checkpoint(LOG_START_CHECKPOINT) == {}
        await rig.manager.shutdown()

    asyncio.run(scenario())


def test_periodic_work_gives_the_loop_its_turn() -> None:
    """Several times: what waits for the loop does not wait for all the logs."""

    async def scenario() -> None:
        rig = Rig()
        await many(rig)
        for work in (rig.manager.checkpoint_high_watermarks, rig.manager.expire_producers):
            turns = 0
            task = asyncio.ensure_future(work())
            while not task.done():
                turns += 1
                await asyncio.sleep(0)
            assert turns >= COUNT // AT_ONCE
        await rig.manager.shutdown()

    asyncio.run(scenario())
