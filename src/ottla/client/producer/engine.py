"""The producer's loop: turns of the sender, their requests and answers, and everybody who waits for something.

Everything here runs in the loop's thread, but for what `Appender.append` calls: `unknown`,
`_make_batch`, `_choose` and `_seal` may run in any.
"""

import asyncio
import logging
import threading
from collections.abc import Coroutine, Mapping
from typing import Any

from ottla.client.cluster import Cluster
from ottla.client.config import ProducerConfig
from ottla.client.errors import (
    ClientClosed,
    ForkedClient,
    OttlaError,
    TransactionAborted,
    TransactionError,
    Unfinished,
)
from ottla.client.network import Network
from ottla.client.producer._twin import twin
from ottla.client.producer.batches import Batch, Delivery
from ottla.client.producer.courier import Courier
from ottla.client.producer.identity import ask_for_identity
from ottla.client.producer.idle_topics import IdleTopics
from ottla.client.producer.known_topics import KnownTopics
from ottla.client.producer.metrics import ProducerMetrics
from ottla.client.producer.partitions import PartitionQueue, StickyChoice, TopicQueues
from ottla.client.producer.room import Room
from ottla.client.producer.sender import Sender
from ottla.client.producer.sequences import Sequences
from ottla.client.producer.transactions import Transactions
from ottla.client.producer.unknown_topics import UnknownTopics
from ottla.client.producer.waking import Waking
from ottla.records import Codec
from ottla.runtime import Clock, Executor, IdSource
from ottla.runtime.real import SystemClock

logger = logging.getLogger(__name__)

# A timer that is due within this is not set anew for one that is due a little earlier.
_TIMER_SLACK_SECONDS = 0.0005


class Engine:
    """`start` binds it to the running loop. `appender` is what records are put into, from any thread."""

    def __init__(
        self, config: ProducerConfig, network: Network, clock: Clock, ids: IdSource, executor: Executor
    ) -> None:
        self.config = config
        self.network = network
        self.cluster = network.cluster
        self._clock = clock
        self._executor = executor
        self.metrics = ProducerMetrics()
        limit_bytes = min(config.max_request_size, config.buffer_memory)
        self.appender = twin.Appender(config.buffer_memory, config.batch_size, limit_bytes)
        self.sequences = Sequences(config.transactional_id is not None) if config.enable_idempotence else None
        self.transactions: Transactions | None = None
        if self.sequences is not None and config.transactional_id is not None:
            self.transactions = Transactions(config, network, self.sequences, self)
        self.sender = Sender(config, self.appender, self, ids, self.sequences, self.metrics, self.transactions)
        self.waking = Waking(self.appender, self.sender, config.linger_ms, self._turn)
        self._idle_topics = IdleTopics(network, config.metadata_max_idle_ms / 1000)
        patience = config.max_block_ms / 1000
        self.unknown_topics = UnknownTopics(self.appender, network, self._idle_topics, patience)
        self.known_topics = KnownTopics(
            self.appender,
            network,
            self._idle_topics,
            self.unknown_topics,
            clock,
            patience,
            turn=self._turn,
            next_turn=self._next_turn,
        )
        self.room = Room(
            self.appender, config.buffer_memory, config.max_block_ms, clock, wake=self.waking.wake, turn=self._turn
        )
        self._courier = Courier(
            network,
            self.sender,
            self.transactions,
            clock,
            wants_answers=config.acks != 0,
            retry_seconds=config.retry_backoff_ms / 1000,
            spawn=self.spawn,
            landed=self._landed,
        )
        self.fatal: OttlaError | None = None
        self.is_forked = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closing = False
        self._serial = 0
        self._flushes = 0
        self._turn_waiters: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = float("inf")
        self._tasks: set[asyncio.Task[None]] = set()
        self._identity_task: asyncio.Task[None] | None = None
        self._equip(ids)

    def _equip(self, ids: IdSource) -> None:
        appender, config = self.appender, self.config
        appender.clock = None if isinstance(self._clock, SystemClock) else self._clock
        appender.ignores_keys = config.partitioner_ignore_keys
        appender.seals_early = self.sender.codec is not Codec.NONE
        appender.make_batch = self._make_batch
        self._choice = appender.choose = StickyChoice(ids, config, self._clock)
        appender.unknown = self.unknown
        appender.full = self.room.refuse
        appender.refuse = self._refuse
        appender.wake = self.waking.record_came
        appender.seal = self._seal
        appender.refuses = True

    def start(self) -> None:
        self._loop = self.waking.loop = asyncio.get_running_loop()
        self.appender.own()
        self.appender.refuses = self.transactions is not None
        self.cluster = self.network.cluster
        self.network.on_cluster(self._cluster_changed)
        self._turn()

    # What the sender is told.

    def request_update(self) -> None:
        self.network.request_update()

    def is_ready(self, node_id: int) -> bool:
        return self._courier.is_ready(node_id)

    # Called by the appender, in any thread.

    def _make_batch(self, queue: PartitionQueue) -> Batch:
        batch = Batch(self.appender, queue, self._clock.monotonic())
        self._serial += 1
        batch.serial = self._serial
        return batch

    def new_batch(self, queue: PartitionQueue, payload: Any, **what: Any) -> Batch:
        """A closed one, whose records were encoded elsewhere."""
        batch = Batch.of_payload(self.appender, queue, self._clock.monotonic(), payload, **what)
        self._serial += 1
        batch.serial = self._serial
        return batch

    def unknown(self, *arguments: Any) -> Delivery:
        """A record whose partition is not known, with all the arguments of `append`."""
        delivery = self.unknown_topics.add(arguments, self._clock.monotonic(), self._clock.now_ms())
        is_met = arguments[0] in self.network.cluster.topics and arguments[0] not in self.appender.topics
        if is_met and threading.get_ident() == self.appender.owner_thread:
            self.waking.without_turns(self.unknown_topics.place, self._clock.monotonic())
            if not len(self.unknown_topics):
                return delivery
        # Whoever drains lets the loop look.
        self.appender.pause_at = 0
        if not self.appender.is_waking:
            self.appender.is_waking = True
            self.waking.wake()
        return delivery

    def _refuse(self) -> None:
        if self.is_forked:
            raise ForkedClient("this producer was made before the process forked: make one in the child")
        if self.fatal is not None:
            raise self.fatal.with_traceback(None)
        if self._is_closing:
            raise ClientClosed("the producer was closed: make a new one")
        if self._loop is None:
            raise ClientClosed("the producer was not started: `await producer.start()`, or use `async with`")
        if self.transactions is not None:
            self.transactions.check_may_append()
            return
        raise TransactionError("the producer takes no records now")

    def _seal(self, batch: Batch) -> None:
        batch.seal(self.sender.codec, self.sender.level)

    # Whole batches.

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def pick(self, queues: TopicQueues) -> int:
        """A partition for a batch without keys."""
        return self._choice.pick(queues)

    async def room_for(self, size_bytes: int) -> None:
        await self.room.wait_for(size_bytes)

    def put(self, batch: Batch) -> None:
        if self.appender.refuses:
            self._refuse()
        self.appender.add_closed(batch.queue, batch, batch.size_bytes)
        self._turn()

    # Turns.

    def _cluster_changed(self, old: Cluster, new: Cluster) -> None:
        # Before the sender learns of it, which sends to whatever is there.
        self.unknown_topics.grow(new)
        self.cluster = new
        self._idle_topics.look(self._clock.monotonic())
        self._turn()

    def _landed(self) -> None:
        """A turn after an answer, which mostly finds nothing to do."""
        appender, sequences = self.appender, self.sequences
        is_idle = not (appender.active or self._turn_waiters or self.room or self.transactions)
        if is_idle and not len(self.unknown_topics) and (sequences is None or sequences.is_settled):
            # One broker has a request less: it would take another one.
            appender.is_hungry = True
            self.sender.end_turn(0)
        else:
            self._turn()

    def _turn(self) -> None:
        """Send what may be sent."""
        self.waking.without_turns(self._do_turn)

    def _do_turn(self) -> None:
        appender = self.appender
        # In this order: whatever is put in from here on wakes the loop again.
        appender.is_waking = False
        appender.is_timer_set = False
        if self.is_forked:
            return
        now = self._clock.monotonic()
        look_at = self.unknown_topics.look(now) if self.unknown_topics.has_work else None
        if self.sequences is not None and not self.sequences.identity.is_valid and self.transactions is None:
            self._identify()
        self.sender.hurries = self._flushes + len(self.room) + self._is_closing
        shipments, next_at = self.sender.turn(now)
        self._idle_topics.shipped(shipments, now)
        for shipment in shipments:
            self._courier.carry(shipment)
        if self.sender.to_compress:
            self._compress()
        if self.transactions is not None and self.transactions.must_abort:
            self._drop_unsent(TransactionAborted("not sent, because another record of its transaction failed"))
        if self.room:
            self.room.offer()
        if self._turn_waiters:
            self._tell_turn_waiters()
        if self.unknown_topics.can_go_on:
            look_at = now
        self._set_timer(next_at if look_at is None else min(next_at, look_at), now)
        self.sender.end_turn(len(shipments))

    def _set_timer(self, at: float, now: float) -> None:
        loop = self._loop
        assert loop is not None
        if at < self._timer_at - _TIMER_SLACK_SECONDS:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at = at
            self._timer = loop.call_later(max(at - now, 0.0), self._on_timer)
        self.appender.is_timer_set = self._timer_at <= now + self.config.linger_ms / 1000

    def _on_timer(self) -> None:
        self._timer = None
        self._timer_at = float("inf")
        self._turn()

    def _compress(self) -> None:
        for batch in self.sender.to_compress:
            self.spawn(self._compress_one(batch))
        self.sender.to_compress = []

    async def _compress_one(self, batch: Batch) -> None:
        try:
            await self._executor.run(batch.compress, self.sender.codec, self.sender.level)
        except Exception as error:
            if not batch.is_done:
                self.sender.fail_all(OttlaError(f"compressing failed: {error}"), [batch])
        self._turn()

    def spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # What transactions need.

    def allow_appending(self, allowed: bool) -> None:
        self.appender.refuses = not allowed or self._is_closing

    async def drop_all(self, error: OttlaError) -> bool:
        """Give up what was not sent and wait for what was; whether something that may be in the log was given up."""
        was_lost = False
        self.unknown_topics.give_up_all(error)
        self._tell_turn_waiters()
        while batches := list(self.appender.incomplete):
            idle = [batch for batch in batches if not batch.is_in_flight]
            was_lost |= any(batch.sequence >= 0 for batch in idle)
            self.sender.fail_all(error, idle)
            if len(idle) < len(batches):
                await self._next_turn()
        return was_lost

    def _drop_unsent(self, error: OttlaError) -> None:
        """Nothing of a broken transaction goes out any more: whoever waits for it is told now."""
        self.unknown_topics.give_up_all(error)
        self.sender.fail_all(error, [batch for batch in self.appender.incomplete if not batch.is_in_flight])

    def turn_soon(self) -> None:
        self.waking.wake()

    # The producer's id.

    def _identify(self) -> None:
        if self._identity_task is None or self._identity_task.done():
            self._identity_task = self.spawn(self._ask_for_identity())

    async def _ask_for_identity(self) -> None:
        assert self.sequences is not None
        try:
            identity = await ask_for_identity(self.network)
        except OttlaError as error:
            self.fail(error)
            return
        self.sequences.begin(identity)
        self._turn()

    def fail(self, error: OttlaError) -> None:
        """Nothing can be sent any more: tell everybody who waits, and everybody who comes."""
        self.fatal = error
        self.appender.refuses = True
        self.unknown_topics.give_up_all(error)
        self.sender.fail_all(error)
        self._turn()

    # Waiting.

    def _tell_turn_waiters(self) -> None:
        waiters, self._turn_waiters = self._turn_waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def flush(self, timeout: float | None = None) -> None:
        """Send everything that is there now, without lingering, and wait until it is done, one way or the other."""
        started = self._clock.monotonic()
        self._flushes += 1
        try:
            self._turn()
            async with asyncio.timeout(timeout):
                while len(self.unknown_topics):
                    await self._next_turn()
                last = self._serial
                while any(batch.serial <= last for batch in list(self.appender.incomplete)):
                    await self._next_turn()
        except TimeoutError:
            left = self.unknown_topics.record_count + sum(batch.count for batch in list(self.appender.incomplete))
            still = "1 record is still on its way" if left == 1 else f"{left} records are still on their way"
            raise Unfinished(f"not flushed within {timeout} s: {still}") from None
        finally:
            self._flushes -= 1
            self.metrics.flush_seconds += self._clock.monotonic() - started

    async def _next_turn(self) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._turn_waiters.append(future)
        await future

    def numbers(self) -> Mapping[str, float]:
        return self.metrics.as_dict(self.appender, self.config.buffer_memory, self.sender.in_flight_requests)

    async def close(self, timeout: float | None) -> None:
        """Wait for what is on its way, fail what is left, end the connections."""
        self._is_closing = True
        self.appender.refuses = True
        error: OttlaError = ClientClosed("the producer was closed before the record was acknowledged")
        try:
            if self.fatal is None and not self.is_forked and self._loop is not None:
                await self.flush(timeout)
        except Unfinished as unfinished:
            logger.info("closed too early: %s", unfinished)
        finally:
            self.unknown_topics.give_up_all(error)
            self.sender.fail_all(error)
            self.room.offer(to_all=True)
            self._tell_turn_waiters()
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at = float("-inf")
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*list(self._tasks), return_exceptions=True)
            await self.network.close()
