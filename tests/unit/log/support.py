"""A log on a disk in memory, for tests: opened, closed, crashed and opened again."""

import asyncio
from collections.abc import Callable

from ottla.log.append_info import AppendInfo
from ottla.log.config import LogConfig
from ottla.log.directory import LogDirectory
from ottla.log.log import Log
from ottla.log.manager import LogManager
from ottla.log.manager_settings import LogManagerSettings
from ottla.log.own_batch import own_batch
from ottla.log.validation import validate_for_append
from ottla.log.verification import UNVERIFIED
from ottla.records import (
    Codec,
    ControlType,
    EndTransactionMarker,
    Record,
    build_batch,
    build_end_transaction,
    inspect_batches,
)
from ottla.runtime import Disk, Executor
from ottla.testing import InlineExecutor, ManualClock, MemoryDisk, SeededIds

TOPIC = "events"
TOPIC_ID = bytes(range(1, 17))
NODE_ID = 1
START_MS = 1_700_000_000_000


class Rig:
    """One broker's logs in one directory, with one partition."""

    def __init__(
        self,
        config: LogConfig | None = None,
        *,
        disk: Disk | None = None,
        path: str = "/data",
        executor: Executor | None = None,
    ) -> None:
        self.clock = ManualClock(START_MS)
        self.memory_disk = MemoryDisk(self.clock.now_ms)
        self.disk: Disk = disk or self.memory_disk
        self.ids = SeededIds(1)
        self.executor = executor or InlineExecutor()
        self.config = config or LogConfig()
        self.path = path
        self.index_cache_bytes = 1 << 20
        self.topic_id = TOPIC_ID

    async def open(self) -> Log:
        self.directory = LogDirectory(self.disk, self.path)
        self.directory.open(NODE_ID, self.ids)
        self.manager = LogManager(
            [self.directory],
            disk=self.disk,
            clock=self.clock,
            executor=self.executor,
            ids=self.ids,
            settings=LogManagerSettings(index_cache_bytes=self.index_cache_bytes),
        )
        await self.manager.load(lambda topic: self.config)
        if self.directory.failure is not None:
            raise self.directory.failure
        self.log = await self.manager.create_log(TOPIC, 0, self.topic_id, self.config)
        return self.log

    async def restart(self) -> Log:
        await self.manager.shutdown()
        return await self.open()

    async def crash(self, below: Callable[[int], int]) -> Log:
        """Stop without a word, lose what the disk may lose, and start again."""
        self.memory_disk.crash(below)
        return await self.open()

    @property
    def log_path(self) -> str:
        return f"{self.path}/{TOPIC}-0"


class TwoDirectories:
    """The logs of one broker that has two log directories."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self.clock = ManualClock(START_MS)
        self.ids = SeededIds(3)

    async def open(self, config: LogConfig | None = None) -> LogManager:
        self.directories = [LogDirectory(self.disk, path) for path in ("/one", "/two")]
        for directory in self.directories:
            directory.open(NODE_ID, self.ids)
        manager = LogManager(
            self.directories, disk=self.disk, clock=self.clock, executor=InlineExecutor(), ids=self.ids
        )
        await manager.load(lambda topic: config or LogConfig())
        return manager


def batch_of(
    values: list[bytes],
    *,
    timestamp: int = START_MS,
    timestamps: list[int] | None = None,
    key: bytes | None = None,
    codec: Codec = Codec.NONE,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
) -> memoryview:
    """A batch as a producer sends it."""
    records = [
        Record(timestamp=timestamps[number] if timestamps else timestamp, key=key, value=value)
        for number, value in enumerate(values)
    ]
    batch = build_batch(
        records,
        codec=codec,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
    )
    return memoryview(bytearray(batch))


async def append(log: Log, batch: memoryview, *, leader_epoch: int = 0, now_ms: int = START_MS) -> AppendInfo:
    """What a partition leader does with a batch. Transactions begin without a coordinator."""
    records, headers = validate_for_append(batch, log.config, now_ms)
    while log.must_roll(len(records), headers[0].max_timestamp, headers[0].record_count):
        await log.roll()
    return log.append(records, headers, leader_epoch, UNVERIFIED)


async def end_transaction(
    log: Log,
    producer_id: int,
    *,
    commit: bool,
    producer_epoch: int = 0,
    coordinator_epoch: int = 0,
    transaction_version: int = 0,
    leader_epoch: int = 0,
    timestamp: int = START_MS,
) -> AppendInfo:
    """What a partition leader does when the coordinator of a transaction has it ended."""
    marker = EndTransactionMarker(ControlType.COMMIT if commit else ControlType.ABORT, coordinator_epoch)
    batch = build_end_transaction(marker, producer_id=producer_id, producer_epoch=producer_epoch, timestamp=timestamp)
    records = memoryview(bytearray(batch))
    headers = inspect_batches(records)
    while log.must_roll(len(records), timestamp):
        await log.roll()
    return log.append(records, headers, leader_epoch, own_batch(records, headers[0], transaction_version))


async def until(condition: Callable[[], bool]) -> None:
    """Let everything else on the loop go on until the condition holds."""
    for _ in range(10_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("the condition never came true")


def read_all(log: Log, max_bytes: int = 1 << 20) -> bytes:
    """All batches of the log, read the way a consumer reads them."""
    pieces: list[bytes] = []
    offset = log.log_start_offset
    while (found := log.read(offset, max_bytes, up_to_offset=log.log_end_offset)) is not None:
        data = whole_batches(found.read())
        assert data, f"a whole batch expected at offset {offset}"
        pieces.append(data)
        next_offset = last_offset_of(data) + 1
        assert next_offset > offset
        offset = next_offset
    return b"".join(pieces)


def whole_batches(data: bytes) -> bytes:
    """Without the piece of a batch that a read may end with."""
    position = 0
    while position + 12 <= len(data):
        size = 12 + int.from_bytes(data[position + 8 : position + 12], "big")
        if position + size > len(data):
            break
        position += size
    return data[:position]


def last_offset_of(batches: bytes) -> int:
    position = last = 0
    while position < len(batches):
        base_offset = int.from_bytes(batches[position : position + 8], "big")
        last = base_offset + int.from_bytes(batches[position + 23 : position + 27], "big")
        position += 12 + int.from_bytes(batches[position + 8 : position + 12], "big")
    return last
