"""A consumer as far as its group sees it: it notes what it is told, and can be slow or fail."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from ottla.client.config import ConsumerConfig, resolve
from ottla.client.connections import Connections
from ottla.client.errors import OttlaError
from ottla.client.membership import membership_of
from ottla.client.membership.interface import Membership, Topics
from ottla.client.types import TopicPartition
from ottla.runtime.real import SystemClock, SystemIds

PATIENCE_SECONDS = 60.0
Event = tuple[str, frozenset[TopicPartition]]


class Reader:
    """`Rebalancing` that keeps what happened, in order. `gate` holds back `revoke` and `lose` while it is closed."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.failures: list[OttlaError] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.raises: Exception | None = None

    async def revoke(self, partitions: frozenset[TopicPartition]) -> None:
        await self._note("revoke", partitions)

    async def lose(self, partitions: frozenset[TopicPartition]) -> None:
        await self._note("lose", partitions)

    async def assign(self, partitions: frozenset[TopicPartition]) -> None:
        self.events.append(("assign", partitions))

    async def _note(self, name: str, partitions: frozenset[TopicPartition]) -> None:
        await self.gate.wait()
        self.events.append((name, partitions))
        if self.raises is not None:
            raise self.raises

    def failed(self, error: OttlaError) -> None:
        self.failures.append(error)


class Joined:
    """A membership that runs, and its reader."""

    def __init__(self, membership: Membership, reader: Reader, network: Connections) -> None:
        self.membership = membership
        self.reader = reader
        self.network = network
        self.task = asyncio.create_task(membership.run())

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return self.membership.assignment

    @property
    def numbers(self) -> list[int]:
        return sorted(partition.partition for partition in self.assignment)

    async def crash(self) -> None:
        """As if the process had died: nobody is told."""
        self.task.cancel()
        await asyncio.wait([self.task])
        await self.network.close()

    async def close(self) -> None:
        await self.membership.leave(PATIENCE_SECONDS)
        await asyncio.wait_for(self.task, PATIENCE_SECONDS)
        await self.network.close()


@asynccontextmanager
async def joined(
    address: str, group_id: str, topics: Topics | None = None, **settings: object
) -> AsyncIterator[Joined]:
    """A member of the group for as long as the block runs; it leaves in good order unless it crashed."""
    config = resolve(ConsumerConfig, address, keywords={"group_id": group_id, **settings})
    network = Connections(config)
    network.start()
    reader = Reader()
    joined = Joined(membership_of(network, config, reader, SystemClock(), SystemIds()), reader, network)
    if topics is not None:
        joined.membership.subscribe(topics)
    try:
        yield joined
    finally:
        if not joined.task.done():
            await joined.close()
        await network.close()


async def until(is_true: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until something is true that other tasks make true."""
    async with asyncio.timeout(seconds):
        while not is_true():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0.005)


def owns_all(count: int, *members: Joined) -> Callable[[], bool]:
    """Whether these have all partitions of a topic between them, each has some, and nobody has another's."""

    def is_true() -> bool:
        numbers = [number for member in members for number in member.numbers]
        return sorted(numbers) == list(range(count)) and all(member.numbers for member in members)

    return is_true
