"""The same batches into Kafka's log and into ours: the same answers, and the same files byte for byte."""

from __future__ import annotations

import asyncio
import random
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from crc32c import crc32c
from tests.compat.log.oracle import KafkaLog
from tests.unit.log.support import START_MS, TOPIC_ID, Rig, append, batch_of, read_all

from ottla.log.config import LogConfig
from ottla.log.log import Log
from ottla.log.producer_snapshot import decode_snapshot
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.records import Codec
from ottla.runtime.real_disk import RealDisk

SETTINGS = {"internal_segment_bytes": 4000, "index_interval_bytes": 300, "segment_ms": 60_000}
CONFIG = LogConfig(segment_bytes=4000, index_interval_bytes=300, segment_ms=60_000)


def batches(seed: int, count: int) -> Iterator[tuple[bytes, int]]:
    """Batches of plain and idempotent producers with their leader epochs; some repeat, skip or go back."""
    dice = random.Random(seed)
    sequences = {11: 0, 12: 0}
    epochs = {11: 0, 12: 0}
    sent: dict[int, list[bytes]] = {11: [], 12: []}
    leader_epoch, now = 0, START_MS
    for _ in range(count):
        now += dice.randrange(-500, 3000)
        leader_epoch += dice.random() < 0.03
        size = dice.randrange(1, 5)
        values = [dice.randbytes(dice.randrange(60)) for _ in range(size)]
        timestamps = [now + dice.randrange(20) for _ in range(size)]
        codec = dice.choice(list(Codec))
        if dice.random() < 0.4:
            yield bytes(batch_of(values, timestamps=timestamps, codec=codec)), leader_epoch
            continue
        producer_id = dice.choice((11, 12))
        kind = dice.random()
        if kind < 0.1 and sent[producer_id]:
            yield dice.choice(sent[producer_id][-6:]), leader_epoch
            continue
        epoch, sequence = epochs[producer_id], sequences[producer_id]
        if kind < 0.2:
            epoch, sequence = epoch + dice.choice((-1, 0, 1)), dice.choice((0, sequence + 3))
        batch = bytes(
            batch_of(
                values, timestamps=timestamps, codec=codec,
                producer_id=producer_id, producer_epoch=max(epoch, 0), base_sequence=sequence,
            )
        )  # fmt: skip
        if kind >= 0.2:
            sequences[producer_id] = sequence + size
            sent[producer_id].append(batch)
        elif epoch == epochs[producer_id] + 1 and sequence == 0:
            epochs[producer_id], sequences[producer_id] = epoch, size
            sent[producer_id] = [batch]
        yield batch, leader_epoch


async def our_append(log: Log, batch: bytes, leader_epoch: int) -> tuple[str | None, list[str]]:
    try:
        info = await append(log, memoryview(bytearray(batch)), leader_epoch=leader_epoch)
    except KafkaError as error:
        return error.code.name, []
    return None, [str(info.first_offset), str(info.last_offset)]


def same_files(theirs: Path, ours: Path) -> None:
    def names(directory: Path) -> list[str]:
        return sorted(path.name for path in directory.iterdir())

    assert names(ours) == names(theirs)
    for name in names(theirs):
        expected, found = (theirs / name).read_bytes(), (ours / name).read_bytes()
        if name.endswith(".snapshot"):
            # Kafka writes the producers in the order of its hash table.
            assert snapshot(found) == snapshot(expected), name
        else:
            assert found == expected, name


def snapshot(data: bytes) -> list[tuple[object, ...]]:
    return sorted(
        (entry.producer_id, entry.epoch, entry.last_timestamp, entry.coordinator_epoch, *entry.batches)
        for entry in decode_snapshot(data)
    )


@pytest.mark.parametrize("seed", range(4))
def test_both_logs_answer_and_store_the_same(kafka_log: KafkaLog, tmp_path: Path, seed: int) -> None:
    theirs = tmp_path / "kafka" / "events-0"
    kafka_log.open(theirs, TOPIC_ID, clean=True, **SETTINGS)

    async def run() -> None:
        rig = Rig(CONFIG, disk=RealDisk(), path=str(tmp_path / "ottla"))
        log = await rig.open()
        outcomes = set()
        for batch, leader_epoch in batches(seed, 250):
            expected = kafka_log.append(batch, leader_epoch)
            found = await our_append(log, batch, leader_epoch)
            assert found == (expected.error, expected.words[: 0 if expected.error else 2])
            outcomes.add(found[0])
        assert {None, "OUT_OF_ORDER_SEQUENCE_NUMBER"} <= outcomes
        assert len(log.segments) > 3
        await same_reads(kafka_log, log, random.Random(seed))
        kafka_log.good("close")
        await rig.manager.shutdown()

    asyncio.run(run())
    same_files(theirs, tmp_path / "ottla" / "events-0")


async def same_reads(kafka_log: KafkaLog, log: Log, dice: random.Random) -> None:
    for _ in range(60):
        offset, max_bytes = dice.randrange(log.log_end_offset), dice.choice((0, 10, 200, 1000, 10_000))
        expected = kafka_log.read(offset, max_bytes, min_one_batch=True)
        found = log.read(offset, max_bytes, up_to_offset=log.log_end_offset)
        assert found is not None
        data = found.read()
        # Ours may end earlier, at the end of a batch, but not inside the first one.
        assert expected.startswith(data)
        assert len(data) >= min(len(expected), 12 + struct.unpack_from(">i", data, 8)[0])
    for _ in range(40):
        timestamp = START_MS + dice.randrange(-1000, 400_000)
        assert await log.offset_for_timestamp(timestamp) == kafka_log.by_time(timestamp)
    # -3 asks for the record with the largest timestamp.
    assert await log.offset_of_max_timestamp() == kafka_log.by_time(-3)


def write_ours(directory: Path, *, clean: bool) -> bytes:
    async def run() -> bytes:
        rig = Rig(CONFIG, disk=RealDisk(), path=str(directory))
        log = await rig.open()
        for batch, leader_epoch in batches(9, 120):
            await our_append(log, batch, leader_epoch)
        content = read_all(log)
        if clean:
            await rig.manager.shutdown()
        else:
            await log.flush()
            rig.directory.close()
            log.close_files()
        return content

    return asyncio.run(run())


@pytest.mark.parametrize("clean", [True, False])
def test_kafka_opens_our_directory(kafka_log: KafkaLog, tmp_path: Path, clean: bool) -> None:
    content = write_ours(tmp_path, clean=clean)
    _, end_offset = kafka_log.open(tmp_path / "events-0", TOPIC_ID, clean=clean, **SETTINGS)
    found, offset = b"", 0
    while offset < end_offset:
        piece = kafka_log.read(offset, 1, min_one_batch=True)
        base_offset, last_delta = struct.unpack_from(">q15xi", piece)
        found += piece
        offset = base_offset + last_delta + 1
    kafka_log.good("close")
    assert found == content


@pytest.mark.parametrize("clean", [True, False])
def test_we_open_kafkas_directory(kafka_log: KafkaLog, tmp_path: Path, clean: bool) -> None:
    theirs = tmp_path / "kafka" / "events-0"
    kafka_log.open(theirs, TOPIC_ID, clean=True, **SETTINGS)
    repeated = b""
    for batch, leader_epoch in batches(5, 150):
        if kafka_log.append(batch, leader_epoch).error is None and batch[43:51] == (11).to_bytes(8, "big"):
            repeated = batch
    ours = tmp_path / "ottla"
    if not clean:
        # As a killed broker leaves it: index files with unused room at their ends, no snapshot of the end.
        shutil.copytree(theirs, ours / "events-0")
    kafka_log.good("close")
    if clean:
        shutil.copytree(theirs, ours / "events-0")
        (ours / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":7}')

    async def run() -> None:
        rig = Rig(CONFIG, disk=RealDisk(), path=str(ours))
        log = await rig.open()
        assert rig.directory.last_broker_epoch == (7 if clean else -1)
        assert log.topic_id == TOPIC_ID
        assert read_all(log) == b"".join(path.read_bytes() for path in sorted(theirs.glob("*.log")))
        assert (await append(log, memoryview(bytearray(repeated)))).duplicate
        await rig.manager.shutdown()

    asyncio.run(run())
    same_files(theirs, ours / "events-0")


def mutations() -> dict[str, bytes]:
    """Batches that break one rule each."""
    good = bytes(batch_of([b"a", b"b"], key=b"k"))

    def with_field(fmt: str, position: int, value: int) -> bytes:
        changed = bytearray(good)
        struct.pack_into(fmt, changed, position, value)
        struct.pack_into(">I", changed, 17, crc32c(bytes(changed[21:])))
        return bytes(changed)

    return {
        "good": good,
        "base offset": with_field(">q", 0, 3),
        "wrong crc": good[:-1] + b"?",
        "count below offsets": with_field(">i", 57, 1),
        "no records": with_field(">i", 57, 0),
        "negative last delta": with_field(">i", 23, -2),
        "control": with_field(">h", 21, 0x20),
        "producer without sequence": with_field(">q", 43, 5),
        "far future": bytes(batch_of([b"x"], timestamp=2**45)),
        "two batches": good + good,
        "empty": b"",
        "too large": bytes(batch_of([b"x" * 3000])),
        "piece behind": good + good[:30],
        "impossible length": good[:8] + struct.pack(">i", 3) + good[12:],
    }


@pytest.mark.parametrize("name", mutations())
def test_both_refuse_the_same(kafka_log: KafkaLog, tmp_path: Path, name: str) -> None:
    batch = mutations()[name]
    kafka_log.open(tmp_path / "kafka" / "events-0", TOPIC_ID, clean=True, max_message_bytes=2000)
    expected = kafka_log.append(batch, 0)
    kafka_log.good("close")

    async def run() -> str | None:
        rig = Rig(LogConfig(max_message_bytes=2000))
        log = await rig.open()
        error, _ = await our_append(log, batch, 0)
        await rig.manager.shutdown()
        return error

    # Kafka's log takes an empty set without a word; its request handler refuses it, as ours does in one place.
    wanted = ErrorCode.INVALID_RECORD.name if name == "empty" else expected.error
    assert asyncio.run(run()) == wanted
