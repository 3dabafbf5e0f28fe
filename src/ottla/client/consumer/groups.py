"""The consumer's side of a rebalance: what is done with partitions that come and go, and the user's listener.

What was handed out may still be worked on, so partitions are given back only inside a call of the user (`Attention`).
Those that were lost are dropped at once: somebody else may read them already.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable

from ottla.client.consumer.attention import Attention
from ottla.client.consumer.positions import Assignment
from ottla.client.consumer.prefetch import Prefetch
from ottla.client.errors import OttlaError
from ottla.client.types import TopicPartition

Listening = Callable[[list[TopicPartition]], object]
RunListener = Callable[[Listening, list[TopicPartition]], Awaitable[None]]


async def run_here(listening: Listening, partitions: list[TopicPartition]) -> None:
    """Call a method of a listener, and wait for it where it is a coroutine."""
    result = listening(partitions)
    if inspect.isawaitable(result):
        await result


class Seat:
    """Implements `Rebalancing`. `commit` stores what the user is done with; `changed` follows every change."""

    def __init__(
        self,
        assignment: Assignment,
        prefetch: Prefetch,
        attention: Attention,
        commit: Callable[[Iterable[TopicPartition]], Awaitable[None]],
        changed: Callable[[], None],
        run_listener: RunListener = run_here,
    ) -> None:
        self._assignment = assignment
        self._prefetch = prefetch
        self._attention = attention
        self._commit = commit
        self._changed = changed
        self._run_listener = run_listener
        self.listener: object = None
        self.rebalance_count = 0

    async def revoke(self, partitions: frozenset[TopicPartition]) -> None:
        async def give_back() -> None:
            self._prefetch.came_back()
            for partition in sorted(partitions):
                if (state := self._assignment.get(partition)) is not None:
                    self._prefetch.hold(state)
            try:
                await self._commit(sorted(partitions))
                await self._tell("on_revoked", partitions)
            finally:
                self._remove(partitions)

        await self._attention.visit(give_back)

    async def lose(self, partitions: frozenset[TopicPartition]) -> None:
        self._remove(partitions)
        if self._hears("on_lost"):
            await self._attention.visit(lambda: self._tell("on_lost", partitions))

    async def assign(self, partitions: frozenset[TopicPartition]) -> None:
        self.rebalance_count += 1
        for partition in sorted(partitions):
            self._assignment.add(partition)
        self._changed()
        if self._hears("on_assigned"):
            await self._attention.visit(lambda: self._tell("on_assigned", partitions))
        self._attention.wake()

    def failed(self, error: OttlaError) -> None:
        self._prefetch.interrupt()
        self._attention.wake()

    def _remove(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in sorted(partitions):
            state = self._assignment.remove(partition)
            if state is not None:
                self._prefetch.drop(state)
        self._changed()

    def _method(self, name: str) -> Listening | None:
        """A listener need not have all methods; what is lost was revoked, to one that does not tell them apart."""
        method: Listening | None = getattr(self.listener, name, None)
        if method is None and name == "on_lost":
            method = getattr(self.listener, "on_revoked", None)
        return method

    def _hears(self, name: str) -> bool:
        return self._method(name) is not None

    async def _tell(self, name: str, partitions: frozenset[TopicPartition]) -> None:
        method = self._method(name)
        if method is not None:
            await self._run_listener(method, sorted(partitions))
