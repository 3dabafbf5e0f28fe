"""What happens when a membership is overtaken: in virtual time, against the model of a coordinator."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.property.client.membership.model import ModelNetwork
from tests.property.client.membership.test_groups_of_members import COUNTS, MAX_POLL_MS, Group, Running
from tests.property.client.membership.virtual import run_virtually

from ottla.client.errors import BrokerError, OttlaError, PollIntervalExceeded
from ottla.client.types import TopicPartition
from ottla.protocol.errors import ErrorCode

BOTH = pytest.mark.parametrize("kind", ["range", "cooperative-sticky", "consumer"])
EVERYTHING = frozenset(TopicPartition(topic, number) for topic, count in COUNTS.items() for number in range(count))


@asynccontextmanager
async def settled(kind: str) -> AsyncIterator[tuple[Group, Running]]:
    """A group with one member that reads everything."""
    group = Group(kind)
    group.join(frozenset(COUNTS))
    (one,) = group.running
    await asyncio.sleep(10)
    assert one.driver.assignment == EVERYTHING
    yield group, one
    one.task.cancel()
    await asyncio.wait([one.task])


@BOTH
def test_leaving_takes_no_longer_than_it_may_and_says_good_bye_all_the_same(kind: str) -> None:
    async def leave() -> None:
        async with settled(kind) as (group, one):
            one.reader.gate.clear()
            member_id = one.driver.generation.member_id
            loop = asyncio.get_running_loop()
            started = loop.time()
            await one.driver.leave(3.0)
            assert loop.time() - started < 4.0
            assert not group.coordinator.knows(member_id)
            assert one.driver.assignment == frozenset()
            await asyncio.wait_for(one.task, 1.0)

    run_virtually(leave())


@BOTH
def test_a_membership_that_was_left_can_be_left_again(kind: str) -> None:
    async def leave() -> None:
        async with settled(kind) as (_, one):
            await one.driver.leave(3.0)
            await one.driver.leave(3.0)
            one.driver.polled()
            one.driver.raise_if_lost()

    run_virtually(leave())


@BOTH
def test_who_unsubscribes_while_it_joins_is_out(kind: str) -> None:
    async def unsubscribe() -> None:
        async with settled(kind) as (group, first):
            first.reader.gate.clear()
            group.join(frozenset(COUNTS))
            second = group.running[1]
            await asyncio.sleep(2)
            member_id = second.driver.generation.member_id
            second.driver.unsubscribe()
            await asyncio.sleep(1)
            assert not group.coordinator.knows(member_id)
            first.reader.gate.set()
            await asyncio.sleep(60)
            assert first.driver.assignment == EVERYTHING
            second.driver.subscribe(frozenset(COUNTS))
            await asyncio.sleep(60)
            assert first.driver.assignment | second.driver.assignment == EVERYTHING
            assert second.reader.reads == second.driver.assignment != frozenset()
            await group.leave(1)

    run_virtually(unsubscribe())


@BOTH
def test_what_is_lost_is_told_to_the_end_although_the_user_stays_away_meanwhile(kind: str) -> None:
    async def stay_away() -> None:
        async with settled(kind) as (_, one):
            notes: list[str] = []
            inner = one.reader.lose

            async def lose(partitions: frozenset[TopicPartition]) -> None:
                notes.append("begins")
                await inner(partitions)
                notes.append("ends")

            one.reader.lose = lose  # type: ignore[method-assign] # user code that takes notes
            one.driver.waiting(False)
            one.reader.gate.clear()
            await asyncio.sleep(2 * MAX_POLL_MS / 1000)
            assert notes == ["begins"]
            one.driver.unsubscribe()
            await asyncio.sleep(1)
            one.reader.gate.set()
            await asyncio.sleep(1)
            assert notes == ["begins", "ends"]
            with pytest.raises(PollIntervalExceeded):
                one.driver.raise_if_lost()

    run_virtually(stay_away())


class _Refusing(ModelNetwork):
    """A coordinator that may not be used, or a network that ends."""

    error: OttlaError | None = None

    async def coordinator(self, kind: object, key: str) -> int:
        if self.error is not None:
            raise self.error
        return 1


@BOTH
def test_what_is_final_ends_the_task_loses_everything_and_is_raised_at_every_call(kind: str) -> None:
    async def fail() -> None:
        async with settled(kind) as (group, one):
            one.network.__class__ = _Refusing
            one.network.error = BrokerError(ErrorCode.GROUP_AUTHORIZATION_FAILED, "no")  # type: ignore[attr-defined]
            await asyncio.wait_for(one.task, 60)
            assert one.driver.assignment == frozenset() == one.reader.reads
            for _ in range(2):
                with pytest.raises(BrokerError, match="ask for READ on it"):
                    one.driver.raise_if_lost()
            assert len(group.failures) == 1
            await one.driver.leave(1.0)

    run_virtually(fail())


@BOTH
def test_a_task_that_is_cancelled_leaves_nothing_behind(kind: str) -> None:
    async def cancel() -> None:
        async with settled(kind) as (_, one):
            one.task.cancel()
            await asyncio.wait([one.task])
            mine = asyncio.current_task()
            await asyncio.sleep(1)
            assert asyncio.all_tasks() == {mine}

    run_virtually(cancel())
