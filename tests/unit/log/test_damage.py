"""Bytes that changed on the disk: what was in them is lost, what is around them is not, and the log says which."""

import asyncio
import logging
import struct

import pytest
from tests.unit.log.support import START_MS, TOPIC_ID, Rig, append, batch_of, read_all

from ottla.log.config import LogConfig
from ottla.log.damage import find_next_batch, scan_readable
from ottla.log.log import Log
from ottla.log.rewriting import rewrite_unflushed
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.records import HEADER_BYTES, read_header, read_records

ROOMY = LogConfig(segment_bytes=100_000, index_interval_bytes=150)
BATCHES = 12
BAD = 5
FIELDS = {
    "base offset, higher": (0, 3),
    "base offset, lower": (0, -3),
    "length, a little": (8, 7),
    "length, shorter": (8, -5),
    "length, into a later one": (8, 250),
    "length, beyond the file": (8, 1_000_000),
    "magic": (16, 1),
    "crc": (17, 1),
    "last offset delta": (23, 2),
    "max timestamp": (35, 9_000_000),
    "record": (HEADER_BYTES + 3, 1),
}
WIDTHS = {0: ">q", 8: ">i", 16: ">b", 17: ">I", 23: ">i", 35: ">q", HEADER_BYTES + 3: ">b"}


async def fill(log: Log, count: int = BATCHES) -> None:
    for number in range(count):
        await append(log, batch_of([b"%03d" % number + b"v" * 30], timestamp=START_MS + number))


def log_file(rig: Rig) -> str:
    return f"{rig.log_path}/{0:020d}.log"


def size_of_a_batch(rig: Rig) -> int:
    return read_header(rig.disk.read(log_file(rig))).size_bytes


def spoil(rig: Rig, number: int, field: str) -> None:
    """Change one field of one batch."""
    place, change = FIELDS[field]
    file = rig.disk.open(log_file(rig))
    position = number * size_of_a_batch(rig) + place
    width = struct.calcsize(WIDTHS[place])
    (value,) = struct.unpack(WIDTHS[place], file.read_at(position, width))
    file.write_at(position, struct.pack(WIDTHS[place], value + change))
    file.sync()


async def stop(rig: Rig) -> None:
    await rig.manager.shutdown()


async def flush_and_kill(rig: Rig) -> None:
    await rig.log.flush()
    await rig.manager.checkpoint_recovery_points()
    rig.memory_disk.crash(lambda limit: 1)


async def kill(rig: Rig) -> None:
    rig.memory_disk.crash(lambda limit: 1)


def values_from(log: Log, offset: int) -> list[bytes | None]:
    """What a reader gets who begins there; the first batch only."""
    found = log.read(offset, 1, up_to_offset=log.log_end_offset)
    assert found is not None
    return [record.value for record in read_records(found.read())]


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("end", [stop, flush_and_kill])
def test_batches_around_one_that_was_stored_and_damaged_stay(end: object, field: str) -> None:
    async def run() -> None:
        rig = Rig(ROOMY)
        await fill(await rig.open())
        assert callable(end)
        await end(rig)
        spoil(rig, BAD, field)
        log = await rig.open()
        assert log.log_end_offset == BATCHES
        for offset in {*range(BATCHES)} - {BAD}:
            assert values_from(log, offset) == [b"%03d" % offset + b"v" * 30]
        assert await log.offset_for_timestamp(START_MS + BAD + 1) == (BAD + 1, START_MS + BAD + 1, 0)
        assert (await append(log, batch_of([b"next"]))).first_offset == BATCHES
        log = await rig.restart()
        assert values_from(log, BATCHES) == [b"next"]

    asyncio.run(run())


def test_what_was_stored_and_damaged_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        rig = Rig(ROOMY)
        await fill(await rig.open())
        await flush_and_kill(rig)
        spoil(rig, BAD, "length, a little")
        size_bytes = size_of_a_batch(rig)
        with caplog.at_level(logging.WARNING):
            await rig.open()
        assert rig.directory.damaged_bytes == size_bytes
        assert rig.directory.cut_bytes == 0
        said = (
            f"{log_file(rig)}: {size_bytes} bytes at {BAD * size_bytes}, from offset {BAD} to offset {BAD}, are damaged"
        )
        assert said in caplog.text

    asyncio.run(run())


@pytest.mark.parametrize("field", ["length, a little", "magic", "crc", "record"])
def test_what_was_never_flushed_ends_the_log_and_is_told(caplog: pytest.LogCaptureFixture, field: str) -> None:
    async def run() -> None:
        rig = Rig(ROOMY)
        await fill(await rig.open())
        await kill(rig)
        spoil(rig, BAD, field)
        size_bytes = size_of_a_batch(rig)
        with caplog.at_level(logging.WARNING):
            log = await rig.open()
        assert log.log_end_offset == BAD
        assert rig.directory.cut_bytes == (BATCHES - BAD) * size_bytes
        assert f"from offset {BAD} to the end, were cut off" in caplog.text

    asyncio.run(run())


def test_the_last_batch_keeps_its_offset_after_a_clean_stop() -> None:
    """As with Kafka: nobody may get another record under the offset of one that was acknowledged."""

    async def run() -> None:
        rig = Rig(ROOMY)
        await fill(await rig.open())
        await rig.manager.shutdown()
        spoil(rig, BATCHES - 1, "record")
        log = await rig.open()
        assert log.log_end_offset == BATCHES
        assert (await append(log, batch_of([b"next"]))).first_offset == BATCHES

    asyncio.run(run())


@pytest.mark.parametrize("tail", [b"x", bytes(500), b"\xff" * 70])
def test_what_was_added_to_the_end_is_cut_off(tail: bytes) -> None:
    async def run() -> None:
        rig = Rig(ROOMY)
        await fill(await rig.open())
        content = read_all(rig.log)
        await rig.manager.shutdown()
        rig.disk.open(log_file(rig)).append([tail])
        log = await rig.open()
        assert (log.log_end_offset, read_all(log)) == (BATCHES, content)
        assert rig.directory.cut_bytes == len(tail)

    asyncio.run(run())


def test_batches_inside_of_values_are_not_taken_for_batches() -> None:
    async def run() -> None:
        rig = Rig(ROOMY)
        log = await rig.open()
        await fill(log, 3)
        inner = bytearray(batch_of([b"inside"]))
        inner[0:8] = struct.pack(">q", 7)
        await append(log, batch_of([bytes(inner)]))
        await fill(log, 3)
        await log.flush()
        await rig.manager.checkpoint_recovery_points()
        await kill(rig)
        position = 3 * size_of_a_batch(rig)
        rig.disk.open(log_file(rig)).write_at(position + HEADER_BYTES, b"?")
        log = await rig.open()
        assert log.log_end_offset == 7
        assert values_from(log, 4) == [b"000" + b"v" * 30]

    asyncio.run(run())


def test_the_next_batch_is_found_across_pieces_of_the_file() -> None:
    async def run() -> None:
        rig = Rig(LogConfig(segment_bytes=10_000_000, max_message_bytes=5_000_000))
        log = await rig.open()
        await append(log, batch_of([bytes(3_000_000)]))
        await append(log, batch_of([b"after"]))
        file = log.segments[0].file
        found = find_next_batch(file, 1, file.size, 1)
        assert found is not None
        assert (found[0], found[1].base_offset) == (read_header(file.read_at(0, 61)).size_bytes, 1)
        assert find_next_batch(file, found[0] + 1, file.size, 1) is None
        assert [header.base_offset for _, header in scan_readable(file, 0, file.size, 0)] == [0, 1]

    asyncio.run(run())


def test_a_wrong_index_entry_hides_nothing() -> None:
    async def run() -> None:
        rig = Rig(ROOMY)
        await fill(await rig.open(), 40)
        await rig.log.roll()
        await rig.manager.shutdown()
        path = f"{rig.log_path}/{0:020d}.index"
        entries = len(rig.disk.read(path)) // 8
        assert entries > 4
        for number in range(1, entries - 1):
            file = rig.disk.open(path)
            (offset,) = struct.unpack(">i", file.read_at(8 * number, 4))
            file.write_at(8 * number, struct.pack(">i", max(offset - 7, 0)))
        log = await rig.open()
        assert [values_from(log, offset)[0] for offset in range(40)] == [b"%03d" % n + b"v" * 30 for n in range(40)]

    asyncio.run(run())


def test_small_files_that_do_not_read_are_rebuilt(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        rig = Rig(ROOMY)
        log = await rig.open()
        for epoch in (0, 3, 8):
            await append(log, batch_of([b"v"]), leader_epoch=epoch)
        epochs = log.leader_epochs.entries()
        await rig.manager.shutdown()
        for name in ("leader-epoch-checkpoint", "partition.metadata"):
            rig.disk.write_atomically(f"{rig.log_path}/{name}", b"\xff\x00nonsense")
        log = await rig.open()
        assert log.leader_epochs.entries() == epochs
        assert log.topic_id == TOPIC_ID
        assert "leader-epoch-checkpoint" in caplog.text
        assert "partition.metadata" in caplog.text

    asyncio.run(run())


def test_what_may_not_be_on_the_device_is_written_again() -> None:
    """After a sync that failed, a later one may succeed without having written anything."""

    async def run() -> None:
        rig = Rig(LogConfig(segment_bytes=400))
        log = await rig.open()
        await fill(log, 4)
        await log.flush()
        await rig.manager.checkpoint_recovery_points()
        await fill(log, 8)
        content = read_all(log)
        await kill(rig)
        log = await rig.open()
        first_unflushed = log.recovery_point
        assert 0 < first_unflushed < log.log_end_offset
        rig.memory_disk.calls.clear()
        await rewrite_unflushed(log, rig.executor)
        rewritten = [segment for segment in log.segments if segment.base_offset >= first_unflushed]
        assert rig.memory_disk.calls["write_at"] >= len(rewritten) > 1
        assert read_all(log) == content
        await log.flush()
        rig.memory_disk.calls.clear()
        await rewrite_unflushed(log, rig.executor)
        assert not rig.memory_disk.calls["write_at"]

    asyncio.run(run())


def test_a_file_in_the_way_is_the_trouble_of_one_log() -> None:
    """Rolling is refused until it is gone; the directory stays in use."""

    async def run() -> None:
        rig = Rig(LogConfig(segment_bytes=200))
        log = await rig.open()
        await fill(log, 1)
        rig.disk.delete(f"{rig.log_path}/{0:020d}.index")
        rig.disk.make_directory(f"{rig.log_path}/{0:020d}.index")
        with pytest.raises(KafkaError) as caught:
            await log.roll()
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        assert rig.directory.failure is None
        rig.disk.delete_directory(f"{rig.log_path}/{0:020d}.index")
        await log.roll()
        await fill(log, 1)
        assert log.log_end_offset == 2

    asyncio.run(run())
