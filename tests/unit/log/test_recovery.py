"""Opening a log: after a clean stop, after a crash, and with files that are not as they should be."""

import asyncio
import struct

import pytest
from tests.unit.log.support import START_MS, TOPIC_ID, Rig, append, batch_of, read_all

from ottla.log.config import LogConfig
from ottla.log.log import Log
from ottla.records import read_header, read_records

SMALL = LogConfig(segment_bytes=400, index_interval_bytes=100)


def log_name(offset: int, suffix: str = ".log") -> str:
    return f"{offset:020d}{suffix}"


async def fill(log: Log, count: int, **settings: int) -> None:
    for number in range(count):
        await append(log, batch_of([b"v" * 20], timestamp=START_MS + number), **settings)


async def kill(rig: Rig) -> None:
    """Stop without closing anything; the disk keeps all bytes, as after a kill -9."""
    for _ in range(30):
        await asyncio.sleep(0)
    rig.memory_disk.crash(lambda limit: 1)


async def prepared(config: LogConfig = SMALL, count: int = 12) -> tuple[Rig, bytes]:
    """A log of several segments that was killed before anything was checkpointed."""
    rig = Rig(config)
    await fill(await rig.open(), count)
    content = read_all(rig.log)
    assert len(rig.log.segments) > 2
    await kill(rig)
    return rig, content


def patch(rig: Rig, name: str, position: int, data: bytes) -> None:
    rig.disk.open(f"{rig.log_path}/{name}").write_at(position, data)


def test_a_torn_tail_is_cut_off() -> None:
    async def run() -> None:
        rig, content = await prepared()
        name = [name for name in rig.disk.list_directory(rig.log_path) if name.endswith(".log")][-1]
        for tail in (b"x", b"\0" * 200, content[:70], batch_of([b"q"])[:-1]):
            rig.disk.open(f"{rig.log_path}/{name}").append([tail])
            log = await rig.open()
            assert read_all(log) == content
            assert log.log_end_offset == 12
            await kill(rig)

    asyncio.run(run())


def test_damage_in_an_old_segment_ends_the_log_there() -> None:
    async def run() -> None:
        rig, content = await prepared()
        size = len(content) // 12
        names = [name for name in rig.disk.list_directory(rig.log_path) if name.endswith(".log")]
        patch(rig, names[0], size + 70, b"?")
        log = await rig.open()
        assert log.log_end_offset == 1
        assert read_all(log) == content[:size]
        assert [segment.base_offset for segment in log.segments] == [0]
        assert [n for n in rig.disk.list_directory(rig.log_path) if n.endswith((".log", ".index", ".snapshot"))] == [
            log_name(0, ".index"),
            log_name(0),
        ]
        await fill(log, 12)
        assert len(read_records(read_all(log))) == 13

    asyncio.run(run())


def test_a_base_offset_that_goes_back_ends_the_log() -> None:
    async def run() -> None:
        rig, content = await prepared(LogConfig(segment_bytes=400))
        size = len(content) // 12
        patch(rig, log_name(0), size, struct.pack(">q", 0))
        assert (await rig.open()).log_end_offset == 1

    asyncio.run(run())


def test_an_offset_beyond_its_segment_does_not_keep_indexes_from_being_rebuilt() -> None:
    async def run() -> None:
        rig = Rig(LogConfig(segment_bytes=400, index_interval_bytes=0))
        await fill(await rig.open(), 12)
        size = len(read_all(rig.log)) // 12
        await rig.manager.shutdown()
        # No CRC covers the base offset, and without its index the segment is read again.
        patch(rig, log_name(0), size, struct.pack(">q", 2**40))
        rig.disk.delete(f"{rig.log_path}/{log_name(0, '.index')}")
        log = await rig.open()
        assert log.log_end_offset == 12
        found = log.read(0, size, up_to_offset=12)
        assert found is not None
        assert read_header(found.read()).base_offset == 0

    asyncio.run(run())


@pytest.mark.parametrize(("number", "offset", "end_offset"), [(4, 2**40, 4), (0, -1, 5), (4, 3, 4)])
def test_an_offset_that_is_not_the_segments_is_found_also_after_a_clean_stop(
    number: int, offset: int, end_offset: int
) -> None:
    async def run() -> None:
        rig = Rig(LogConfig(segment_bytes=4000, index_interval_bytes=4000))
        await fill(await rig.open(), 5)
        size = len(read_all(rig.log)) // 5
        await rig.manager.shutdown()
        patch(rig, log_name(0), number * size, struct.pack(">q", offset))
        log = await rig.open()
        assert log.log_end_offset == end_offset
        await fill(log, 1)
        assert (await rig.restart()).log_end_offset == end_offset + 1

    asyncio.run(run())


def test_only_what_may_not_be_on_the_device_is_scanned() -> None:
    async def run() -> None:
        rig = Rig(SMALL)
        log = await rig.open()
        await fill(log, 12)
        await log.flush()
        await fill(log, 6)
        bases = [segment.base_offset for segment in log.segments]
        await rig.manager.checkpoint_recovery_points()
        await kill(rig)
        # Damage below the recovery point is not looked for: these bytes were checked when they were stored.
        patch(rig, log_name(0), 70, b"?")
        log = await rig.open()
        assert log.log_end_offset == 18
        assert [segment.base_offset for segment in log.segments] == bases

    asyncio.run(run())


def test_a_clean_stop_needs_no_scan() -> None:
    async def run() -> None:
        rig = Rig(LogConfig(segment_bytes=4000, index_interval_bytes=100))
        await fill(await rig.open(), 20)
        await rig.manager.shutdown()
        patch(rig, log_name(0), 70, b"?")
        log = await rig.open()
        assert rig.directory.was_clean
        assert (log.log_end_offset, log.recovery_point) == (20, 20)
        assert not rig.disk.exists("/data/.kafka_cleanshutdown")

    asyncio.run(run())


def truncate_to_nothing(rig: Rig, path: str) -> None:
    rig.disk.open(path).truncate(0)


def drop_the_last_entries(rig: Rig, path: str) -> None:
    file = rig.disk.open(path)
    file.truncate(file.size // 24 // 2 * 24)


def point_at_something_else(rig: Rig, path: str) -> None:
    file = rig.disk.open(path)
    file.write_at(file.size - 8, struct.pack(">2i", 3, file.size))


def name_another_offset(rig: Rig, path: str) -> None:
    file = rig.disk.open(path)
    (relative_offset,) = struct.unpack(">i", file.read_at(file.size - 8, 4))
    file.write_at(file.size - 8, struct.pack(">i", relative_offset - 1))


@pytest.mark.parametrize(
    "damage",
    [
        lambda rig, path: rig.disk.delete(path),
        lambda rig, path: rig.disk.open(path).append([b"x"]),
        truncate_to_nothing,
        drop_the_last_entries,
        point_at_something_else,
        name_another_offset,
    ],
)
@pytest.mark.parametrize("base_offset", [0, 1])
def test_index_files_that_cannot_be_right_are_rebuilt_after_a_clean_stop(damage: object, base_offset: int) -> None:
    async def run() -> None:
        config = LogConfig(segment_bytes=6000, index_interval_bytes=100, max_message_bytes=100)
        rig = Rig(config)
        await fill(await rig.open(), 120)
        bases = [segment.base_offset for segment in rig.log.segments]
        await rig.manager.shutdown()
        path = f"{rig.log_path}/{log_name(bases[base_offset], '.index')}"
        expected = rig.disk.read(path)
        assert len(expected) >= 200
        assert callable(damage)
        damage(rig, path)
        log = await rig.open()
        assert rig.disk.read(path) == expected
        assert log.log_end_offset == 120

    asyncio.run(run())


def test_a_missing_time_index_is_rebuilt() -> None:
    async def run() -> None:
        rig = Rig(SMALL)
        await fill(await rig.open(), 12)
        await rig.manager.shutdown()
        path = f"{rig.log_path}/{log_name(0, '.timeindex')}"
        expected = rig.disk.read(path)
        assert expected
        rig.disk.delete(path)
        await rig.open()
        assert rig.disk.read(path) == expected

    asyncio.run(run())


def test_the_largest_timestamp_survives_a_restart() -> None:
    async def run() -> None:
        rig = Rig(LogConfig(segment_bytes=1000, index_interval_bytes=100))
        log = await rig.open()
        await fill(log, 9)
        await append(log, batch_of([b"late"], timestamp=START_MS + 5000))
        await log.roll()
        await fill(log, 1)
        log = await rig.restart()
        assert await log.offset_for_timestamp(START_MS + 4000) == (9, START_MS + 5000, 0)
        assert await log.offset_of_max_timestamp() == (9, START_MS + 5000, 0)

    asyncio.run(run())


def test_the_segments_age_survives_a_restart() -> None:
    async def run() -> None:
        rig = Rig(LogConfig(segment_ms=1000, index_interval_bytes=0))
        await fill(await rig.open(), 5)
        log = await rig.restart()
        assert not log.must_roll(10, START_MS + 1000)
        assert log.must_roll(10, START_MS + 1001)

    asyncio.run(run())


def test_the_log_start_offset_is_kept() -> None:
    async def run() -> None:
        rig = Rig(SMALL)
        log = await rig.open()
        await fill(log, 12)
        log.log_start_offset = 2
        log.high_watermark = 9
        log = await rig.restart()
        assert (log.log_start_offset, log.high_watermark) == (2, 9)

    asyncio.run(run())


def test_a_log_that_ends_before_its_start_begins_anew_there() -> None:
    async def run() -> None:
        rig = Rig(SMALL)
        log = await rig.open()
        await fill(log, 3)
        log.log_start_offset = 50
        await rig.manager.checkpoint_log_start_offsets()
        await kill(rig)
        log = await rig.open()
        assert (log.log_start_offset, log.log_end_offset) == (50, 50)
        assert (await append(log, batch_of([b"x"]))).first_offset == 50
        assert read_header(read_all(log)).base_offset == 50

    asyncio.run(run())


def test_leftovers_are_removed_and_strangers_left_alone() -> None:
    async def run() -> None:
        rig, content = await prepared()
        for name in (log_name(99, ".index"), log_name(0, ".log.deleted"), log_name(7, ".log.cleaned"), "x.tmp"):
            rig.disk.write_atomically(f"{rig.log_path}/{name}", b"junk")
        rig.disk.write_atomically(f"{rig.log_path}/notes.txt", b"mine")
        log = await rig.open()
        assert read_all(log) == content
        names = rig.disk.list_directory(rig.log_path)
        assert "notes.txt" in names
        assert not [name for name in names if name.endswith((".deleted", ".cleaned", ".tmp")) or "99" in name]

    asyncio.run(run())


def test_the_topic_id_is_read_back() -> None:
    async def run() -> None:
        rig = Rig(SMALL)
        await rig.open()
        log = await rig.restart()
        assert log.topic_id == TOPIC_ID
        assert rig.disk.read(f"{rig.log_path}/partition.metadata") == b"version: 0\ntopic_id: AQIDBAUGBwgJCgsMDQ4PEA"

    asyncio.run(run())
