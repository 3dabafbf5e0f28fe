"""Which segments go, and what a log is without them."""

import asyncio

import pytest
from tests.unit.log.aging import DAY_MS, SEGMENT_BYTES, base_offsets, filled, names, numbers, settings, values
from tests.unit.log.support import START_MS, Rig, append, batch_of, until

from ottla.log.config import LogConfig
from ottla.log.manager_settings import LogManagerSettings
from ottla.log.retention import Candidate, count_deletable
from ottla.protocol.errors import ErrorCode, KafkaError

# The decision.


@pytest.mark.parametrize(
    ("retention_bytes", "expected"),
    [(-1, 0), (400, 0), (301, 0), (300, 1), (299, 1), (200, 2), (1, 3), (0, 4)],
)
def test_segments_go_while_the_rest_is_large_enough(retention_bytes: int, expected: int) -> None:
    candidates = [Candidate((number + 1) * 10, 100, START_MS) for number in range(4)]
    config = LogConfig(retention_ms=-1, retention_bytes=retention_bytes)
    assert count_deletable(candidates, config, 0, 40, START_MS) == expected
    # Nothing at or above the high watermark goes.
    assert count_deletable(candidates, config, 0, 39, START_MS) == min(expected, 3)
    assert count_deletable(candidates, config, 0, 15, START_MS) == min(expected, 1)
    # Nor anything from a topic that is only compacted.
    compacted = LogConfig(retention_ms=-1, retention_bytes=retention_bytes, cleanup_policy=("compact",))
    assert count_deletable(candidates, compacted, 0, 40, START_MS) == 0


@pytest.mark.parametrize(
    ("now_ms", "expected"), [(1000, 0), (1100, 0), (1101, 1), (1200, 1), (1201, 2), (1301, 2), (1501, 4), (9999, 4)]
)
def test_segments_go_by_age_up_to_the_first_that_is_young(now_ms: int, expected: int) -> None:
    times = [1000, 1100, 1400, 1300]
    candidates = [Candidate((number + 1) * 10, 100, time_ms) for number, time_ms in enumerate(times)]
    assert count_deletable(candidates, LogConfig(retention_ms=100), 0, 40, now_ms) == expected
    assert count_deletable(candidates, LogConfig(retention_ms=-1), 0, 40, now_ms) == 0
    assert count_deletable(candidates, LogConfig(retention_ms=100, cleanup_policy=()), 0, 40, now_ms) == 0
    both = LogConfig(retention_ms=100, cleanup_policy=("compact", "delete"))
    assert count_deletable(candidates, both, 0, 40, now_ms) == expected


@pytest.mark.parametrize("policy", [("delete",), ("compact",), ("compact", "delete"), ()])
@pytest.mark.parametrize(("start", "expected"), [(0, 0), (9, 0), (10, 1), (15, 1), (20, 2), (30, 3), (40, 3)])
def test_segments_below_the_start_go_under_every_policy(policy: tuple[str, ...], start: int, expected: int) -> None:
    candidates = [Candidate((number + 1) * 10, 100, START_MS) for number in range(4)]
    config = LogConfig(retention_ms=-1, cleanup_policy=policy)
    assert count_deletable(candidates, config, start, 40, START_MS) == expected


def test_an_empty_active_segment_stays() -> None:
    candidates = [Candidate(10, 100, 0), Candidate(10, 0, 0)]
    assert count_deletable(candidates, LogConfig(retention_ms=0), 0, 10, START_MS) == 1
    assert count_deletable(candidates[1:], LogConfig(retention_bytes=0), 10, 10, START_MS) == 0


# In a log.


def test_old_segments_go_and_the_log_starts_later() -> None:
    async def run() -> None:
        rig = Rig(settings(retention_ms=DAY_MS))
        log = await filled(rig, 4)
        for number in range(4, 9):
            await append(log, batch_of([b"%02d" % number], timestamp=START_MS + 1), leader_epoch=1)
        log.high_watermark = 9
        rig.clock.advance(DAY_MS)
        await rig.manager.apply_retention()
        assert base_offsets(log) == [0, 2, 4, 6, 8]
        rig.clock.advance(1)
        await rig.manager.apply_retention()
        assert base_offsets(log) == [4, 6, 8]
        assert (log.log_start_offset, log.log_end_offset) == (4, 9)
        assert log.leader_epochs.entries() == [(1, 4)]
        assert values(log) == numbers(4, 9)
        for offset in (0, 3):
            with pytest.raises(KafkaError) as caught:
                log.read(offset, 100, up_to_offset=9)
            assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
        await until(lambda: not names(rig, ".deleted"))
        assert names(rig, ".log") == [f"{offset:020d}.log" for offset in (4, 6, 8)]
        assert names(rig, ".snapshot") == [f"{offset:020d}.snapshot" for offset in (4, 6, 8)]
        log = await rig.restart()
        assert (log.log_start_offset, values(log)) == (4, numbers(4, 9))

    asyncio.run(run())


def test_a_log_that_is_old_altogether_keeps_its_end_and_its_producers() -> None:
    async def run() -> None:
        rig = Rig(settings(retention_ms=1000))
        log = await filled(rig, 5)
        sent = {"producer_id": 7, "producer_epoch": 0}
        await append(log, batch_of([b"05"], base_sequence=0, **sent))  # type: ignore[arg-type]
        log.high_watermark = 6
        rig.clock.advance(1001)
        await rig.manager.apply_retention()
        assert (log.log_start_offset, log.log_end_offset) == (6, 6)
        assert base_offsets(log) == [6]
        assert log.read(6, 100, up_to_offset=6) is None
        await rig.manager.apply_retention()
        assert base_offsets(log) == [6]
        log = await rig.restart()
        assert (log.log_start_offset, log.log_end_offset) == (6, 6)
        repeated = await append(log, batch_of([b"05"], base_sequence=0, **sent))  # type: ignore[arg-type]
        assert repeated.duplicate
        assert (await append(log, batch_of([b"06"], base_sequence=1, **sent))).first_offset == 6  # type: ignore[arg-type]

    asyncio.run(run())


def test_records_without_time_are_as_old_as_their_file() -> None:
    async def run() -> None:
        rig = Rig(settings(retention_ms=1000))
        log = await filled(rig, 4, timestamp=-1)
        rig.clock.advance(500)
        for number in range(4, 7):
            await append(log, batch_of([b"%02d" % number], timestamp=-1))
        log.high_watermark = 7
        rig.clock.advance(501)
        await rig.manager.apply_retention()
        assert (base_offsets(log), log.log_start_offset) == ([4, 6], 4)

    asyncio.run(run())


def test_what_is_not_replicated_stays() -> None:
    async def run() -> None:
        rig = Rig(settings(retention_bytes=0))
        log = await filled(rig)
        log.high_watermark = 5
        await rig.manager.apply_retention()
        assert (base_offsets(log), log.log_start_offset) == ([4, 6, 8], 4)

    asyncio.run(run())


def test_a_moved_start_is_kept_over_a_stop_and_its_segments_go() -> None:
    async def run() -> None:
        rig = Rig(settings())
        log = await filled(rig)
        log.advance_start(5)
        log.advance_start(3)
        assert log.log_start_offset == 5
        with pytest.raises(KafkaError) as caught:
            log.advance_start(10)
        assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert await log.offset_for_timestamp(0) == (5, START_MS, 0)
        await rig.manager.apply_retention()
        assert (base_offsets(log), log.log_start_offset) == ([4, 6, 8], 5)
        log = await rig.restart()
        assert (log.log_start_offset, values(log)) == (5, numbers(5, 9))
        assert log.leader_epochs.entries() == [(0, 5)]

    asyncio.run(run())


def test_the_periodic_work_includes_retention() -> None:
    async def run() -> None:
        rig = Rig(settings(retention_bytes=SEGMENT_BYTES))
        log = await filled(rig)
        rig.manager.settings = LogManagerSettings(log_retention_check_interval_ms=0)
        task = asyncio.ensure_future(rig.manager.run())
        await until(lambda: base_offsets(log) == [6, 8])
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
