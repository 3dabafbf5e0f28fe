"""The partitions of an internal topic that this broker leads, each loaded into a ledger.

    image applied -> follow -> leads one that is not here: load it beside the loop
                            -> leads one no more:          let go of it at once

Which partition is responsible for a key (a group, a transactional id) is Kafka's rule, so that every client and tool
that looks for it finds the same one.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Generic, TypeVar

from ottla.cluster.image import ClusterImage
from ottla.ledger.entries import RecordTypes
from ottla.ledger.ledger import RETRY_MS, Ledger, State
from ottla.ledger.machine import Machine
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.replication.manager import ReplicaManager
from ottla.replication.partition import Partition
from ottla.runtime import Clock, Executor

logger = logging.getLogger(__name__)

MachineType = TypeVar("MachineType", bound=Machine)

_MIN_INT32 = -(2**31)


@lru_cache(maxsize=4096)
def partition_for(key: str, partition_count: int) -> int:
    """The partition of an internal topic for a key: the absolute value of Java's hash of it, modulo."""
    number = 0
    data = key.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(data), 2):
        number = (31 * number + (data[position] << 8) + data[position + 1]) & 0xFFFFFFFF
    signed = number - 2**32 if number >= 2**31 else number
    return 0 if signed == _MIN_INT32 else abs(signed) % partition_count


def replication_factor(image: ClusterImage, wanted: int) -> int:
    """How many replicas an internal topic gets: a broker that is alone keeps one, whatever its settings say."""
    return 1 if len(image.active_brokers()) == 1 else wanted


class LedgerTopic(Generic[MachineType]):
    """`make_machine` is given the index of the partition and the ledger: its timers, and the way to write later."""

    def __init__(
        self,
        name: str,
        record_types: RecordTypes,
        make_machine: Callable[[int, Ledger[MachineType]], MachineType],
        replicas: ReplicaManager,
        clock: Clock,
        executor: Executor,
    ) -> None:
        self.name = name
        self.partition_count = 0
        self.longest_load_ms = 0.0
        self._record_types = record_types
        self._make_machine = make_machine
        self._replicas = replicas
        self._clock = clock
        self._executor = executor
        self._ledgers: dict[int, Ledger[MachineType]] = {}
        self._loads: dict[int, asyncio.Task[None]] = {}
        # One at a time: all that wait for the loop have a turn before it looks at its sockets again.
        self._load_turn = asyncio.Lock()

    # Looking up

    def partition_of(self, key: str) -> int:
        if not self.partition_count:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"{self.name} does not exist yet")
        return partition_for(key, self.partition_count)

    def ledger_of(self, key: str) -> Ledger[MachineType]:
        """The one that is responsible for a key, or the error that sends a client elsewhere or lets it try again."""
        return self.ledger(self.partition_of(key))

    def ledger(self, index: int) -> Ledger[MachineType]:
        found = self._ledgers.get(index)
        if found is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"{self.name}-{index} is not led by this broker")
        found.check_ready()
        return found

    def __iter__(self) -> Iterator[Ledger[MachineType]]:
        """Those that this broker leads, in order of their partitions, ready or not."""
        return iter([ledger for _, ledger in sorted(self._ledgers.items())])

    # Following the image

    def follow(self, image: ClusterImage) -> None:
        """Hold what this broker leads. Returns at once; what is new is loaded meanwhile."""
        topic = image.topics.get(self.name)
        self.partition_count = 0 if topic is None else len(topic.partitions)
        led: dict[int, Partition] = {}
        for index in range(self.partition_count):
            try:
                partition = self._replicas.partition(self.name, index)
            except KafkaError:
                continue
            if partition.is_leader:
                led[index] = partition
        for index, ledger in list(self._ledgers.items()):
            if led.get(index) is not ledger.partition:
                self._drop(index)
        for index, partition in led.items():
            if index not in self._ledgers:
                self._begin(index, partition)

    def _begin(self, index: int, partition: Partition) -> None:
        ledger: Ledger[MachineType] = Ledger(partition, self._record_types, self._clock, self._executor)
        ledger.machine = self._make_machine(index, ledger)
        self._ledgers[index] = ledger
        task = asyncio.get_running_loop().create_task(self._load(index, ledger), name=f"load {partition}")
        self._loads[index] = task

    async def _load(self, index: int, ledger: Ledger[MachineType]) -> None:
        """One that cannot be read is tried again: until then its clients are told that it is being loaded."""
        while ledger.state is State.LOADING:
            try:
                async with self._load_turn:
                    begun = self._clock.monotonic()
                    await ledger.load()
                    self.longest_load_ms = max(self.longest_load_ms, (self._clock.monotonic() - begun) * 1000)
            except (KafkaError, OSError) as error:
                logger.error("%s cannot be loaded; it will be tried again: %s", ledger.partition, error)
                ledger.machine = self._make_machine(index, ledger)
                await asyncio.sleep(RETRY_MS / 1000)
        self._loads.pop(index, None)

    def _drop(self, index: int) -> None:
        self._ledgers.pop(index).unload()
        load = self._loads.pop(index, None)
        if load is not None:
            load.cancel()

    async def loaded(self) -> None:
        """Return once nothing is being loaded."""
        while self._loads:
            await asyncio.wait(list(self._loads.values()))

    def stop(self) -> None:
        """Let go of all of them: the broker ends."""
        for index in list(self._ledgers):
            self._drop(index)
