"""What one caller sends to a partition comes in the order in which it was sent, records and tables alike."""

import asyncio
import contextlib
import functools
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pyarrow as pa
import pytest

from ottla import AsyncAdmin
from ottla.client.cluster import Cluster
from ottla.client.config import ProducerConfig, resolve
from ottla.client.connections import Connections
from ottla.client.errors import ClientClosed, Undelivered
from ottla.client.producer.producer import AsyncProducer
from ottla.client.producer.tables import TableSending
from ottla.runtime.real import SystemIds
from ottla.testing import TestBroker
from ottla.testing.runtime import InlineExecutor, MovableClock

PATIENCE_SECONDS = 60
DELIVERY_TIMEOUT_MS = 120_000
SETTINGS: dict[str, Any] = {"buffer_memory": 10_000, "linger_ms": 0, "max_block_ms": 10 * DELIVERY_TIMEOUT_MS}
TABLE = pa.table({"value": pa.array([b"2", b"3"], pa.binary())})


class _Gate(Connections):
    """Nothing leaves while it is shut."""

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(resolve(ProducerConfig, bootstrap_servers, None, {}), ids=SystemIds())
        self.opened = asyncio.Event()
        self.opened.set()

    def is_open(self, node_id: int) -> bool:
        return self.opened.is_set() and super().is_open(node_id)

    async def reach(self, node_id: int) -> None:
        await self.opened.wait()
        await super().reach(node_id)


def _in_thread(work: Callable[..., object], *arguments: object, **named: object) -> None:
    thread = threading.Thread(target=work, args=arguments, kwargs=named)
    thread.start()
    thread.join()


async def _send_without_room(producer: AsyncProducer, topic: str, value: bytes) -> Any:
    """A record whose topic is known, that waits for its room: another thread has taken it for the topic `other`."""
    appender = producer.engine.appender
    choose = appender.choose

    def take_the_room(queues: Any) -> None:
        """The last that happens before the record is put in."""
        choose(queues)
        if queues.name == topic:
            appender.choose = choose
            _in_thread(producer.send, "other", bytes(appender.available_bytes - 25), partition=0)

    appender.choose = take_the_room
    producer.send("other", bytes(1000), partition=0)
    delivery = producer.send(topic, value)
    await producer.partitions_for(topic)
    assert appender.available_bytes < 0
    return delivery


@contextlib.asynccontextmanager
async def _producer_without_room(ottla: TestBroker, clock: MovableClock) -> AsyncIterator[tuple[Any, Any, Any]]:
    """A producer behind a gate that is shut, and the delivery of the record `1` that waits for room in `t`."""
    for topic in ("t", "other"):
        ottla.create_topic(topic)
    gate = _Gate(ottla.bootstrap_servers)
    async with AsyncProducer(ottla.bootstrap_servers, network=gate, clock=clock, **SETTINGS) as producer:
        producer._tables = TableSending(producer.engine, InlineExecutor())
        await producer.send("other", b"x")
        gate.opened.clear()
        yield producer, gate, await _send_without_room(producer, "t", b"1")


async def _begun(work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
    task = asyncio.create_task(work)
    await _all_that_need_not_wait()
    return task


async def _all_that_need_not_wait() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_table_comes_behind_records_that_wait_for_room(ottla: TestBroker) -> None:
    clock = MovableClock()

    async def run() -> None:
        async with _producer_without_room(ottla, clock) as (producer, gate, first):
            sending = await _begun(producer.send_table("t", TABLE, value="value"))
            clock.advance(DELIVERY_TIMEOUT_MS)
            gate.opened.set()
            await _all_that_need_not_wait()
            # Flushes stand for the timer, which does not notice that the clock was moved.
            with pytest.raises(Undelivered, match="records for other-0"):
                await producer.flush()
            table = await sending
            last = producer.send("t", b"4")
            await producer.flush()
            assert [(await first).offset, (await table).ranges[0].first_offset, (await last).offset] == [0, 1, 3]

    asyncio.run(run())
    assert [record.value for record in ottla.records("t")] == [b"1", b"2", b"3", b"4"]


def test_a_table_that_waits_for_records_before_it_ends_with_the_producer(ottla: TestBroker) -> None:
    async def run() -> None:
        async with _producer_without_room(ottla, MovableClock()) as (producer, _, first):
            sending = await _begun(producer.send_table("t", TABLE, value="value"))
            with pytest.raises(Undelivered):
                await producer.close(0)
            async with asyncio.timeout(PATIENCE_SECONDS):
                for waiting in (sending, first):
                    with pytest.raises(ClientClosed, match="was closed"):
                        await waiting

    asyncio.run(run())


def test_a_flush_ends_with_the_producer(ottla: TestBroker) -> None:
    async def run() -> None:
        async with _producer_without_room(ottla, MovableClock()) as (producer, _, first):
            flushing = await _begun(producer.flush())
            closing = asyncio.ensure_future(producer.close(0))
            async with asyncio.timeout(PATIENCE_SECONDS):
                told = await asyncio.gather(flushing, closing, return_exceptions=True)
            assert sum(isinstance(one, Undelivered) for one in told) == 1
            assert first.done()

    asyncio.run(run())


class _Interrupted:
    """A sender; just before and just after its next turn, another thread does something."""

    def __init__(self, sender: Any, *works: Callable[[], object]) -> None:
        self._sender = sender
        self._works = list(works)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sender, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_sender", "_works"):
            super().__setattr__(name, value)
        else:
            setattr(self._sender, name, value)

    def turn(self, now: float) -> Any:
        works, self._works = self._works, []
        for work in works[:1]:
            _in_thread(work)
        result = self._sender.turn(now)
        for work in works[1:]:
            _in_thread(work)
        return result


def test_records_for_a_partition_that_becomes_known_meanwhile_keep_their_order(ottla: TestBroker) -> None:
    ottla.create_topic("t")
    network = Connections(resolve(ProducerConfig, ottla.bootstrap_servers, None, {"metadata_max_age_ms": 100}))
    producer = AsyncProducer(ottla.bootstrap_servers, network=network)
    sends = [functools.partial(producer.send, "t", b"%d" % number, partition=1) for number in range(2)]

    def changed(old: Cluster, new: Cluster) -> None:
        """The producer is told after this."""
        if "t" in new.topics and len(new.topics["t"].partitions) == 2:
            sender: Any = _Interrupted(producer.engine.sender, *sends)
            producer.engine.sender = sender

    async def run() -> None:
        network.on_cluster(changed)
        async with producer, AsyncAdmin(ottla.bootstrap_servers) as admin:
            await producer.send("t", b"x")
            (await admin.create_partitions({"t": 2})).raise_for_errors()
            while len(network.cluster.topics["t"].partitions) < 2:
                await network.updated(network.cluster, PATIENCE_SECONDS)
            await producer.flush(PATIENCE_SECONDS)

    asyncio.run(run())
    assert [record.value for record in ottla.records("t", 1)] == [b"0", b"1"]
