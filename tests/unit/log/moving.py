"""A broker's logs in two directories on a disk in memory, for tests that move one of them."""

from collections.abc import Callable

import pytest
from tests.unit.log.compacting import keyed_batch
from tests.unit.log.support import NODE_ID, START_MS, TOPIC, TOPIC_ID, append, read_all

from ottla.log import moving
from ottla.log.cleaner import CleanerSettings, LogCleaner
from ottla.log.config import LogConfig
from ottla.log.directory import LogDirectory
from ottla.log.files import TopicPartition
from ottla.log.log import Log
from ottla.log.manager import LogManager
from ottla.log.moves import Switch
from ottla.log.segment import Segment
from ottla.records import Record, read_records
from ottla.runtime.workbench import LocalWorkbench
from ottla.testing import InlineExecutor, ManualClock, MemoryDisk, SeededIds

ONE, TWO, THREE = "/one", "/two", "/three"
PARTITION = TopicPartition(TOPIC, 0)


async def hold(switch: Switch) -> tuple[Segment, ...] | None:
    """Nobody else appends in these tests while a log changes places."""
    return await switch()


class MovingRig:
    """One partition, which is in the first directory unless it is found elsewhere."""

    def __init__(self, disk: MemoryDisk | None = None, paths: tuple[str, ...] = (ONE, TWO), **config: object) -> None:
        self.clock = ManualClock(START_MS)
        self.disk = disk or MemoryDisk(self.clock.now_ms)
        self.ids = SeededIds(1)
        self.executor = InlineExecutor()
        self.paths = paths
        values: dict[str, object] = {
            "segment_bytes": 700,
            "index_interval_bytes": 100,
            "file_delete_delay_ms": 0,
            **config,
        }
        self.config = LogConfig(**values)  # type: ignore[arg-type]

    async def open(self) -> Log:
        self.directories = [LogDirectory(self.disk, path) for path in self.paths]
        cluster_id = None
        for directory in self.directories:
            directory.open(NODE_ID, self.ids, cluster_id)
            cluster_id = directory.cluster_id
        self.manager = LogManager(
            self.directories, disk=self.disk, clock=self.clock, executor=self.executor, ids=self.ids
        )
        await self.manager.load(lambda topic: self.config)
        for directory in self.directories:
            if directory.failure is not None:
                raise directory.failure
        self.log = await self.manager.create_log(TOPIC, 0, TOPIC_ID, self.config)
        self.log.high_watermark = self.log.log_end_offset
        self.cleaner = LogCleaner(
            self.manager,
            disk=self.disk,
            clock=self.clock,
            executor=self.executor,
            workbench=LocalWorkbench(self.executor, self.disk),
            ids=self.ids,
            settings=CleanerSettings(dedupe_buffer_bytes=1 << 20),
        )
        await self.cleaner.read_checkpoints()
        return self.log

    async def restart(self) -> Log:
        await self.manager.shutdown()
        return await self.open()

    async def crash(self, below: Callable[[int], int]) -> Log:
        self.disk.crash(below)
        return await self.open()

    async def begin(self, path: str = TWO) -> None:
        """Begin a move; `finish` waits for its end."""
        directory = self.manager.directory_at(path)
        assert directory is not None
        await self.manager.moves.begin(self.log, directory, hold)

    async def resume(self) -> None:
        await self.manager.moves.resume(self.log, hold)

    async def finish(self) -> None:
        for task in list(self.manager.moves._tasks.values()):
            await task

    async def move(self, path: str = TWO) -> None:
        await self.begin(path)
        await self.finish()

    async def write(
        self, *pairs: tuple[bytes, bytes | None], producer_id: int = -1, sequence: int = -1, leader_epoch: int = 0
    ) -> int:
        batch = keyed_batch(pairs, self.clock.now_ms(), producer_id=producer_id, sequence=sequence)
        info = await append(self.log, batch, leader_epoch=leader_epoch, now_ms=self.clock.now_ms())
        self.log.high_watermark = self.log.log_end_offset
        return info.first_offset

    def records(self) -> list[Record]:
        return read_records(read_all(self.log))

    def offsets(self) -> list[int]:
        return [record.offset for record in self.records()]

    def place(self) -> str:
        return self.log.directory.path

    def names(self, path: str) -> list[str]:
        """Directories in a log directory."""
        names = self.disk.list_directory(path)
        return [name for name in names if self.disk.is_directory(f"{path}/{name}")]


async def fill(rig: MovingRig, count: int = 12) -> None:
    first = rig.log.log_end_offset
    for number in range(first, first + count):
        await rig.write((b"k%d" % (number % 3), b"%d" % number + b"x" * 80))


def use_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a small log takes many of them."""
    monkeypatch.setattr(moving, "PIECE_BYTES", 200)
    monkeypatch.setattr(moving, "LAST_BYTES", 800)
    monkeypatch.setattr(moving, "SYNC_BYTES", 1000)
