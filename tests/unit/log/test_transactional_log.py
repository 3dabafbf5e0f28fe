"""Transactions in a log: what is stable, what was aborted, and that every way of opening it again knows the same."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest
from tests.unit.log.moving import TWO, MovingRig
from tests.unit.log.support import START_MS, Rig, append, batch_of, end_transaction

from ottla.log.config import LogConfig
from ottla.log.log import Log
from ottla.log.segment import BrokenSegment
from ottla.log.stability import aborted_within, bytes_between, last_stable_offset
from ottla.log.transaction_index import AbortedTransaction
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.records import scan_headers

SMALL = LogConfig(segment_bytes=400, index_interval_bytes=100)


class Writer:
    """One transactional producer."""

    def __init__(self, log: Log, producer_id: int) -> None:
        self.log = log
        self.producer_id = producer_id
        self.sequence = 0

    async def write(self, count: int = 1) -> int:
        """The offset of the first record."""
        batch = batch_of(
            [b"v" * 20] * count,
            producer_id=self.producer_id,
            producer_epoch=0,
            base_sequence=self.sequence,
            transactional=True,
        )
        self.sequence += count
        return (await append(self.log, batch)).first_offset

    async def end(self, *, commit: bool) -> int:
        """The offset of the marker."""
        return (await end_transaction(self.log, self.producer_id, commit=commit)).first_offset


def all_aborted(log: Log) -> list[AbortedTransaction]:
    return [aborted for segment in log.segments for aborted in segment.transactions()]


def replicate(log: Log, high_watermark: int | None = None) -> None:
    """What a partition does when its replicas have the log up to an offset."""
    log.high_watermark = log.log_end_offset if high_watermark is None else high_watermark
    log.producer_state.transactions.replicated(log.high_watermark)


async def write_history(log: Log) -> list[AbortedTransaction]:
    """Three producers over several segments; what was aborted."""
    one, two, three = Writer(log, 1), Writer(log, 2), Writer(log, 3)
    expected: list[AbortedTransaction] = []
    for _ in range(4):
        first_one, first_two = await one.write(2), await two.write()
        await append(log, batch_of([b"plain" * 8]))
        first_three = await three.write(2)
        await one.write()
        marker = await one.end(commit=False)
        expected.append(AbortedTransaction(1, first_one, marker, first_two))
        await two.end(commit=True)
        marker = await three.end(commit=False)
        expected.append(AbortedTransaction(3, first_three, marker, marker + 1))
    await one.write()
    return expected


def test_a_log_is_stable_up_to_its_oldest_transaction() -> None:
    async def run() -> None:
        log = await Rig(SMALL).open()
        await append(log, batch_of([b"plain"]))
        one, two = Writer(log, 1), Writer(log, 2)
        await one.write()
        await two.write()
        replicate(log)
        assert (last_stable_offset(log), log.high_watermark) == (1, 3)
        marker = await one.end(commit=True)
        assert last_stable_offset(log) == 1, "the marker is not below the high watermark"
        replicate(log, marker)
        assert last_stable_offset(log) == 1
        replicate(log)
        assert last_stable_offset(log) == 2
        await two.end(commit=False)
        replicate(log)
        assert last_stable_offset(log) == log.log_end_offset == 5

    asyncio.run(run())


def test_deleted_records_do_not_hold_a_reader_up() -> None:
    async def run() -> None:
        log = await Rig(SMALL).open()
        await Writer(log, 1).write(3)
        await append(log, batch_of([b"plain"]))
        replicate(log)
        assert last_stable_offset(log) == 0
        log.advance_start(2)
        assert last_stable_offset(log) == 2
        log.advance_start(4)
        assert last_stable_offset(log) == 4

    asyncio.run(run())


async def restarted(rig: Rig) -> Log:
    return await rig.restart()


async def crashed(rig: Rig) -> Log:
    await rig.log.flush()
    return await rig.crash(random.Random(1).randrange)


async def crashed_unsynced(rig: Rig) -> Log:
    """Nothing but the records of before a checkpoint is trusted."""
    await rig.manager.checkpoint_recovery_points()
    await rig.log.flush()
    return await rig.crash(lambda _: 0)


@pytest.mark.parametrize("reopened", [restarted, crashed, crashed_unsynced])
def test_aborted_transactions_are_known_again(reopened: Callable[[Rig], Awaitable[Log]]) -> None:
    async def run() -> None:
        rig = Rig(SMALL)
        log = await rig.open()
        expected = await write_history(log)
        assert len(log.segments) > 3
        assert all_aborted(log) == expected
        replicate(log)
        stable = last_stable_offset(log)
        log = await reopened(rig)
        assert all_aborted(log) == expected
        replicate(log)
        assert last_stable_offset(log) == stable
        # Also what comes from then on, in the segment that was active before.
        marker = (await end_transaction(log, 1, commit=False)).first_offset
        expected.append(AbortedTransaction(1, stable, marker, marker + 1))
        log = await rig.restart()
        assert all_aborted(log) == expected
        replicate(log)
        assert last_stable_offset(log) == log.log_end_offset

    asyncio.run(run())


@pytest.mark.parametrize("harm", [b"", b"\0" * 5, b"\xff" * 34])
def test_an_index_that_does_not_read_is_found_again(harm: bytes) -> None:
    async def run() -> None:
        rig = Rig(SMALL)
        expected = await write_history(await rig.open())
        await rig.manager.shutdown()
        names = [name for name in rig.disk.list_directory(rig.log_path) if name.endswith(".txnindex")]
        assert len(names) > 2
        for name in names:
            file = rig.disk.open(f"{rig.log_path}/{name}")
            if harm:
                file.append([harm])
            else:
                file.truncate(file.size - 1)
            file.close()
        assert all_aborted(await rig.open()) == expected
        assert all_aborted(await rig.restart()) == expected

    asyncio.run(run())


def test_segments_without_aborted_transactions_have_no_index_of_them() -> None:
    async def run() -> None:
        rig = Rig(SMALL)
        log = await rig.open()
        writer = Writer(log, 1)
        for _ in range(10):
            await writer.write()
            await writer.end(commit=True)
        await rig.manager.shutdown()
        assert not [name for name in rig.disk.list_directory(rig.log_path) if name.endswith(".txnindex")]

    asyncio.run(run())


def test_an_index_of_another_life_is_gone_after_a_recovery() -> None:
    async def run() -> None:
        rig = Rig(SMALL)
        log = await rig.open()
        await append(log, batch_of([b"plain"]))
        path = f"{rig.log_path}/{0:020d}.txnindex"
        rig.disk.open(path, create=True).append([b"\0" * 34])
        log = await crashed(rig)
        assert all_aborted(log) == []
        assert not rig.disk.exists(path)

    asyncio.run(run())


def test_an_index_that_is_damaged_while_the_broker_runs_is_an_error() -> None:
    async def run() -> None:
        rig = Rig(SMALL)
        await write_history(await rig.open())
        log = await rig.restart()
        hurt = next(segment for segment in log.segments if segment.aborted_bytes)
        rig.disk.open(hurt.path_of(".txnindex")).append([b"?"])
        with pytest.raises(BrokenSegment):
            hurt.transactions()
        found = log.read(0, 1000, up_to_offset=log.log_end_offset)
        assert found is not None
        with pytest.raises(KafkaError) as caught:
            aborted_within(log, 0, found)
        assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
        assert log.directory.failure is None

    asyncio.run(run())


def test_readers_are_told_of_what_reaches_into_their_batches() -> None:
    async def run() -> None:
        log = await Rig(SMALL).open()
        aborted = await write_history(log)
        replicate(log)
        offset, stable = 0, last_stable_offset(log)
        while (found := log.read(offset, 150, up_to_offset=stable)) is not None:
            told = aborted_within(log, offset, found)
            headers = scan_headers(found.read(), True)
            first, last = offset, headers[-1].last_offset
            needed = [each for each in aborted if each.first_offset <= last and each.last_offset >= first]
            assert [each for each in told if each in needed] == needed
            assert all(each.last_offset >= first for each in told)
            offset = last + 1
        assert offset == stable

    asyncio.run(run())


def test_bytes_between_offsets_are_counted_over_segments() -> None:
    async def run() -> None:
        log = await Rig(SMALL).open()
        await write_history(log)
        bounds = [0]
        sizes = [0]
        for segment in log.segments:
            for header in scan_headers(segment.file.read_at(0, segment.size_bytes)):
                bounds.append(header.next_offset)
                sizes.append(sizes[-1] + header.size_bytes)
        for low in range(len(bounds)):
            for high in range(low, len(bounds)):
                assert bytes_between(log, bounds[low], bounds[high]) == sizes[high] - sizes[low]

    asyncio.run(run())


def test_retention_takes_the_index_with_its_segment() -> None:
    async def run() -> None:
        rig = Rig(LogConfig(segment_bytes=400, index_interval_bytes=100, retention_bytes=600, file_delete_delay_ms=0))
        log = await rig.open()
        expected = await write_history(log)
        replicate(log)
        await rig.manager.apply_retention()
        start = log.log_start_offset
        assert start > 0
        kept = [each for each in expected if each.last_offset >= start]
        assert all_aborted(log) == kept
        names = [name for name in rig.disk.list_directory(rig.log_path) if name.endswith(".txnindex")]
        assert all(int(name[:20]) >= start for name in names)
        assert all_aborted(await rig.restart()) == kept

    asyncio.run(run())


def test_a_log_moves_with_what_it_knows_of_transactions() -> None:
    async def run() -> None:
        rig = MovingRig(segment_bytes=400)
        log = await rig.open()
        expected = await write_history(log)
        replicate(log)
        await rig.move()
        assert rig.place() == TWO
        assert all_aborted(log) == expected
        first = last_stable_offset(log)
        marker = (await end_transaction(log, 1, commit=False)).first_offset
        expected.append(AbortedTransaction(1, first, marker, marker + 1))
        assert all_aborted(log) == expected
        assert all_aborted(await rig.restart()) == expected
        await log.flush()
        assert all_aborted(await rig.crash(random.Random(2).randrange)) == expected

    asyncio.run(run())


def test_a_marker_that_comes_too_late_changes_nothing() -> None:
    async def run() -> None:
        log = await Rig(SMALL).open()
        await Writer(log, 1).write()
        await end_transaction(log, 1, commit=True, producer_epoch=1, coordinator_epoch=5, transaction_version=2)
        for fields, code in (
            ({"producer_epoch": 0}, ErrorCode.INVALID_PRODUCER_EPOCH),
            ({"producer_epoch": 1, "coordinator_epoch": 4}, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
        ):
            with pytest.raises(KafkaError) as caught:
                await end_transaction(log, 1, commit=False, **fields)
            assert caught.value.code == code
        assert log.log_end_offset == 2
        assert all_aborted(log) == []

    asyncio.run(run())


def test_open_transactions_keep_their_producers() -> None:
    async def run() -> None:
        rig = Rig(SMALL)
        log = await rig.open()
        await Writer(log, 1).write()
        await Writer(log, 2).write()
        await end_transaction(log, 2, commit=True)
        rig.clock.advance(100 * 86_400_000)
        await rig.manager.expire_producers()
        assert list(log.producer_state.producers) == [1]
        log = await rig.restart()
        assert list(log.producer_state.producers) == [1]
        replicate(log)
        assert last_stable_offset(log) == 0
        await end_transaction(log, 1, commit=False, timestamp=START_MS)
        await rig.manager.expire_producers()
        assert not log.producer_state.producers

    asyncio.run(run())
