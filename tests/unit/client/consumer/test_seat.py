"""The consumer's side of rebalances that are overtaken by others before the user came to hear of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any

import pytest

from ottla.client.consumer.attention import Attention
from ottla.client.consumer.groups import Seat
from ottla.client.consumer.positions import Assignment
from ottla.client.consumer.prefetch import Prefetch
from ottla.client.errors import NotAuthorized
from ottla.client.types import TopicPartition
from ottla.protocol.errors import ErrorCode

BOTH = frozenset(TopicPartition("orders", number) for number in range(2))
FIRST = frozenset({TopicPartition("orders", 0)})


class Desk:
    """A seat with a listener. Commits and listeners wait while their gates are closed."""

    def __init__(self) -> None:
        self.assignment = Assignment()
        prefetch = Prefetch(1000, lambda: None)
        self.attention = Attention(prefetch)
        self.seat = Seat(self.assignment, prefetch, self.attention, self._commit, lambda: None)
        self.seat.listener = self
        self.committing, self.listening = asyncio.Event(), asyncio.Event()
        self.committing.set()
        self.listening.set()
        self.refusal: Exception | None = None
        self.heard: list[tuple[str, list[int]]] = []

    async def _commit(self, partitions: Iterable[TopicPartition]) -> None:
        await self.committing.wait()
        if self.refusal is not None:
            raise self.refusal

    async def on_revoked(self, partitions: list[TopicPartition]) -> None:
        self.heard.append(("revoked", [one.partition for one in partitions]))
        await self.listening.wait()

    async def on_lost(self, partitions: list[TopicPartition]) -> None:
        self.heard.append(("lost", [one.partition for one in partitions]))

    async def on_assigned(self, partitions: list[TopicPartition]) -> None:
        self.heard.append(("assigned", [one.partition for one in partitions]))

    async def told(self, news: Coroutine[Any, Any, None]) -> None:
        """The group's news, and a user who is there for them."""
        task = asyncio.ensure_future(news)
        await settled()
        await self.attention.receive()
        await task

    async def begin(self, news: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(news)
        await settled()
        return task


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def overtake(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def on_a_desk(scenario: Callable[[Desk], Coroutine[Any, Any, None]]) -> None:
    async def work() -> None:
        desk = Desk()
        await desk.told(desk.seat.assign(BOTH))
        await asyncio.wait_for(scenario(desk), 30)

    asyncio.run(work())


def test_who_lost_its_partitions_while_they_were_wanted_back_keeps_what_it_gets_next() -> None:
    async def scenario(desk: Desk) -> None:
        await overtake(await desk.begin(desk.seat.revoke(BOTH)))
        losing = await desk.begin(desk.seat.lose(BOTH))
        await desk.attention.receive()
        await losing
        await desk.told(desk.seat.assign(FIRST))
        assert desk.assignment.partitions() == sorted(FIRST)
        assert desk.heard == [("assigned", [0, 1]), ("lost", [0, 1]), ("assigned", [0])]

    on_a_desk(scenario)


def test_what_is_given_back_while_it_is_lost_takes_nothing_that_came_later() -> None:
    """The user is inside of a commit that takes long, and the group has gone on."""

    async def scenario(desk: Desk) -> None:
        desk.committing.clear()
        revoking = await desk.begin(desk.seat.revoke(BOTH))
        user = await desk.begin(desk.attention.receive())
        await overtake(revoking)
        losing = await desk.begin(desk.seat.lose(BOTH))
        await overtake(losing)
        assigning = await desk.begin(desk.seat.assign(BOTH))
        desk.committing.set()
        await user
        await assigning
        assert desk.assignment.partitions() == sorted(BOTH)
        assert desk.heard == [("assigned", [0, 1]), ("lost", [0, 1]), ("assigned", [0, 1])]

    on_a_desk(scenario)


@pytest.mark.parametrize("is_begun", [False, True])
def test_what_is_wanted_back_twice_is_revoked_once(is_begun: bool) -> None:
    async def scenario(desk: Desk) -> None:
        desk.listening.clear()
        first = await desk.begin(desk.seat.revoke(BOTH))
        if is_begun:
            user = await desk.begin(desk.attention.receive())
        await overtake(first)
        second = await desk.begin(desk.seat.revoke(BOTH))
        if not is_begun:
            user = await desk.begin(desk.attention.receive())
        desk.listening.set()
        await user
        await second
        assert desk.heard == [("assigned", [0, 1]), ("revoked", [0, 1])]
        assert not desk.assignment.partitions()

    on_a_desk(scenario)


def test_what_a_listener_is_told_of_already_is_not_lost_as_well() -> None:
    async def scenario(desk: Desk) -> None:
        desk.listening.clear()
        revoking = await desk.begin(desk.seat.revoke(FIRST))
        user = await desk.begin(desk.attention.receive())
        await overtake(revoking)
        losing = await desk.begin(desk.seat.lose(BOTH))
        desk.listening.set()
        await user
        await losing
        assert desk.heard == [("assigned", [0, 1]), ("revoked", [0]), ("lost", [1])]
        assert not desk.assignment.partitions()

    on_a_desk(scenario)


def test_what_is_lost_is_told_although_nobody_waits_for_it_any_more() -> None:
    async def scenario(desk: Desk) -> None:
        await overtake(await desk.begin(desk.seat.lose(BOTH)))
        await desk.attention.receive()
        assert desk.heard == [("assigned", [0, 1]), ("lost", [0, 1])]

    on_a_desk(scenario)


def test_a_listener_hears_of_what_is_given_back_also_where_it_could_not_be_committed() -> None:
    async def scenario(desk: Desk) -> None:
        desk.refusal = NotAuthorized(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "not yours")
        with pytest.raises(NotAuthorized):
            await desk.told(desk.seat.revoke(BOTH))
        assert desk.heard == [("assigned", [0, 1]), ("revoked", [0, 1])]
        assert not desk.assignment.partitions()

    on_a_desk(scenario)
