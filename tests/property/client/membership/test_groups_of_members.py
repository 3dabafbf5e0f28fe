"""Whole groups of members against a model of their coordinator, with crashes, silence, lost answers and user code that
does not come back.

What must stay true at every moment: whoever is told to read a partition is the only one of those that the coordinator
counts as members. And in the end, when nothing goes wrong any more, everything is read, in even shares.
"""

import asyncio
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.client.membership.classic_model import ClassicCoordinator
from tests.property.client.membership.epochs_model import EpochCoordinator
from tests.property.client.membership.model import Coordinator, ModelNetwork
from tests.property.client.membership.virtual import LoopClock, run_virtually
from tests.property.examples import examples

from ottla.client.errors import OttlaError
from ottla.client.membership.assignors import assignors_of
from ottla.client.membership.classic_driver import ClassicMembership
from ottla.client.membership.driver import Driver
from ottla.client.membership.epochs_driver import EpochMembership
from ottla.client.membership.settings import GroupSettings
from ottla.client.types import TopicPartition

COUNTS = {"a": 5, "b": 3}
MAX_POLL_MS = 20_000
SETTLING_SECONDS = 120.0
KINDS = ("range", "roundrobin", "sticky", "cooperative-sticky", "consumer")


class _Ids:
    def __init__(self, seed: int) -> None:
        self._next = seed << 64

    def uuid(self) -> bytes:
        self._next += 1
        return self._next.to_bytes(16, "big")

    def below(self, limit: int) -> int:
        return 0


class Reader:
    """User code: it takes its time, and notes whether somebody else reads what it is given."""

    def __init__(self, group: "Group") -> None:
        self.group = group
        self.reads: set[TopicPartition] = set()
        self.gate = asyncio.Event()
        self.gate.set()
        self.driver: Driver | None = None

    async def revoke(self, partitions: frozenset[TopicPartition]) -> None:
        await self.gate.wait()
        assert partitions <= self.reads
        self.reads -= partitions

    async def lose(self, partitions: frozenset[TopicPartition]) -> None:
        assert partitions <= self.reads
        self.reads -= partitions
        await self.gate.wait()

    async def assign(self, partitions: frozenset[TopicPartition]) -> None:
        assert not partitions & self.reads
        self.group.check_nobody_else_reads(partitions, self)
        self.reads |= partitions

    def failed(self, error: OttlaError) -> None:
        self.group.failures.append(error)


@dataclass
class Running:
    reader: Reader
    driver: Driver
    network: ModelNetwork
    task: "asyncio.Task[None]"
    is_hanging: bool = False


class Group:
    def __init__(self, kind: str) -> None:
        self.kind = kind
        is_new = kind == "consumer"
        self.coordinator: Coordinator = EpochCoordinator(dict(COUNTS)) if is_new else ClassicCoordinator(dict(COUNTS))
        self.running: list[Running] = []
        self.crashed: list[Running] = []
        self.failures: list[OttlaError] = []
        self._made = 0

    def check_nobody_else_reads(self, partitions: frozenset[TopicPartition], reader: Reader) -> None:
        for other in self.running:
            is_member = self.coordinator.knows(other.driver.generation.member_id)
            if other.reader is not reader and is_member and other.driver.generation.is_member:
                assert not partitions & other.reader.reads, f"{partitions & other.reader.reads} has two readers"

    def join(self, topics: frozenset[str]) -> None:
        self._made += 1
        reader, network = Reader(self), ModelNetwork(self.coordinator)
        group_settings = GroupSettings(
            group_id="g",
            session_timeout_ms=6_000,
            heartbeat_interval_ms=1_000,
            max_poll_interval_ms=MAX_POLL_MS,
            request_timeout_ms=5_000,
            assignors=() if self.kind == "consumer" else assignors_of([self.kind]),
        )
        driver: Driver = (
            EpochMembership(network, group_settings, reader, LoopClock(), _Ids(self._made))
            if self.kind == "consumer"
            else ClassicMembership(network, group_settings, reader, LoopClock())
        )
        reader.driver = driver
        driver.subscribe(topics)
        driver.waiting(True)
        self.running.append(Running(reader, driver, network, asyncio.create_task(driver.run())))

    async def leave(self, at: int) -> None:
        one = self.running.pop(at)
        one.reader.gate.set()
        await one.driver.leave(5.0)
        await one.task
        assert one.reader.reads == set()

    async def crash(self, at: int) -> None:
        one = self.running.pop(at)
        one.network.is_dead = True
        one.task.cancel()
        await asyncio.wait([one.task])

    def hang(self, at: int) -> None:
        one = self.running[at]
        one.is_hanging = not one.is_hanging
        one.driver.waiting(not one.is_hanging)
        if one.is_hanging:
            one.reader.gate.clear()
        else:
            one.reader.gate.set()

    async def obey(self, action: tuple[str, int]) -> None:
        what, number = action
        at = number % len(self.running) if self.running else 0
        topics = [frozenset({"a"}), frozenset({"b"}), frozenset({"a", "b"})][number % 3]
        if what == "join" and len(self.running) < 6:
            self.join(topics)
        elif what == "away":
            self.coordinator.is_away = not self.coordinator.is_away
        elif what == "break":
            self.coordinator.answers_to_lose = number
        elif what == "grow":
            self.coordinator.grow("a", COUNTS["a"] + number)
        elif what == "wait":
            await asyncio.sleep(number * number / 4)
        elif self.running:
            if what == "leave":
                await self.leave(at)
            elif what == "crash":
                await self.crash(at)
            elif what == "hang":
                self.hang(at)
            elif what == "subscribe":
                self.running[at].driver.subscribe(topics)
            elif what == "unsubscribe":
                self.running[at].driver.unsubscribe()

    async def settle(self) -> None:
        """Nothing goes wrong any more."""
        self.coordinator.is_away = False
        self.coordinator.answers_to_lose = 0
        for at, one in enumerate(self.running):
            if one.is_hanging:
                self.hang(at)
        if not self.running:
            self.join(frozenset({"a", "b"}))
        for one in self.running:
            one.driver.subscribe(frozenset({"a", "b"}))
        await asyncio.sleep(SETTLING_SECONDS)

    def check_settled(self) -> None:
        for one in self.running:
            assert not one.task.done(), one.task
            assert one.driver.assignment == one.reader.reads
            assert not one.driver.is_rebalancing
        read = sorted(part for one in self.running for part in one.reader.reads)
        counts = self.coordinator.counts
        assert read == sorted(TopicPartition(topic, number) for topic in counts for number in range(counts[topic]))
        topics_at_odds = len(counts) if self.kind in ("range", "consumer") else 1
        shares = [len(one.reader.reads) for one in self.running]
        assert max(shares) - min(shares) <= topics_at_odds

    async def end(self) -> None:
        while self.running:
            await self.leave(0)


async def live(kind: str, actions: list[tuple[str, int]]) -> Group:
    group = Group(kind)
    group.join(frozenset({"a", "b"}))
    for action in actions:
        await group.obey(action)
        await asyncio.sleep(0.05)
    await group.settle()
    group.check_settled()
    await group.end()
    return group


USUAL = ("join", "join", "wait", "wait", "wait")
UNUSUAL = ("leave", "crash", "hang", "away", "break", "grow", "subscribe", "unsubscribe")
ACTIONS = st.lists(st.tuples(st.sampled_from(USUAL + UNUSUAL), st.integers(0, 9)), max_size=25)


@pytest.mark.parametrize("kind", KINDS)
def test_everything_is_read_by_one_member_and_in_the_end_by_all(kind: str) -> None:
    @settings(max_examples=examples(12), deadline=None)
    @given(actions=ACTIONS)
    def property_holds(actions: list[tuple[str, int]]) -> None:
        run_virtually(live(kind, actions))

    property_holds()


@pytest.mark.parametrize("kind", KINDS)
def test_a_member_whose_user_hangs_is_left_behind_and_comes_back(kind: str) -> None:
    group = run_virtually(
        live(kind, [("join", 2), ("wait", 5), ("hang", 0), ("join", 2), ("wait", 9), ("wait", 9), ("hang", 0)])
    )
    assert [type(error).__name__ for error in group.failures] == ["PollIntervalExceeded"]
