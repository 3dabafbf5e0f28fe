"""The async consumer: the face that users see."""

import asyncio
import functools
import os
import re
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self

from ottla.client.closing import Closing
from ottla.client.config import ConsumerConfig, resolve
from ottla.client.connections import Connections
from ottla.client.consumer._twin import AsyncRecordIterator, Chunk, Record
from ottla.client.consumer.arguments import Committable, Partition, Place, partition_of, partitions_of, places_of
from ottla.client.consumer.arguments import offsets_to_commit as _offsets_to_commit
from ottla.client.consumer.core import Core, MakeMembership
from ottla.client.consumer.groups import RunListener, run_here
from ottla.client.consumer.joining import join_group
from ottla.client.consumer.offsets import OffsetQueries
from ottla.client.consumer.positions import Position
from ottla.client.consumer.tables import Tables
from ottla.client.consumer.values import GroupMetadata
from ottla.client.errors import ClientClosed, ConfigError, ConsumerError, ForkedClient, NotAssigned, OttlaError
from ottla.client.network import Network
from ottla.client.serializers import deserializer_of
from ottla.client.types import OffsetAndMetadata, TopicPartition
from ottla.runtime import Clock
from ottla.runtime.real import SystemClock

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Key = TypeVar("Key", default=bytes)
    Value = TypeVar("Value", default=bytes)
else:
    from typing import TypeVar

    Key = TypeVar("Key")
    Value = TypeVar("Value")

_CLOSE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Parts:
    """What a consumer is made of where it is not on a machine of its own: a simulation has another network and clock,
    and the sync face runs listeners in another thread."""

    network: Network | None = None
    clock: Clock = field(default_factory=SystemClock)
    join: MakeMembership = join_group
    run_listener: RunListener = run_here
    lock: AbstractContextManager[object] = field(default_factory=Lock)


class AsyncConsumer(OffsetQueries, Tables, Generic[Key, Value]):
    """Reads records from topics.

        async with AsyncConsumer("localhost:9092", group_id="billing", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(["orders"])
            async for record in consumer:
                print(record.key, record.value)

    It is generic in the types of keys and values: bytes, or what the deserializers make of them, as in
    `AsyncConsumer[str, Order](..., key_deserializer=str, value_deserializer=order_of)`.

    Settings are Kafka's, as keywords (`fetch_min_bytes=1`) or by their dotted names in `config`. One task uses it at a
    time. With a group, what was handed out counts as done when the next record is asked for, and only what is done is
    committed: a consumer that dies repeats a record, and misses none.

    The methods `take`, `ready_chunk` and `wakeup_from_thread` may be called from another thread than the loop's, by
    one thread at a time; all others belong to the loop.
    """

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str] | None = None,
        *,
        config: Mapping[str, object] | None = None,
        parts: Parts | None = None,
        **settings: Any,
    ) -> None:
        self.config: ConsumerConfig = resolve(ConsumerConfig, bootstrap_servers, config, settings)
        for name, given in (("key", self.config.key_deserializer), ("value", self.config.value_deserializer)):
            deserializer_of(given, f"{name}.deserializer")
        self._parts = parts or Parts()
        self._clock = self._parts.clock
        self._opened: Core | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.closing = Closing()
        self._is_closed = False
        self._topics: frozenset[str] | re.Pattern[str] | None = None
        self._process_id = os.getpid()

    # Life

    async def start(self) -> None:
        """Begin. `async with` does it, too. Brokers are not waited for: what needs them says when it has none."""
        if self._opened is not None:
            return
        self._check_usable()
        network = self._parts.network
        if network is None:
            connections = Connections(self.config, has_long_polls=True)
            connections.start()
            network = connections
        self._loop = asyncio.get_running_loop()
        parts = self._parts
        self._opened = Core(self.config, network, parts.clock, parts.join, parts.run_listener, parts.lock)
        self._opened.start()

    async def close(self, timeout: float = _CLOSE_SECONDS, *, settled_only: bool = False) -> None:
        """Commit positions (if auto), leave the group, and let go of everything. A second call waits for the first.
        Listeners that run meanwhile may still commit.

        With `settled_only` the record that was handed out last is not committed: its work may not be done.
        """
        if self._opened is None:
            self._is_closed = True
            return
        await self.closing.once(functools.partial(self._close, self._opened, timeout, settled_only), timeout)

    async def _close(self, opened: Core, timeout: float, settled_only: bool) -> None:
        opened.prefetch.interrupt()
        try:
            if self._process_id == os.getpid():
                await opened.close(timeout, settled_only=settled_only)
        finally:
            self._is_closed = True
            await opened.network.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(settled_only=kind is not None)

    def _check_usable(self) -> None:
        if self._is_closed:
            raise ClientClosed("the consumer was closed: make a new one")
        if self._process_id != os.getpid():
            raise ForkedClient("the consumer was made in the parent of this process: make one here")

    @property
    def _core(self) -> Core:
        self._check_usable()
        if self._opened is None:
            raise ConsumerError("the consumer was not started: use it in `async with`, or await start()")
        return self._opened

    # What is read

    def subscribe(self, topics: str | Iterable[str] | re.Pattern[str], *, listener: object | None = None) -> None:
        """Read these topics together with the other members of the group. A pattern has to match whole names.

        `listener` may have the methods of RebalanceListener, each plain or a coroutine. Replaces what was subscribed
        before.
        """
        core = self._core
        if isinstance(topics, re.Pattern):
            wanted: frozenset[str] | re.Pattern[str] = topics
        else:
            wanted = frozenset([topics] if isinstance(topics, str) else topics)
            if not all(isinstance(name, str) and name for name in wanted):
                raise ConfigError(f"topics are names that are not empty, not {topics!r}")
        if self._topics is None and len(core.assignment):
            raise ConsumerError("partitions were assigned by hand: unsubscribe before a subscription")
        membership = core.need_membership()
        core.seat.listener = listener
        self._topics = wanted
        core.is_subscribed = True
        membership.subscribe(wanted)

    def assign(self, partitions: Iterable[Place]) -> None:
        """Read these partitions, whoever else does: `("orders", 0)`, or `("orders", 0, 42)` to begin at offset 42.

        Replaces what was assigned before; partitions that stay without an offset go on where they were.
        """
        core = self._core
        if self._topics is not None:
            raise ConsumerError("the consumer is subscribed: unsubscribe before partitions are assigned by hand")
        places = places_of(partitions)
        core.replace_assignment(places)
        for partition, offset in places.items():
            if offset is not None:
                self.seek(partition, offset)
        core.supply.kick()

    async def unsubscribe(self, timeout: float = _CLOSE_SECONDS) -> None:
        """Read nothing any more; a group is left, and positions are committed (if auto)."""
        core = self._core
        if self._topics is not None and core.membership is not None:
            core.membership.unsubscribe()
            deadline = self._clock.monotonic() + timeout
            while len(core.assignment) and (left := deadline - self._clock.monotonic()) > 0:
                await core.attend()
                if len(core.assignment):
                    await core.attention.wait(min(left, 0.1))
        core.is_subscribed = False
        core.replace_assignment([])
        self._topics = None

    @property
    def subscription(self) -> frozenset[str] | re.Pattern[str] | None:
        return self._topics

    @property
    def assignment(self) -> list[TopicPartition]:
        """The partitions that are read now, sorted."""
        return self._core.assignment.partitions()

    # Records

    async def poll(self, timeout: float = 0.0, max_records: int | None = None) -> list[Record[Key, Value]]:
        """Up to `max_records` (`max.poll.records` unless given), as soon as there are some; none after `timeout`
        seconds. To call it again is to be done with what it gave before."""
        core = self._core
        self._need_something()
        limit = self.config.max_poll_records if max_records is None else max_records
        deadline = self._clock.monotonic() + timeout
        core.read_records()
        while True:
            await core.attend()
            records = core.prefetch.take(limit)
            left = deadline - self._clock.monotonic()
            if records or left <= 0:
                return records
            await core.wait(left)

    def take(self, max_records: int | None = None) -> list[Record[Key, Value]]:
        """Up to that many records that are here already; an empty list means: poll. Safe from another thread."""
        core = self._core
        return core.prefetch.take(self.config.max_poll_records if max_records is None else max_records)

    def ready_chunk(self) -> Chunk | None:
        """For an iterator in another thread that has seen that the consumer may be used: the chunk to go on with, None
        where `next_chunk` has to be awaited."""
        core = self._opened
        if core is None:
            return None
        core.prefetch.came_back()
        return core.prefetch.next_chunk()

    def watch(self, look_again: Callable[[], None]) -> bool:
        """For a thread that runs the loop itself while it waits, and takes by itself what came: it is told to look.
        False where more is to be done than to wait: await `next_chunk` or `poll` then."""
        return self._core.watch(look_again)

    def unwatch(self) -> None:
        self._core.unwatch()

    async def next_chunk(self, timeout: float | None = None) -> Chunk | None:
        """Wait for one; None after `timeout` seconds."""
        return await self._ask_for_chunk(timeout)

    def _ask_for_chunk(self, timeout: float | None, *, gives_way: bool = False) -> Coroutine[Any, Any, Chunk | None]:
        core = self._core
        self._need_something()
        return core.next_chunk(None if timeout is None else self._clock.monotonic() + timeout, gives_way)

    def records(self, timeout: float | None = None) -> AsyncRecordIterator:
        """One record after the other, without an end; with `timeout`, until none came for so many seconds."""
        self._need_something()
        return AsyncRecordIterator(lambda: self._ask_for_chunk(timeout, gives_way=True), self.config.max_poll_records)

    def __aiter__(self) -> AsyncRecordIterator:
        return self.records()

    async def batches(
        self, max_records: int | None = None, timeout: float | None = None
    ) -> AsyncGenerator[list[Record[Key, Value]], None]:
        """Lists of records, each from one partition, without an end; with `timeout` as for `records`."""
        limit = self.config.max_poll_records if max_records is None else max_records
        while (chunk := await self.next_chunk(timeout)) is not None:
            records = self._core.prefetch.take_from(chunk, limit)
            if records:
                yield records

    def _need_something(self) -> None:
        if self._topics is None and not len(self._core.assignment):
            raise NotAssigned("there is nothing to read: call subscribe or assign first")

    def wakeup(self) -> None:
        """Make the call that waits now, or the next one, raise Interrupted."""
        self._core.attention.wake_up()

    def wakeup_from_thread(self) -> None:
        """The same from any thread."""
        loop, core = self._loop, self._core
        if loop is not None:
            loop.call_soon_threadsafe(core.attention.wake_up)

    # Where it stands

    def seek(self, partition: Partition, offset: int | OffsetAndMetadata) -> None:
        """Go on at that offset. What was buffered is forgotten."""
        core = self._core
        state = core.assignment.state(partition_of(partition))
        place = offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
        if place.offset < 0:
            raise ConfigError(f"an offset is a whole number from 0 on, not {place.offset}")
        core.prefetch.drop(state)
        state.stand_at(Position(place.offset, place.leader_epoch))
        core.supply.kick()

    def pause(self, partitions: Iterable[Partition] | None = None) -> None:
        """Hand out nothing of these (of all), and fetch nothing, until `resume`. What is buffered is kept."""
        core = self._core
        for state in core.assignment.states(partitions_of(partitions)):
            state.is_paused = True
            core.prefetch.hold(state)

    def resume(self, partitions: Iterable[Partition] | None = None) -> None:
        core = self._core
        for state in core.assignment.states(partitions_of(partitions)):
            state.is_paused = False
            core.prefetch.resume(state)
        core.supply.kick()
        core.attention.wake()

    @property
    def paused(self) -> list[TopicPartition]:
        return sorted(state.topic_partition for state in self._core.assignment if state.is_paused)

    # Commits

    async def commit(self, what: Committable | None = None, *, timeout: float | None = None) -> None:
        """Store how far the group has read: a record (the offset behind it), offsets by partition, or, without either,
        all that was handed out."""
        core = self._core
        core.need_store("commit")
        offsets = core.positions(settled=False) if what is None else _offsets_to_commit(what)
        await core.commit(offsets, self._api_seconds(timeout))

    def commit_async(
        self,
        what: Committable | None = None,
        callback: Callable[[dict[TopicPartition, OffsetAndMetadata], OttlaError | None], object] | None = None,
    ) -> "asyncio.Task[None]":
        """Begin to commit, and go on. `callback` gets the offsets, and what went wrong or None; so does whoever awaits
        the task that is returned."""
        core = self._core
        core.need_store("commit_async")
        offsets = core.positions(settled=False) if what is None else _offsets_to_commit(what)

        async def commit() -> None:
            failure: OttlaError | None = None
            try:
                await core.commit(offsets, self._api_seconds(None))
            except OttlaError as error:
                failure = error
                if callback is None:
                    raise
            if callback is not None:
                callback(offsets, failure)

        return core.keep(commit())

    async def committed(
        self, partitions: Iterable[Partition] | None = None, *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed for these (for all that are assigned); None where it has nothing."""
        core = self._core
        store = core.need_store("committed")
        wanted = partitions_of(partitions)
        asked = core.assignment.partitions() if wanted is None else wanted
        return await store.fetch(asked, self._api_seconds(timeout))

    def group_metadata(self) -> GroupMetadata:
        """Who this consumer is in its group, for `send_offsets_to_transaction`."""
        core = self._core
        store = core.need_store("group_metadata")
        if core.membership is None:
            return GroupMetadata(store.group_id)
        generation = core.membership.generation
        return GroupMetadata(store.group_id, generation.generation, generation.member_id, generation.instance_id)

    def metrics(self) -> dict[str, float]:
        """Numbers about this consumer, counted from its start."""
        core = self._core
        known = [state for state in core.assignment if state.is_known and state.high_watermark >= 0]
        return {
            "fetch_count": core.fetcher.fetch_count,
            "bytes_fetched": core.fetcher.fetched_bytes,
            "bytes_consumed": core.prefetch.consumed_bytes,
            "records_consumed": core.prefetch.consumed_records,
            "bytes_buffered": core.prefetch.buffered_bytes,
            "assigned_partitions": len(core.assignment),
            "records_lag_max": max((max(state.high_watermark - state.next_offset, 0) for state in known), default=0),
            "commit_count": 0 if core.store is None else core.store.commit_count,
            "rebalance_count": core.seat.rebalance_count,
        }

    def _api_seconds(self, timeout: float | None) -> float:
        return self.config.default_api_timeout_ms / 1000 if timeout is None else timeout
