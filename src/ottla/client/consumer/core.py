"""One consumer's parts, put together: what the face of the consumer (`consumer`) calls.

| part         | holds                                                                          |
|--------------|--------------------------------------------------------------------------------|
| `Assignment` | the partitions, and where the consumer stands in each                          |
| `Prefetch`   | what was fetched and not handed out                                            |
| `Supply`     | the questions to brokers that keep both going                                  |
| `Attention`  | what the user has to be there for                                              |
| `Seat`       | the consumer's side of rebalances, where it has a group                        |
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AbstractContextManager, suppress
from typing import Any, Protocol

from ottla.client.config import ConsumerConfig
from ottla.client.consumer._twin import Chunk
from ottla.client.consumer.attention import Attention
from ottla.client.consumer.commits import Offsets, OffsetStore
from ottla.client.consumer.fetcher import Fetcher
from ottla.client.consumer.groups import RunListener, Seat, run_here
from ottla.client.consumer.positions import Assignment
from ottla.client.consumer.prefetch import Prefetch
from ottla.client.consumer.settings import FetchSettings
from ottla.client.consumer.supply import Supply
from ottla.client.errors import BrokerUnavailable, ClientClosed, CommitFailed, NoGroup, OttlaError
from ottla.client.membership.interface import Membership, Rebalancing
from ottla.client.network import Network
from ottla.client.serializers import deserializer_of
from ottla.client.types import OffsetAndMetadata, TopicPartition
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse
from ottla.runtime import Clock

_TICK_SECONDS = 1.0
_PARTING_COMMIT_SECONDS = 10.0
_LEAST_COMMIT_SECONDS = 0.1
_SHORT_POLL_INTERVAL_MS = 10_000


class Reader(Protocol):
    """Whoever borrows chunks to make something else of them than records."""

    def close(self) -> None:
        """Give them back, and have everything fetched as before. It may go on later: it begins again then."""
        ...


MakeMembership = Callable[[Network, ConsumerConfig, Rebalancing, Clock], Membership]


class Core:
    """Made inside of the loop that it belongs to. `join` makes the membership of a consumer with a group."""

    def __init__(
        self,
        config: ConsumerConfig,
        network: Network,
        clock: Clock,
        join: MakeMembership,
        run_listener: RunListener = run_here,
        lock: AbstractContextManager[object] | None = None,
    ) -> None:
        self.config = config
        self.network = network
        self.clock = clock
        settings = FetchSettings.of(config)
        self.assignment = Assignment()
        self.prefetch = Prefetch(config.prefetch_bytes, self._room, lock)
        self.attention = Attention(self.prefetch)
        self.store = None if config.group_id is None else OffsetStore(network, clock, config.group_id, None)
        self.fetcher = Fetcher(
            settings,
            self.assignment,
            self.prefetch,
            deserializer_of(config.key_deserializer, "key.deserializer"),
            deserializer_of(config.value_deserializer, "value.deserializer"),
        )
        self.supply = Supply(
            network,
            clock,
            settings,
            self.assignment,
            self.prefetch,
            self.fetcher,
            self.attention,
            self.store,
            config.request_timeout_ms / 1000,
            config.default_api_timeout_ms / 1000,
        )
        self.seat = Seat(
            self.assignment, self.prefetch, self.attention, self._commit_at_parting, self._changed, run_listener
        )
        self._join = join
        self.membership: Membership | None = None
        self._member_task: asyncio.Task[None] | None = None
        self._ticking: asyncio.Task[None] | None = None
        self._committed: dict[TopicPartition, int] = {}
        self._progress: object = None
        self._watched: set[str] = set()
        self.reader: Reader | None = None
        self.is_subscribed = False
        self._is_closing = False
        self._ends_at = float("inf")
        self._parting: asyncio.Timeout | None = None
        self._kept: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        if self.store is not None:
            self._ticking = asyncio.get_running_loop().create_task(self._tick())

    def _room(self) -> None:
        self.supply.kick_from_thread()

    def _changed(self) -> None:
        """The assignment is another: its topics are kept up to date, and what is new is fetched.

        The topics of a subscription are the membership's: it needs them also while nothing of them is assigned.
        """
        topics = set() if self.is_subscribed else set(self.assignment.topics())
        if new := sorted(topics - self._watched):
            self.network.watch_topics(new)
        if gone := sorted(self._watched - topics):
            self.network.unwatch_topics(gone)
        self._watched = topics
        # Whoever else had a partition meanwhile may have committed something for it.
        self._committed = {one: offset for one, offset in self._committed.items() if one in self.assignment}
        for state in self.assignment:
            info = self.network.cluster.partition(state.topic, state.partition)
            if info is not None:
                self.supply.see_leader_epoch(state, info.leader_epoch)
        self.supply.kick()

    def replace_assignment(self, partitions: Iterable[TopicPartition]) -> None:
        """These and no others; those that stay keep their positions."""
        wanted = set(partitions)
        for state in self.assignment:
            if state.topic_partition not in wanted:
                self.assignment.remove(state.topic_partition)
                self.prefetch.drop(state)
        for partition in sorted(wanted):
            self.assignment.add(partition)
        self._changed()

    # The group

    def need_store(self, what: str) -> OffsetStore:
        if self.store is None:
            raise NoGroup(f"{what} needs a group: give the consumer a group_id")
        return self.store

    def need_membership(self) -> Membership:
        """The membership, which runs from now on."""
        store = self.need_store("subscribe")
        if self.membership is None:
            self.membership = self._join(self.network, self.config, self.seat, self.clock)
            store.membership = self.membership
            self._member_task = asyncio.get_running_loop().create_task(self.membership.run())
        return self.membership

    async def attend(self, *, is_done: bool = True) -> None:
        """The user is here: receive what waits, and raise what went wrong meanwhile. Who asks for more records, or for
        none ever, is done with those before: a rebalance that waits here commits them."""
        if self._is_closing:
            raise ClientClosed("the consumer was closed: make a new one")
        if is_done:
            self.prefetch.came_back()
        if self.membership is not None:
            self.membership.polled()
            try:
                await self.attention.receive()
                self.membership.raise_if_lost()
            finally:
                self.membership.polled()
        else:
            await self.attention.receive()

    async def first_assignment(self, deadline: float) -> None:
        """Wait until a member that joins has partitions. A group may be long in giving some, and cannot say that it
        will not."""
        while self.is_subscribed and not len(self.assignment) and (left := deadline - self.clock.monotonic()) > 0:
            await self.attend()
            if not len(self.assignment):
                await self.attention.wait_for_change(min(left, self.config.max_poll_interval_ms / 3000))

    def _attended(self) -> bool:
        """`attend` where nothing waits for the user, as mostly: that needs no coroutine."""
        if self._is_closing or self.attention.is_wanted:
            return False
        self.attention.let_go_on()
        if self.membership is not None:
            self.membership.polled()
            self.membership.raise_if_lost()
        return True

    def read_records(self) -> None:
        """Records are asked for: what was decoded for tables ahead of the user is theirs, and no bounds are."""
        if self.reader is not None:
            self.reader.close()

    async def next_chunk(self, deadline: float | None, gives_way: bool = False) -> Chunk | None:
        """The next chunk to take records from; None when there was none in time. With `gives_way`, the loop gets its
        turn also where nobody would wait."""
        self.read_records()
        if gives_way and self.prefetch.has_ready:
            await asyncio.sleep(0)
        while True:
            if not self._attended():
                await self.attend()
            self.prefetch.came_back()
            chunk = self.prefetch.next_chunk()
            if chunk is not None:
                return chunk
            left = None if deadline is None else deadline - self.clock.monotonic()
            if left is not None and left <= 0:
                return None
            # As `wait` does, without its coroutines: every record that is waited for passes here.
            wait = self.attention.begin_to_wait(self._at_most(left))
            if wait is not None:
                try:
                    await wait
                finally:
                    self.attention.end_wait(wait)

    def watch(self, look_again: Callable[[], None]) -> bool:
        """Have it called when there is something for the user; False where there is more to do than to wait."""
        if not len(self.assignment) or not self._attended():
            return False
        if self.membership is not None and self.config.max_poll_interval_ms < _SHORT_POLL_INTERVAL_MS:
            # The group has to hear of whoever waits more often than who looks out comes by.
            return False
        self.read_records()
        self.attention.on_ready = look_again
        return True

    def unwatch(self) -> None:
        self.attention.on_ready = None

    async def wait(self, timeout_seconds: float | None) -> None:
        """Until there is something for the user, or the time is over, or earlier: a user who waits here is not away,
        and the group has to hear of it from time to time."""
        await self.attention.wait(self._at_most(timeout_seconds))

    def _at_most(self, timeout_seconds: float | None) -> float | None:
        if self.membership is None:
            return timeout_seconds
        often = self.config.max_poll_interval_ms / 3000
        return often if timeout_seconds is None else min(timeout_seconds, often)

    # Commits

    def positions(self, *, settled: bool) -> dict[TopicPartition, OffsetAndMetadata]:
        """The position in every partition that has one; with `settled`, only up to what the user is done with."""
        return {
            state.topic_partition: OffsetAndMetadata(
                state.settled_offset if settled else state.next_offset, "", state.next_epoch
            )
            for state in self.assignment
            if state.is_known
        }

    async def commit(self, offsets: Offsets, timeout_seconds: float, *, skips_deleted: bool = False) -> None:
        store = self.need_store("commit")
        await store.commit(offsets, timeout_seconds, skips_deleted=skips_deleted)
        self._committed.update({partition: committed.offset for partition, committed in offsets.items()})

    async def commit_changed(self, offsets: Offsets, timeout_seconds: float) -> None:
        """Commit those that moved since they were committed last, but for those of topics that were deleted."""
        moved = {
            partition: offset
            for partition, offset in offsets.items()
            if self._committed.get(partition) != offset.offset
        }
        if moved:
            await self.commit(moved, timeout_seconds, skips_deleted=True)

    async def _commit_at_parting(self, partitions: Iterable[TopicPartition]) -> None:
        if not self.config.enable_auto_commit:
            return
        settled = self.positions(settled=True)
        leaving = {partition: settled[partition] for partition in partitions if partition in settled}
        left = max(self._ends_at - self.clock.monotonic(), _LEAST_COMMIT_SECONDS)
        seconds = min(left, _PARTING_COMMIT_SECONDS)
        # Else whoever gets the partitions reads again from the last commit: at least once is kept.
        with suppress(CommitFailed, BrokerUnavailable, TimeoutError):
            async with asyncio.timeout(seconds) as self._parting:
                try:
                    await self.commit_changed(leaving, seconds)
                finally:
                    self._parting = None

    def _shorten_parting(self, seconds: float) -> None:
        """A commit that a rebalance began in an earlier call has no more time than the close that waits for it."""
        parting = self._parting
        if parting is not None and not parting.expired():
            ends_at = asyncio.get_running_loop().time() + seconds
            parting.reschedule(min(ends_at, parting.when() or ends_at))

    async def _tick(self) -> None:
        """Commit by interval, and tell the group that the user comes back, record by record."""
        interval = self.config.auto_commit_interval_ms / 1000
        tick = min(_TICK_SECONDS, self.config.max_poll_interval_ms / 3000)
        due = self.clock.monotonic() + interval
        while True:
            await asyncio.sleep(max(min(tick, due - self.clock.monotonic()), 0.01))
            progress = self.prefetch.progress
            if self.membership is not None and progress != self._progress:
                self._progress = progress
                self.membership.polled()
            if self.clock.monotonic() < due:
                continue
            due = self.clock.monotonic() + interval
            if self.config.enable_auto_commit:
                await self._auto_commit()

    async def _auto_commit(self) -> None:
        try:
            await self.commit_changed(self.positions(settled=True), self.config.request_timeout_ms / 1000)
        except (CommitFailed, BrokerUnavailable):
            # The next one, or the one at a rebalance, tells the same and more.
            return
        except OttlaError as error:
            self.attention.report(error)

    def keep(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Run it beside everything else; `close` waits for it."""
        task = asyncio.get_running_loop().create_task(work)
        self._kept.add(task)
        task.add_done_callback(self._kept.discard)
        return task

    async def list_topics(self, timeout_seconds: float) -> list[str]:
        response = await self.network.ask_any(
            MetadataRequest(topics=None), MetadataResponse, timeout_seconds=timeout_seconds
        )
        return sorted(topic.name or "" for topic in response.topics if not topic.error_code and not topic.is_internal)

    # The end

    async def close(self, timeout_seconds: float, *, settled_only: bool) -> None:
        """1. Commit, if auto. 2. Leave the group, with all that a rebalance needs. 3. Stop asking brokers. 4. Raise
        what the commit was refused for, if it was: none of the others depends on it."""
        self._is_closing = True
        self.attention.wake()
        self._ends_at = deadline = self.clock.monotonic() + timeout_seconds
        self._shorten_parting(max(timeout_seconds, _LEAST_COMMIT_SECONDS))
        refusal = None
        await _stop(self._ticking)
        if self._kept:
            await asyncio.wait(list(self._kept), timeout=timeout_seconds)
        try:
            if not settled_only:
                self.prefetch.came_back()
                for state in self.assignment:
                    if state.lead is not None:
                        state.lead.settle()
            refusal = await self._commit_at_close(deadline)
            if self.membership is not None:
                await self._leave(self.membership, deadline)
        finally:
            await _stop(self._member_task)
            await self.supply.close()
            self.attention.close()
        if refusal is not None:
            raise refusal

    async def _commit_at_close(self, deadline: float) -> OttlaError | None:
        """What the user must know, where it was refused for good."""
        if self.store is None or not self.config.enable_auto_commit:
            return None
        left = max(deadline - self.clock.monotonic(), _LEAST_COMMIT_SECONDS)
        try:
            with suppress(CommitFailed, BrokerUnavailable):
                await self.commit_changed(self.positions(settled=True), left)
        except OttlaError as error:
            return error
        return None

    async def _leave(self, membership: Membership, deadline: float) -> None:
        """Give back what is owned: whoever closes receives the rebalance that comes of it."""
        left = max(deadline - self.clock.monotonic(), 0.1)
        leaving = asyncio.get_running_loop().create_task(membership.leave(left))
        leaving.add_done_callback(lambda _: self.attention.wake())
        while not leaving.done():
            try:
                await self.attention.receive()
            except OttlaError:
                continue
            if not leaving.done() and not self.attention.is_wanted:
                await self.attention.wait_for_visit(leaving)
        await leaving


async def _stop(task: "asyncio.Task[None] | None") -> None:
    if task is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
