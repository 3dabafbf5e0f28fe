"""A coordinator on a disk in memory, with a clock set by hand and markers that can be refused or held back."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import TypeVar

import pytest
from tests.unit.replication.rig import NODE_ID, Rig, turns

from ottla.cluster.image import ClusterImage, PartitionImage, TopicImage
from ottla.ledger import Decision
from ottla.ledger.ledger import State
from ottla.log.config import LogConfig
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.replication.manager import ReplicaManager
from ottla.runtime.promise import Promise
from ottla.transactions import (
    EndedTransaction,
    MarkerErrors,
    Status,
    TopicPartition,
    Transaction,
    TransactionContext,
    TransactionCoordinator,
    TransactionSettings,
)
from ottla.transactions.ending import EndRequest
from ottla.transactions.machine import Producer, TransactionMachine
from ottla.transactions.transaction import EPOCH_BUMP_VERSION, FIRST_VERSION

Value = TypeVar("Value")

NAME = "shop"
TIMEOUT_MS = 60_000
A, B, C = TopicPartition("a", 0), TopicPartition("b", 0), TopicPartition("b", 1)


class Markers:
    """Takes markers: `written` has those that partitions took, in order."""

    def __init__(self) -> None:
        self.written: list[tuple[EndedTransaction, TopicPartition]] = []
        self.refuse: dict[TopicPartition, ErrorCode] = {}
        self.holds = False
        self.fails = False
        self._held: list[Callable[[], None]] = []

    def write(self, ended: EndedTransaction, partitions: Sequence[TopicPartition]) -> Promise[MarkerErrors]:
        if self.fails:
            raise RuntimeError("a fault of the test")
        promise: Promise[MarkerErrors] = Promise()

        def take() -> None:
            refused = {each: self.refuse[each] for each in partitions if each in self.refuse}
            self.written += [(ended, each) for each in partitions if each not in refused]
            promise.resolve(refused)

        if self.holds:
            self._held.append(take)
        else:
            take()
        return promise

    def release(self) -> None:
        self.holds = False
        held, self._held = self._held, []
        for take in held:
            take()

    def drop(self) -> None:
        """What is held back never reaches a partition: the broker died."""
        self._held.clear()

    def of(self, partition: TopicPartition) -> list[tuple[Producer, bool]]:
        return [
            ((ended.producer_id, ended.producer_epoch), ended.is_commit)
            for ended, each in self.written
            if each == partition
        ]


class Stage:
    """`start` it on a running loop. What outlives `restart` is what the disk has."""

    coordinator: TransactionCoordinator

    def __init__(self, configs: dict[str, str] | None = None, settings: TransactionSettings | None = None) -> None:
        self.rig = Rig()
        self.clock = self.rig.clock
        self.markers = Markers()
        self.settings = settings or TransactionSettings()
        self._producer_ids = count(1000)
        self.image = ClusterImage(version=1)
        self._replicas = ReplicaManager(
            NODE_ID, self.rig.logs, self.clock, self.rig.executor, LogConfig.from_properties
        )
        self._configs = {"cleanup.policy": "compact", **(configs or {})}

    async def start(self) -> "Stage":
        await self.with_topics({"__transaction_state": 3, "a": 1, "b": 2})
        await self.restart()
        return self

    async def with_topics(self, counts: dict[str, int]) -> None:
        """Let the cluster have these topics, and no others."""
        topics = {
            name: self.image.topics.get(name) or _topic(name, partitions, self._configs if name[0] == "_" else {})
            for name, partitions in counts.items()
        }
        self.image = replace(self.image, topics=topics, version=self.image.version + 1)
        await self._replicas.apply(self.image)

    async def restart(self) -> None:
        """As after a crash: another coordinator reads what is in the log."""
        if hasattr(self, "coordinator"):
            self.coordinator.stop()
            self.markers.drop()
        context = TransactionContext(self.clock, lambda: self.settings, lambda: self.image, self.markers.write)
        self.coordinator = TransactionCoordinator(context, self._replicas, self.rig.executor, self._next_producer_id)
        self.coordinator.follow(self.image)
        await self.coordinator.topic.loaded()
        assert all(ledger.state is State.READY for ledger in self.coordinator.topic)
        await turns(3)

    async def _next_producer_id(self) -> int:
        return next(self._producer_ids)

    # What a producer does; each gives back the answer, or raises the error

    async def initialize(
        self, name: str = NAME, expected: Producer | None = None, timeout_ms: int = TIMEOUT_MS
    ) -> Producer:
        return await answer(self.coordinator.initialize(name, timeout_ms, expected))

    async def add(
        self, producer: Producer, *partitions: TopicPartition, name: str = NAME, version: int = EPOCH_BUMP_VERSION
    ) -> None:
        await answer(self.coordinator.add_partitions(name, producer, partitions, version))

    async def end(
        self, producer: Producer, *, commit: bool, name: str = NAME, version: int = EPOCH_BUMP_VERSION
    ) -> Producer:
        return await answer(self.coordinator.end(name, EndRequest(*producer, commit, version)))

    async def commit(self, producer: Producer, version: int = EPOCH_BUMP_VERSION) -> Producer:
        return await self.end(producer, commit=True, version=version)

    async def abort(self, producer: Producer, version: int = EPOCH_BUMP_VERSION) -> Producer:
        return await self.end(producer, commit=False, version=version)

    async def verify(self, producer: Producer, partition: TopicPartition, *, adds: bool, name: str = NAME) -> None:
        promise = self.coordinator.verify(name, *producer, *partition, adds=adds)
        if promise is not None:
            await answer(promise)

    # What is there

    def machine(self, name: str = NAME) -> TransactionMachine:
        return self.coordinator.topic.ledger_of(name).machine

    def transaction(self, name: str = NAME) -> Transaction:
        return self.machine(name).transactions[name]

    def status(self, name: str = NAME) -> Status:
        return self.transaction(name).status

    async def put(self, transaction: Transaction) -> None:
        """Let a transaction be as it is given."""
        ledger = self.coordinator.topic.ledger_of(transaction.transactional_id)
        await answer(ledger.write(lambda: Decision(None, [transaction.entry()])))


def _topic(name: str, partitions: int, configs: dict[str, str]) -> TopicImage:
    images = tuple(PartitionImage(index, NODE_ID, 0, (NODE_ID,), (NODE_ID,), 0) for index in range(partitions))
    return TopicImage(name, name.encode().ljust(16, b"-")[:16], images, configs)


async def answer(promise: Promise[Value]) -> Value:
    for _ in range(100):
        if promise.done():
            return promise.result()
        await turns(1)
    raise AssertionError("no answer")


async def eventually(is_true: Callable[[], bool]) -> None:
    """Return once something is true that timers bring about."""
    while not is_true():  # noqa: ASYNC110 - nobody tells: what is looked at is what a tool would look at
        await asyncio.sleep(0.001)


async def refusal(work: object) -> ErrorCode:
    """The error that awaiting comes to."""
    with pytest.raises(KafkaError) as caught:
        await work  # type: ignore[misc]  # whatever a stage gives back
    return caught.value.code


VERSIONS = (FIRST_VERSION, EPOCH_BUMP_VERSION)
