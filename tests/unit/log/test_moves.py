"""A log moves to another directory while it is written, read, cut at its start, cleaned, reconfigured or deleted."""

import asyncio
from dataclasses import replace
from functools import partial

import pytest
from tests.unit.log.moving import ONE, PARTITION, THREE, TWO, MovingRig, fill, use_small_pieces
from tests.unit.log.support import TOPIC, TOPIC_ID, read_all, until

from ottla.log.directory import CLEANER_CHECKPOINT, LOG_START_CHECKPOINT
from ottla.log.moves import Switch
from ottla.log.moving import LogMove
from ottla.log.segment import Segment


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    use_small_pieces(monkeypatch)


def move_of(rig: MovingRig) -> LogMove:
    move = rig.manager.moves.get(PARTITION)
    assert move is not None
    return move


def test_every_segment_and_all_that_is_known_goes_along() -> None:
    async def run() -> None:
        rig = MovingRig(file_delete_delay_ms=60_000)
        log = await rig.open()
        await fill(rig)
        await rig.write((b"p", b"1"), producer_id=7, sequence=0, leader_epoch=3)
        log.advance_start(2)
        before, segments = read_all(log), [(each.base_offset, each.size_bytes) for each in log.segments]
        reading = log.read(2, 10_000, up_to_offset=13)
        assert reading is not None
        read_before = reading.read()
        await rig.move()
        assert rig.log is log
        assert (rig.place(), log.path, rig.names(TWO)) == (TWO, "/two/events-0", ["events-0"])
        assert read_all(log) == before
        assert reading.read() == read_before
        assert [(each.base_offset, each.size_bytes) for each in log.segments] == segments
        assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (2, 13, 13)
        assert log.recovery_point == 13
        for number in range(12):
            await rig.write((b"k", b"%d" % number), leader_epoch=3)
        assert rig.offsets() == list(range(2, 25))
        for start in (rig.restart, partial(rig.crash, lambda limit: 0)):
            opened = await start()
            assert rig.place() == TWO
            assert (rig.names(ONE), rig.names(TWO)) == ([], ["events-0"])
            assert rig.offsets() == list(range(2, 25))
            assert opened.producer_state.producers[7].last_sequence == 0
            assert opened.leader_epochs.epoch_for(12) == 3
        await rig.manager.shutdown()

    asyncio.run(run())


def test_searches_by_time_and_the_indexes_work_in_the_new_place() -> None:
    async def run() -> None:
        rig = MovingRig()
        await rig.open()
        for number in range(20):
            rig.clock.advance(1000)
            await rig.write((b"k", b"%d" % number + b"x" * 80))
        found = await rig.log.offset_for_timestamp(rig.clock.now_ms() - 12_000)
        await rig.move()
        assert await rig.log.offset_for_timestamp(rig.clock.now_ms() - 12_000) == found
        names = [name for name in rig.disk.list_directory("/two/events-0") if name.endswith(".index")]
        assert len(names) == len(rig.log.segments)
        await rig.restart()
        assert await rig.log.offset_for_timestamp(rig.clock.now_ms() - 12_000) == found
        await rig.manager.shutdown()

    asyncio.run(run())


def test_what_is_written_and_rolled_meanwhile_is_copied_too() -> None:
    async def run() -> None:
        rig = MovingRig()
        await rig.open()
        await fill(rig)
        await rig.begin()
        move, copied, sizes = move_of(rig), [], []
        assert (move.offset_lag, move.size_bytes) == (12, 0)
        for _ in range(30):
            await fill(rig, 1)
            copied.append(rig.log.log_end_offset - move.offset_lag)
            sizes.append(move.size_bytes)
            await asyncio.sleep(0)
        await rig.finish()
        assert rig.place() == TWO
        assert rig.offsets() == list(range(42))
        assert max(sizes) > 1000
        assert sizes == sorted(sizes)
        assert copied == sorted(copied)
        assert 0 < copied[15] < 42
        await until(lambda: rig.names(ONE) == [])
        await rig.manager.shutdown()

    asyncio.run(run())


def test_segments_that_retention_takes_meanwhile_do_not_come_back() -> None:
    async def run() -> None:
        rig = MovingRig(retention_bytes=1200)
        await rig.open()
        await fill(rig, 30)
        await rig.begin()
        await until(lambda: len(rig.disk.list_directory(move_of(rig).path)) > 12)
        rig.log.advance_start(5)
        await rig.manager.apply_retention()
        start = rig.log.log_start_offset
        assert start > 5
        await rig.finish()
        assert rig.place() == TWO
        names = [name for name in rig.disk.list_directory("/two/events-0") if name.endswith(".log")]
        assert names == [f"{segment.base_offset:020d}.log" for segment in rig.log.segments]
        for _ in range(2):
            assert (rig.log.log_start_offset, rig.offsets()) == (start, list(range(start, 30)))
            await rig.restart()
        await rig.manager.shutdown()

    asyncio.run(run())


def test_records_that_are_deleted_meanwhile_stay_deleted() -> None:
    async def run() -> None:
        rig = MovingRig()
        await rig.open()
        await fill(rig)
        await rig.begin()
        rig.log.advance_start(8)
        await rig.finish()
        assert rig.directories[1].read_checkpoint(LOG_START_CHECKPOINT) == {PARTITION: 8}
        await rig.crash(lambda limit: 0)
        assert (rig.place(), rig.log.log_start_offset) == (TWO, 8)
        await rig.manager.shutdown()

    asyncio.run(run())


def test_and_so_do_those_that_are_deleted_in_the_last_moment() -> None:
    """Whatever else writes the checkpoints of the new directory at that time."""

    async def run() -> None:
        rig = MovingRig()
        await rig.open()
        await fill(rig)
        rig.log.advance_start(2)
        before = []

        async def hold(switch: Switch) -> tuple[Segment, ...] | None:
            before.append(rig.directories[1].read_checkpoint(LOG_START_CHECKPOINT))
            await rig.manager.checkpoint_log_start_offsets()
            before.append(rig.directories[1].read_checkpoint(LOG_START_CHECKPOINT))
            rig.log.advance_start(9)
            return await switch()

        await rig.manager.moves.begin(rig.log, rig.directories[1], hold)
        await rig.finish()
        assert before == [{PARTITION: 2}, {PARTITION: 2}]
        await rig.crash(lambda limit: 0)
        assert (rig.place(), rig.log.log_start_offset) == (TWO, 9)
        await rig.manager.shutdown()

    asyncio.run(run())


def test_a_log_that_moves_is_not_compacted_and_is_afterwards() -> None:
    async def run() -> None:
        rig = MovingRig(cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0)
        await rig.open()
        await fill(rig)
        await rig.log.roll()
        assert await rig.cleaner.clean_dirtiest()
        await fill(rig)
        await rig.log.roll()
        await rig.begin()
        assert not await rig.cleaner.clean_dirtiest()
        await rig.finish()
        checkpoint = rig.directories[1].read_checkpoint(CLEANER_CHECKPOINT)
        assert checkpoint == {PARTITION: 12}
        assert rig.directories[0].read_checkpoint(CLEANER_CHECKPOINT) == {}
        assert await rig.cleaner.clean_dirtiest()
        assert rig.offsets() == [21, 22, 23]
        await rig.restart()
        assert rig.offsets() == [21, 22, 23]
        await rig.manager.shutdown()

    asyncio.run(run())


def test_settings_that_change_meanwhile_hold_afterwards() -> None:
    async def run() -> None:
        rig = MovingRig()
        await rig.open()
        await fill(rig)
        await rig.begin()
        rig.log.update_config(replace(rig.config, segment_bytes=2000, index_interval_bytes=777))
        await rig.finish()
        assert rig.log.segments[-1].index_interval_bytes == 777
        before = len(rig.log.segments)
        await fill(rig, 8)
        assert len(rig.log.segments) == before
        await rig.manager.shutdown()

    asyncio.run(run())


def test_a_deleted_topic_takes_its_copy_along() -> None:
    async def run() -> None:
        rig = MovingRig()
        await rig.open()
        await fill(rig)
        await rig.begin()
        await asyncio.sleep(0)
        assert await rig.manager.delete_log(TOPIC, 0)
        await until(lambda: rig.names(ONE) == [])
        assert rig.names(TWO) == []
        assert rig.manager.moves.all() == []
        await rig.manager.create_log(TOPIC, 0, bytes(16), rig.config)
        await rig.manager.shutdown()

    asyncio.run(run())


def test_a_move_that_is_called_off_leaves_nothing() -> None:
    async def run() -> None:
        rig = MovingRig()
        await rig.open()
        await fill(rig)
        before = read_all(rig.log)
        await rig.begin()
        await until(lambda: move_of(rig).size_bytes > 600)
        await rig.manager.moves.cancel(PARTITION)
        assert (rig.place(), rig.names(TWO), rig.manager.moves.all()) == (ONE, [], [])
        assert read_all(rig.log) == before
        await rig.manager.moves.cancel(PARTITION)
        await rig.move()
        assert (rig.place(), read_all(rig.log)) == (TWO, before)
        await rig.manager.shutdown()

    asyncio.run(run())


def test_one_that_waits_for_others_can_be_called_off() -> None:
    async def run() -> None:
        rig = MovingRig()
        await rig.open()
        logs = [await rig.manager.create_log("other", index, TOPIC_ID, rig.config) for index in range(4)]
        target = {ONE: rig.directories[1], TWO: rig.directories[0]}
        held = asyncio.Event()

        async def hold(switch: Switch) -> tuple[Segment, ...] | None:
            await held.wait()
            return await switch()

        for log in logs:
            await rig.manager.moves.begin(log, target[log.directory.path], hold)
        places = [log.directory.path for log in logs]
        await rig.manager.moves.cancel(logs[3].topic_partition)
        held.set()
        await rig.finish()
        assert [log.directory.path != place for log, place in zip(logs, places, strict=True)] == [True] * 3 + [False]
        assert [name for path in (ONE, TWO) for name in rig.names(path) if "future" in name] == []
        await rig.manager.shutdown()

    asyncio.run(run())


def test_a_stop_keeps_the_copy_and_the_next_start_goes_on_with_it() -> None:
    async def run() -> None:
        rig = MovingRig()
        await rig.open()
        await fill(rig, 30)
        await rig.begin()
        await until(lambda: move_of(rig).size_bytes > 2500)
        future = move_of(rig).path
        await rig.restart()
        assert (rig.place(), len(rig.offsets())) == (ONE, 30)
        copied = {name: rig.disk.size_of(f"{future}/{name}") for name in rig.disk.list_directory(future)}
        assert sum(size for name, size in copied.items() if name.endswith(".log")) > 2400
        await fill(rig, 3)
        rig.disk.calls.clear()
        await rig.resume()
        await rig.finish()
        assert rig.place() == TWO
        assert rig.offsets() == list(range(33))
        assert rig.disk.calls["append"] < 50
        await until(lambda: rig.names(ONE) == [])
        await rig.resume()
        assert rig.manager.moves.all() == []
        await rig.manager.shutdown()

    asyncio.run(run())


def test_a_copy_of_something_else_is_replaced() -> None:
    async def run() -> None:
        rig = MovingRig()
        await rig.open()
        await fill(rig)
        before = read_all(rig.log)
        await rig.manager.shutdown()
        future = f"/two/events-0.{'0' * 32}-future"
        rig.disk.make_directory(future)
        for segment, content in ((0, b"garbage" * 300), (999, b"garbage"), (6, before[:100])):
            rig.disk.write_atomically(f"{future}/{segment:020d}.log", content)
        rig.disk.make_directory(f"/two/events-0.{'1' * 32}-future")
        await rig.open()
        await rig.resume()
        await rig.finish()
        assert (rig.place(), read_all(rig.log), rig.names(TWO)) == (TWO, before, ["events-0"])
        assert "00000000000000000999.log" not in rig.disk.list_directory("/two/events-0")
        await rig.restart()
        assert read_all(rig.log) == before
        await rig.manager.shutdown()

    asyncio.run(run())


def test_a_new_log_is_made_where_it_was_wished_for() -> None:
    async def run() -> None:
        rig = MovingRig(paths=(ONE, TWO, THREE))
        await rig.open()
        rig.manager.prefer("later", 0, rig.directories[2])
        rig.manager.prefer("later", 1, rig.directories[0])
        rig.manager.prefer("later", 1, rig.directories[1])
        places = [(await rig.manager.create_log("later", index, TOPIC_ID, rig.config)).directory for index in range(2)]
        assert places == [rig.directories[2], rig.directories[1]]
        rig.manager.prefer("later", 2, rig.directories[2])
        rig.directories[2].fail(OSError("broken"))
        log = await rig.manager.create_log("later", 2, TOPIC_ID, rig.config)
        assert log.directory is not rig.directories[2]
        await rig.manager.shutdown()

    asyncio.run(run())
