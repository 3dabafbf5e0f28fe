"""What compaction leaves of a log: the last record of each key, at its offset, as it was."""

import asyncio

import pytest
from tests.unit.log.compacting import CompactingRig
from tests.unit.log.support import START_MS, read_all

from ottla.log.timestamps import find_first_at_or_after, time_search
from ottla.records import Codec, read_header, scan_headers
from ottla.records.compaction import OPENED_AT_ONCE
from ottla.testing import SeededIds

DAY_MS = 86_400_000


@pytest.mark.parametrize("codec", list(Codec))
def test_the_last_record_of_each_key_stays_where_it_was(codec: Codec) -> None:
    async def run() -> None:
        rig = CompactingRig()
        await rig.open()
        await rig.write((b"a", b"1"), (b"b", b"1"), (b"a", b"2"), codec=codec)
        await rig.write((b"b", b"2"), (b"c", b"1"), codec=codec)
        await rig.write((b"d", b"1"), codec=codec)
        before = {record.offset: record for record in rig.records()}
        await rig.clean()
        assert rig.content() == [(2, b"a", b"2"), (3, b"b", b"2"), (4, b"c", b"1"), (5, b"d", b"1")]
        # Timestamps and headers are the old ones, and what lost nothing keeps its very bytes.
        assert rig.records() == [before[offset] for offset in (2, 3, 4, 5)]
        headers = scan_headers(read_all(rig.log))
        assert [(header.base_offset, header.last_offset) for header in headers] == [(0, 2), (3, 4), (5, 5)]
        assert {header.compression for header in headers} == {codec}
        await rig.manager.shutdown()

    asyncio.run(run())


def test_a_batch_that_lost_everything_goes_and_the_active_segment_is_not_touched() -> None:
    async def run() -> None:
        rig = CompactingRig()
        await rig.open()
        for number in range(5):
            await rig.write((b"k", b"%d" % number))
        await rig.clean()
        await rig.write((b"k", b"active"))
        await rig.write((b"k", b"active too"))
        assert not await rig.cleaner.clean_dirtiest()
        assert rig.content() == [(4, b"k", b"4"), (5, b"k", b"active"), (6, b"k", b"active too")]
        assert rig.log.read(0, 100, up_to_offset=7) is not None
        await rig.manager.shutdown()

    asyncio.run(run())


def test_small_neighbours_become_one_segment_and_a_restart_finds_the_same() -> None:
    async def run() -> None:
        rig = CompactingRig()
        log = await rig.open()
        for number in range(60):
            await rig.write((b"k%d" % (number % 4), b"v" * 60), (b"only %d" % (number // 3), b"x"))
        await rig.clean()
        before = len(log.segments)
        # They were full until now, and are merged when there is something to clean again.
        await rig.write((b"k0", b"v"))
        await rig.clean()
        assert before > 3
        assert len(log.segments) < before - 1
        assert all(segment.size_bytes <= 2000 for segment in log.segments)
        expected = rig.content()
        assert len(expected) == 24
        assert not [name for name in rig.names() if name.endswith((".cleaned", ".swap"))]
        snapshots = [name for name in rig.names() if name.endswith(".snapshot")]
        assert len(snapshots) < len(log.segments) + 1
        for offset in range(log.log_end_offset):
            found = log.read(offset, 1, up_to_offset=log.log_end_offset)
            assert found is not None
            assert read_header(found.read()).last_offset >= offset
        log = await rig.restart()
        assert rig.content() == expected
        assert log.log_end_offset == 121
        await rig.manager.shutdown()

    asyncio.run(run())


def test_a_tombstone_stays_for_its_retention_after_it_was_first_cleaned() -> None:
    async def run() -> None:
        rig = CompactingRig(delete_retention_ms=DAY_MS)
        await rig.open()
        await rig.write((b"a", b"1"), (b"b", b"1"))
        await rig.write((b"a", None), (b"c", b"1"))
        rig.clock.advance(10 * DAY_MS)
        await rig.clean()
        assert rig.content() == [(1, b"b", b"1"), (2, b"a", None), (3, b"c", b"1")]
        header = scan_headers(read_all(rig.log))[1]
        assert header.attributes & 0x40
        assert header.base_timestamp == rig.clock.now_ms() + DAY_MS
        assert [record.timestamp for record in rig.records()] == [START_MS + 1, START_MS, START_MS + 1]

        rig.clock.advance(DAY_MS - 1)
        await rig.write((b"x", b"1"))
        await rig.clean()
        assert (2, b"a", None) in rig.content()

        rig.clock.advance(1)
        await rig.write((b"y", b"1"))
        await rig.clean()
        assert [offset for offset, *_ in rig.content()] == [1, 3, 4, 5]
        assert rig.records()[1].timestamp == START_MS + 1
        await rig.manager.shutdown()

    asyncio.run(run())


def test_the_last_sequence_of_a_producer_survives_its_records() -> None:
    async def run() -> None:
        rig = CompactingRig()
        log = await rig.open()
        await rig.write((b"k", b"1"), producer_id=7, sequence=0)
        await rig.write((b"k", b"2"), (b"k", b"3"), producer_id=7, sequence=1, codec=Codec.GZIP)
        await rig.write((b"k", b"4"))
        await rig.clean()
        kept, last = scan_headers(read_all(log))
        assert (kept.base_offset, kept.last_offset, kept.record_count) == (1, 2, 0)
        assert (kept.producer_id, kept.base_sequence, kept.last_sequence) == (7, 1, 2)
        assert (kept.compression, kept.size_bytes) == (Codec.NONE, 61)
        assert last.base_offset == 3
        for name in rig.names():
            if name.endswith(".snapshot"):
                rig.disk.delete(f"{rig.log_path}/{name}")
        log = await rig.crash(SeededIds(3).below)
        assert log.producer_state.producers[7].last_sequence == 2
        # With a later batch of the same producer the empty one is of no use any more.
        await rig.write((b"z", b"1"), producer_id=7, sequence=3)
        await rig.clean()
        assert [header.base_offset for header in scan_headers(read_all(rig.log))] == [3, 4]
        await rig.manager.shutdown()

    asyncio.run(run())


def test_a_map_that_is_full_cleans_in_several_rounds() -> None:
    async def run() -> None:
        rig = CompactingRig()
        await rig.open()
        rig.cleaner.settings = type(rig.settings)(dedupe_buffer_bytes=24 * 12)
        latest: dict[bytes, int] = {}
        for number in [*range(40), *range(40)]:
            keys = (b"%d" % number, b"%d" % (number + 1))
            first_offset = await rig.write((keys[0], b"v" * 30), (keys[1], b"w"))
            latest |= {keys[0]: first_offset, keys[1]: first_offset + 1}
        await rig.log.roll()
        rounds = 0
        while await rig.cleaner.clean_dirtiest():
            rounds += 1
        assert rounds > 3
        assert rig.offsets() == sorted(latest.values())
        await rig.manager.shutdown()

    asyncio.run(run())


def test_readers_finish_on_the_old_files() -> None:
    async def run() -> None:
        rig = CompactingRig(file_delete_delay_ms=60_000)
        log = await rig.open()
        for number in range(3):
            await rig.write((b"k", b"%d" % number))
        found = log.read(0, 10_000, up_to_offset=3)
        assert found is not None
        before = found.read()
        await rig.clean()
        assert found.read() == before
        assert [name for name in rig.names() if name.endswith(".deleted")]
        await rig.manager.shutdown()
        await rig.open()
        assert not [name for name in rig.names() if name.endswith(".deleted")]
        await rig.manager.shutdown()

    asyncio.run(run())


def test_a_search_that_began_before_ends_on_the_old_segment() -> None:
    async def run() -> None:
        rig = CompactingRig(file_delete_delay_ms=60_000)
        log = await rig.open()
        for number in range(15):
            await rig.write((b"k%d" % (number % 2), b"v" * number))
            rig.clock.advance(10)
        await log.roll()
        await rig.restart()
        old = rig.log.segments[0]
        await rig.clean()
        assert rig.log.segments[0] is not old
        for offset in range(15):
            assert read_header(old.file.read_at(old.position_of(offset), 61)).base_offset == offset
            found = find_first_at_or_after(time_search(old, START_MS + 10 * offset), 0)
            assert found == (offset, START_MS + 10 * offset, 0)
        await rig.manager.shutdown()

    asyncio.run(run())


@pytest.mark.parametrize("policy", [("compact", "delete"), ("delete", "compact")])
def test_compaction_goes_together_with_retention(policy: tuple[str, ...]) -> None:
    async def run() -> None:
        rig = CompactingRig(cleanup_policy=policy)
        await rig.open()
        for number in range(4):
            await rig.write((b"k", b"%d" % number))
        rig.log.log_start_offset = 2
        await rig.clean()
        assert rig.offsets() == [3]
        await rig.manager.shutdown()

    asyncio.run(run())


def test_records_without_a_key_from_before_the_policy_go() -> None:
    async def run() -> None:
        rig = CompactingRig(cleanup_policy=("delete",))
        log = await rig.open()
        await rig.write((b"a", b"1"), (None, b"no key"), (b"b", b"1"))  # type: ignore[arg-type]
        log.update_config(CompactingRig().config)
        await rig.clean()
        assert rig.offsets() == [0, 2]
        await rig.manager.shutdown()

    asyncio.run(run())


def test_more_compressed_batches_than_are_opened_at_once() -> None:
    async def run() -> None:
        rig = CompactingRig(segment_bytes=100_000)
        await rig.open()
        for number in range(3 * OPENED_AT_ONCE + 1):
            await rig.write((b"%d" % (number % 40), b"%d" % number), codec=Codec.SNAPPY)
        await rig.clean()
        count = 3 * OPENED_AT_ONCE + 1
        assert rig.offsets() == list(range(count - 40, count))
        await rig.manager.shutdown()

    asyncio.run(run())


def test_searches_by_time_pass_over_empty_batches() -> None:
    """Kafka, asked for the latest timestamp when an empty batch has it, answers that there is none."""

    async def run() -> None:
        rig = CompactingRig()
        log = await rig.open()
        await rig.write((b"z", b"1"))
        rig.clock.advance(5000)
        await rig.write((b"a", b"1"), producer_id=5, sequence=0)
        rig.clock.advance(-4000)
        await rig.write((b"a", b"2"))
        await rig.clean()
        assert [header.record_count for header in scan_headers(read_all(log))] == [1, 0, 1]
        for _ in range(2):
            assert await rig.log.offset_of_max_timestamp() is None
            assert await rig.log.offset_for_timestamp(START_MS + 1001) is None
            assert await rig.log.offset_for_timestamp(START_MS + 1) == (2, START_MS + 1000, 0)
            await rig.restart()
        await rig.manager.shutdown()

    asyncio.run(run())


def test_a_mistake_of_ours_costs_one_log(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        rig = CompactingRig()
        await rig.open()
        await rig.write((b"k", b"1"))
        await rig.write((b"k", b"2"))
        await rig.log.roll()
        monkeypatch.setattr("ottla.log.cleaning.filter_batches", lambda *_: 1 // 0)
        assert await rig.cleaner.clean_dirtiest()
        assert rig.cleaner.uncleanable(rig.directory)[0] == 1
        assert "the compaction of events-0 went wrong" in caplog.text
        assert rig.offsets() == [0, 1]
        assert not await rig.cleaner.clean_dirtiest()
        await rig.manager.shutdown()

    asyncio.run(run())
