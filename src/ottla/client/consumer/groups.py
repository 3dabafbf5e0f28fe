"""The consumer's side of a rebalance: what is done with partitions that come and go, and the user's listener.

What was handed out may still be worked on, so partitions are given back only inside a call of the user (`Attention`).
Those that were lost are dropped at once: somebody else may read them already.

What must stay true:
- A partition may be lost, and come again, while the user is still busy with giving it back: that takes away the one
  that it was about (`PartitionState`), and nothing that came later under the same name.
- A listener hears of the end of each assignment once, as revoked or as lost, whether or not a commit was possible.
- Whether the user is done with what was handed out is not decided here: whoever asks for more is (`Core.attend`).
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable

from ottla.client.consumer.attention import Attention
from ottla.client.consumer.positions import Assignment, PartitionState
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
        self._seated: dict[TopicPartition, PartitionState] = {}
        self.listener: object = None
        self.rebalance_count = 0

    async def revoke(self, partitions: frozenset[TopicPartition]) -> None:
        async def give_back() -> None:
            leaving = [self._seated[partition] for partition in sorted(partitions) if partition in self._seated]
            for state in leaving:
                self._prefetch.hold(state)
            try:
                await self._part_with(leaving)
            finally:
                self._unseat(leaving)
                self._remove(leaving)

        await self._attention.visit(give_back, while_awaited=True)

    async def _part_with(self, leaving: list[PartitionState]) -> None:
        """Commit, and tell the listener of those that were not lost meanwhile; also where the commit was refused."""
        refusal: OttlaError | None = None
        try:
            await self._commit([state.topic_partition for state in leaving])
        except OttlaError as error:
            refusal = error
        if revoked := self._unseat(leaving):
            await self._tell("on_revoked", revoked)
        if refusal is not None:
            raise refusal

    async def lose(self, partitions: frozenset[TopicPartition]) -> None:
        lost = self._unseat([self._seated[partition] for partition in partitions if partition in self._seated])
        self._remove([state for state in self._assignment if state.topic_partition in partitions])
        if lost and self._hears("on_lost"):
            await self._attention.visit(lambda: self._tell("on_lost", lost))

    async def assign(self, partitions: frozenset[TopicPartition]) -> None:
        self.rebalance_count += 1
        for partition in sorted(partitions):
            self._seated[partition] = self._assignment.add(partition)
        self._changed()
        if self._hears("on_assigned"):
            await self._attention.visit(lambda: self._tell("on_assigned", partitions))
        self._attention.wake()

    def failed(self, error: OttlaError) -> None:
        self._prefetch.interrupt()
        self._attention.wake()

    def _unseat(self, states: Iterable[PartitionState]) -> frozenset[TopicPartition]:
        """Those of them whose end no listener was told of yet: from now on, somebody does."""
        seated = frozenset(one.topic_partition for one in states if self._seated.get(one.topic_partition) is one)
        for partition in seated:
            del self._seated[partition]
        return seated

    def _remove(self, states: Iterable[PartitionState]) -> None:
        for state in states:
            if self._assignment.get(state.topic_partition) is state:
                self._assignment.remove(state.topic_partition)
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
