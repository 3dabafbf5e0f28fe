"""Appending, reading and rolling."""

import asyncio
import errno

import pytest
from tests.unit.log.support import START_MS, Rig, append, batch_of, last_offset_of, read_all

from ottla.log.config import LogConfig
from ottla.log.log import Log
from ottla.log.offset_index import MAX_RELATIVE_OFFSET
from ottla.log.validation import validate_for_append
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.records import crc32c, read_header, read_records


async def fill(log: Log, count: int, value: bytes = b"v" * 20) -> None:
    for number in range(count):
        await append(log, batch_of([value], timestamp=START_MS + number))


def test_offsets_and_epoch_are_written_into_the_batch() -> None:
    async def run() -> None:
        log = await Rig().open()
        await append(log, batch_of([b"a", b"b"]))
        info = await append(log, batch_of([b"c", b"d", b"e"]), leader_epoch=4)
        assert info == (2, 4, -1, 0, False)
        header = read_header(read_all(log), len(batch_of([b"a", b"b"])))
        assert (header.base_offset, header.partition_leader_epoch) == (2, 4)
        assert [record.value for record in read_records(read_all(log))] == [b"a", b"b", b"c", b"d", b"e"]
        assert log.leader_epochs.entries() == [(0, 0), (4, 2)]
        assert log.leader_epochs.end_offset_for(0) == (0, 2)
        assert log.leader_epochs.end_offset_for(4) == (4, 5)

    asyncio.run(run())


def test_bytes_that_cannot_be_written_to_are_stored_just_the_same() -> None:
    async def run() -> None:
        writable, readonly = Rig(), Rig()
        batch = batch_of([b"a", b"b"])
        for rig, view in ((writable, batch), (readonly, memoryview(bytes(batch)))):
            await append(await rig.open(), memoryview(bytes(batch_of([b"first"]))))
            await append(rig.log, view, leader_epoch=3)
        assert read_all(writable.log) == read_all(readonly.log)
        assert read_header(read_all(readonly.log), len(batch_of([b"first"]))).partition_leader_epoch == 3

    asyncio.run(run())


def test_append_time_is_reported_only_where_the_topic_stamps_it() -> None:
    async def run() -> None:
        log = await Rig(LogConfig(message_timestamp_type="LogAppendTime")).open()
        info = await append(log, batch_of([b"a"], timestamp=5), now_ms=START_MS + 9)
        assert info.log_append_time == START_MS + 9
        assert read_records(read_all(log))[0].timestamp == START_MS + 9

    asyncio.run(run())


def test_a_follower_of_the_head_reads_nothing_from_the_disk() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await fill(log, 200)
        offset = log.log_end_offset
        for _ in range(3):
            await fill(log, 4)
            rig.memory_disk.fail("read_at", times=1000)
            found = log.read(offset, 1 << 20, up_to_offset=log.log_end_offset)
            rig.memory_disk.clear_faults()
            assert found is not None
            assert read_header(found.read()).base_offset == offset
            offset = log.log_end_offset

    asyncio.run(run())


def test_a_reader_of_old_data_needs_no_search_after_its_first_read() -> None:
    async def run() -> None:
        rig = Rig(LogConfig(index_interval_bytes=500))
        await fill(await rig.open(), 300)
        log = await rig.restart()
        log.read(0, 100, up_to_offset=log.log_end_offset)
        reads: list[int] = []
        offset = 0
        while offset < log.log_end_offset:
            rig.memory_disk.calls.clear()
            found = log.read(offset, 2000, up_to_offset=log.log_end_offset)
            # One look at where the next read will begin, none to find out where this one does.
            assert rig.memory_disk.calls["read_at"] <= 1
            assert found is not None
            # Every read ends where a batch ends, so nothing is sent twice.
            assert found.length <= 2000
            data = found.read()
            assert len(read_records(data)) == last_offset_of(data) - offset + 1
            reads.append(found.length)
            offset = last_offset_of(data) + 1
        assert min(reads[:-1]) > 1000

    asyncio.run(run())


def test_a_place_that_was_searched_for_is_remembered() -> None:
    async def run() -> None:
        rig = Rig()
        await fill(await rig.open(), 300)
        log = await rig.restart()
        rig.memory_disk.calls.clear()
        for _ in range(5):
            log.read(150, 1 << 20, up_to_offset=300)
        assert rig.memory_disk.calls["read_at"] <= 2

    asyncio.run(run())


def test_a_read_begins_with_the_batch_that_holds_the_offset() -> None:
    async def run() -> None:
        log = await Rig().open()
        await append(log, batch_of([b"a"] * 10))
        await append(log, batch_of([b"b"] * 10))
        found = log.read(15, 1, up_to_offset=20)
        assert found is not None
        assert read_header(found.read()).base_offset == 10
        assert found.length == len(batch_of([b"b"] * 10))

    asyncio.run(run())


@pytest.mark.parametrize(("offset", "up_to"), [(20, 20), (10, 10), (5, 5), (0, 0)])
def test_nothing_below_the_limit_is_none(offset: int, up_to: int) -> None:
    async def run() -> None:
        log = await Rig().open()
        await append(log, batch_of([b"a"] * 10))
        await append(log, batch_of([b"b"] * 10))
        assert log.read(offset, 1000, up_to_offset=up_to) is None

    asyncio.run(run())


def test_a_read_stops_at_the_limit_also_in_an_old_segment() -> None:
    async def run() -> None:
        log = await Rig(LogConfig(segment_bytes=500)).open()
        await fill(log, 30)
        assert len(log.segments) > 3
        for offset in range(29):
            for up_to in range(offset + 1, 31):
                found = log.read(offset, 1 << 20, up_to_offset=up_to)
                assert found is not None
                assert last_offset_of(found.read()) < up_to

    asyncio.run(run())


def test_segments_roll_by_size() -> None:
    async def run() -> None:
        size = len(batch_of([b"v" * 20]))
        log = await Rig(LogConfig(segment_bytes=3 * size)).open()
        await fill(log, 3)
        assert not log.must_roll(0, START_MS)
        assert log.must_roll(1, START_MS)
        await fill(log, 4)
        assert [segment.base_offset for segment in log.segments] == [0, 3, 6]

    asyncio.run(run())


def test_segments_roll_by_the_time_of_their_records() -> None:
    async def run() -> None:
        log = await Rig(LogConfig(segment_ms=1000)).open()
        assert not log.must_roll(100, START_MS + 10**9)
        await append(log, batch_of([b"a"], timestamp=START_MS))
        assert not log.must_roll(100, START_MS + 1000)
        assert log.must_roll(100, START_MS + 1001)

    asyncio.run(run())


def test_segments_without_timestamps_roll_by_the_clock() -> None:
    async def run() -> None:
        rig = Rig(LogConfig(segment_ms=1000))
        log = await rig.open()
        await append(log, batch_of([b"a"], timestamp=-1))
        rig.clock.advance(1000)
        assert not log.must_roll(100, -1)
        rig.clock.advance(1)
        assert log.must_roll(100, -1)

    asyncio.run(run())


def test_jitter_rolls_earlier_but_not_later() -> None:
    async def run() -> None:
        log = await Rig(LogConfig(segment_ms=1000, segment_jitter_ms=400)).open()
        rolls_at = set()
        for _ in range(30):
            await append(log, batch_of([b"a"], timestamp=START_MS))
            rolls_at.add(next(ms for ms in range(2000) if log.must_roll(1, START_MS + ms)))
            await log.roll()
        assert len(rolls_at) > 5
        assert 601 < min(rolls_at) <= max(rolls_at) <= 1001

    asyncio.run(run())


def test_a_full_index_rolls() -> None:
    async def run() -> None:
        log = await Rig(LogConfig(index_interval_bytes=0, segment_index_bytes=5 * 12)).open()
        await fill(log, 30)
        # Four of the five time entries are for use, and a segment's first batch has none.
        assert [segment.base_offset for segment in log.segments] == [0, 5, 10, 15, 20, 25]

    asyncio.run(run())


def test_offsets_that_do_not_fit_roll() -> None:
    async def run() -> None:
        log = await Rig().open()
        await fill(log, 1)
        assert not log.must_roll(100, START_MS, MAX_RELATIVE_OFFSET - 1)
        assert log.must_roll(100, START_MS, MAX_RELATIVE_OFFSET)

    asyncio.run(run())


def test_rolling_an_empty_segment_does_nothing() -> None:
    async def run() -> None:
        log = await Rig().open()
        await log.roll()
        await fill(log, 1)
        await log.roll()
        await log.roll()
        assert [segment.base_offset for segment in log.segments] == [0, 1]

    asyncio.run(run())


def test_everybody_waits_for_the_same_roll_and_goes_on_in_order() -> None:
    async def run() -> None:
        log = await Rig(LogConfig(segment_bytes=250)).open()
        await fill(log, 2)
        order: list[int] = []

        async def produce(number: int) -> None:
            info = await append(log, batch_of([b"v" * 20]))
            assert info.first_offset == 2 + number
            order.append(number)

        await asyncio.gather(*(produce(number) for number in range(2)))
        assert order == [0, 1]
        assert [segment.base_offset for segment in log.segments] == [0, 2]

    asyncio.run(run())


def test_nobody_may_append_while_a_roll_is_under_way() -> None:
    async def run() -> None:
        log = await Rig().open()
        await fill(log, 2)
        assert not log.must_roll(1, START_MS)
        roll = asyncio.ensure_future(log.roll())
        await asyncio.sleep(0)
        assert log.must_roll(1, START_MS)
        await roll
        assert not log.must_roll(1, START_MS)

    asyncio.run(run())


def test_a_batch_larger_than_a_segment_is_refused() -> None:
    async def run() -> None:
        log = await Rig(LogConfig(segment_bytes=100)).open()
        with pytest.raises(KafkaError) as caught:
            await append(log, batch_of([b"v" * 100]))
        assert caught.value.code == ErrorCode.RECORD_LIST_TOO_LARGE

    asyncio.run(run())


def test_a_full_disk_refuses_and_goes_on_when_there_is_room() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await fill(log, 2)
        rig.memory_disk.fail("append", errno.ENOSPC)
        with pytest.raises(KafkaError) as caught:
            await append(log, batch_of([b"x"], producer_id=5, producer_epoch=0, base_sequence=0), leader_epoch=1)
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        assert log.log_end_offset == 2
        assert not log.producer_state.producers
        assert log.leader_epochs.latest_epoch == 0
        assert (await append(log, batch_of([b"y"]))).first_offset == 2
        assert len(read_records(read_all(log))) == 3

    asyncio.run(run())


def test_a_failing_disk_takes_the_directory_out_of_use() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await fill(log, 2)
        rig.memory_disk.fail("append", errno.EIO)
        for _ in range(2):
            with pytest.raises(KafkaError) as caught:
                await append(log, batch_of([b"x"]))
            assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        with pytest.raises(KafkaError) as caught:
            log.read(0, 100, up_to_offset=2)
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        assert rig.directory.failure is not None

    asyncio.run(run())


def test_a_closed_log_says_so() -> None:
    async def run() -> None:
        log = await Rig().open()
        await fill(log, 2)
        records, headers = validate_for_append(batch_of([b"x"]), log.config, START_MS)
        await log.close()
        await log.close()
        for use in (lambda: log.append(records, headers, 0), lambda: log.read(0, 100, up_to_offset=2)):
            with pytest.raises(KafkaError, match="it is closed"):
                use()
        with pytest.raises(KafkaError, match="it is closed"):
            await log.roll()

    asyncio.run(run())


def test_an_index_that_points_nowhere_is_not_believed() -> None:
    async def run() -> None:
        rig = Rig(LogConfig(segment_bytes=5000, index_interval_bytes=100))
        await fill(await rig.open(), 100)
        log = await rig.restart()
        segment = log.segments[0]
        offsets = segment.indexes().offsets
        for slot in range(len(offsets)):
            offsets.positions[slot] += 1
        expected = {offset: offset for offset in range(10, 40)}
        found = {}
        for offset in expected:
            piece = log.read(offset, 1, up_to_offset=100)
            assert piece is not None
            found[offset] = read_header(piece.read()).base_offset
        assert found == expected

    asyncio.run(run())


def test_damaged_records_are_reported_and_the_rest_goes_on() -> None:
    async def run() -> None:
        rig = Rig(LogConfig(segment_bytes=500))
        await fill(await rig.open(), 20)
        log = await rig.restart()
        size_bytes = read_header(log.segments[0].file.read_at(0, 61)).size_bytes
        log.segments[0].file.write_at(size_bytes, bytes(30))
        with pytest.raises(KafkaError) as caught:
            log.read(1, 100, up_to_offset=20)
        assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
        for offset in (0, *range(2, 20)):
            found = log.read(offset, size_bytes, up_to_offset=20)
            assert found is not None
            assert read_header(found.read()).base_offset == offset
        assert (await append(log, batch_of([b"x"]))).first_offset == 20

    asyncio.run(run())


def test_a_changed_config_is_used_from_now_on() -> None:
    async def run() -> None:
        log = await Rig().open()
        await fill(log, 3)
        assert not log.must_roll(100, START_MS)
        log.update_config(LogConfig(segment_bytes=300, segment_ms=1))
        assert log.must_roll(100, START_MS)
        assert log.must_roll(1, START_MS + 2)

    asyncio.run(run())


def test_search_by_time_starts_at_the_log_start() -> None:
    async def run() -> None:
        log = await Rig().open()
        await append(log, batch_of([b"v"] * 3, timestamps=[START_MS, START_MS + 9, START_MS + 5]))
        await append(log, batch_of([b"v"], timestamp=START_MS + 1), leader_epoch=2)
        assert await log.offset_for_timestamp(START_MS + 6) == (1, START_MS + 9, 0)
        log.log_start_offset = 2
        assert await log.offset_for_timestamp(START_MS) == (2, START_MS + 5, 0)
        log.log_start_offset = 3
        assert await log.offset_for_timestamp(START_MS) == (3, START_MS + 1, 2)
        assert await log.offset_for_timestamp(START_MS + 10) is None
        assert await log.offset_of_max_timestamp() == (1, START_MS + 9, 0)

    asyncio.run(run())


def test_records_that_do_not_read_are_answered_for_by_their_header() -> None:
    async def run() -> None:
        log = await Rig().open()
        batch = batch_of([b"v" * 30] * 2, timestamp=START_MS)
        batch[61] = 0x7F
        batch[17:21] = crc32c(batch[21:]).to_bytes(4, "big")
        await append(log, batch)
        assert await log.offset_for_timestamp(START_MS - 5) == (0, START_MS, 0)
        assert await log.offset_of_max_timestamp() == (1, START_MS, 0)

    asyncio.run(run())
