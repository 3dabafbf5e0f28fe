"""A partition on a disk in memory, with an executor that can be made to hold its work back."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ottla.cluster.image import PartitionImage
from ottla.log.append_info import AppendInfo
from ottla.log.config import LogConfig
from ottla.log.directory import LogDirectory
from ottla.log.manager import LogManager
from ottla.records import Record, build_batch, read_records
from ottla.replication.partition import Partition
from ottla.testing import ManualClock, MemoryDisk, SeededIds

Result = TypeVar("Result")

NODE_ID = 1
TOPIC_ID = bytes(range(1, 17))


class HoldingExecutor:
    """Does the work at once, or, while `holds`, when it is released; counts it."""

    def __init__(self) -> None:
        self.holds = False
        self.runs = 0
        self._held: list[Callable[[], None]] = []

    def run(self, work: Callable[..., Result], /, *args: object) -> Awaitable[Result]:
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

        def do() -> None:
            self.runs += 1
            try:
                future.set_result(work(*args))
            except Exception as error:
                future.set_exception(error)

        if self.holds:
            self._held.append(do)
        else:
            do()
        return future

    @property
    def holding(self) -> bool:
        return bool(self._held)

    def release(self) -> None:
        """Do what was held back; from now on work is done at once again."""
        self.holds = False
        held, self._held = self._held, []
        for do in held:
            do()


class Rig:
    """The logs of one broker. `disk` can be made to fail, the `executor` to wait."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.disk = MemoryDisk(self.clock.now_ms)
        self.executor = HoldingExecutor()
        ids = SeededIds(1)
        self.directory = LogDirectory(self.disk, "/data")
        self.directory.open(NODE_ID, ids)
        self.logs = LogManager([self.directory], disk=self.disk, clock=self.clock, executor=self.executor, ids=ids)

    async def partition(self, config: LogConfig | None = None, isr: tuple[int, ...] = (NODE_ID,)) -> Partition:
        """A partition that this broker leads."""
        log = await self.logs.create_log("topic", 0, TOPIC_ID, config or LogConfig())
        partition = Partition("topic", 0, log, NODE_ID, self.clock, self.executor)
        partition.apply(image(isr=isr))
        return partition


def image(leader: int = NODE_ID, epoch: int = 0, isr: tuple[int, ...] = (NODE_ID,)) -> PartitionImage:
    return PartitionImage(
        index=0, leader=leader, leader_epoch=epoch, replicas=(1, 2, 3), isr=isr, partition_epoch=epoch
    )


def batch(value: bytes, now_ms: int = 1_700_000_000_000) -> bytearray:
    return bytearray(build_batch([Record(0, now_ms, b"key", value, [])]))


def append(partition: Partition, value: bytes, acks: int = -1) -> AppendInfo | asyncio.Future[AppendInfo]:
    """Append from a buffer that is used again right away, as the server's is."""
    memory = batch(value)
    answer = partition.append(memoryview(memory), acks)
    memory[:] = bytes(len(memory))
    return answer


def appended(partition: Partition, value: bytes, acks: int = -1) -> AppendInfo:
    """Append where nothing has to be waited for."""
    answer = append(partition, value, acks)
    assert isinstance(answer, AppendInfo)
    return answer


def queued(partition: Partition, value: bytes) -> asyncio.Future[AppendInfo]:
    """Append where a roll has to be waited for."""
    answer = append(partition, value)
    assert isinstance(answer, asyncio.Future)
    return answer


def visible(partition: Partition) -> list[bytes | None]:
    """The values that a consumer can read, segment by segment."""
    found: list[bytes | None] = []
    while True:
        piece = partition.read(len(found), 1 << 20, min_one_batch=True)
        if piece is None:
            return found
        found += [record.value for record in read_records(piece.read())]


async def turns(count: int = 20) -> None:
    """Let everything happen that can happen without anybody's help."""
    for _ in range(count):
        await asyncio.sleep(0)
