"""Records that are sent before anything is known of their topic: as if it were known, only later."""

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from ottla import AsyncAdmin
from ottla.client.config import ProducerConfig, resolve
from ottla.client.connections import Connections
from ottla.client.errors import (
    BrokerUnavailable,
    BufferFull,
    ClientClosed,
    ConfigError,
    OttlaError,
    SerializationError,
    Undelivered,
    Unfinished,
    UnknownTopic,
    WrongType,
)
from ottla.client.producer.producer import AsyncProducer
from ottla.runtime.real import SystemClock, SystemIds
from ottla.testing import TestBroker

PATIENCE_SECONDS = 60
MAX_BLOCK_SECONDS = 60


class Clock(SystemClock):
    """The machine's, which can be put forward; timers that were set before do not notice."""

    def __init__(self) -> None:
        self.ahead_seconds = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead_seconds


class Number:
    """A whole number that is no int, like those of numpy."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value

    __int__ = __index__


def test_headers_are_those_of_the_time_of_sending(ottla: TestBroker) -> None:
    ottla.create_topic("t")

    async def run() -> None:
        async with AsyncProducer(ottla.bootstrap_servers) as producer:
            by_name: dict[str, bytes] = {}
            pairs: list[tuple[str, Any]] = [("n", bytearray(b"?"))]
            for number in range(3):
                by_name["n"] = b"%d" % number
                producer.send("t", b"dict", headers=by_name)
                pairs[0][1][:] = b"%d" % number
                producer.send("t", b"list", headers=pairs)
                producer.send("t", b"once", headers=(pair for pair in [("n", b"%d" % number)]))

    asyncio.run(run())
    found = [(record.value, dict(record.headers)["n"]) for record in ottla.records("t")]
    assert found == [(kind, b"%d" % number) for number in range(3) for kind in (b"dict", b"list", b"once")]


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        ({"headers": {"name": "text"}}, SerializationError, "header: bytes expected, str came"),
        ({"headers": {b"name": b"x"}}, SerializationError, "header: a name that is a str"),
        ({"headers": ["name"]}, SerializationError, "headers: pairs"),
        ({"timestamp": "today"}, WrongType, "timestamp: milliseconds since 1970 as an int, or a datetime, expected"),
        ({"timestamp": 1.7e9}, WrongType, r"of seconds, as time\.time\(\) has them, write int\(seconds \* 1000\)"),
        ({"partition": 1.0}, WrongType, "partition: a whole number"),
        ({"timestamp": 2**63}, SerializationError, "timestamp: a whole number"),
        ({"partition": "first"}, SerializationError, "partition: a whole number"),
        ({"partition": -1}, ConfigError, "partition: 0 or more"),
        ({"headers": {"name": bytes(3000)}}, OttlaError, "max.request.size"),
    ],
)
def test_what_is_wrong_with_a_record_is_said_at_once(
    ottla: TestBroker, wrong: dict[str, Any], kind: type[Exception], message: str, is_known: bool
) -> None:
    ottla.create_topic("t")

    async def run() -> None:
        async with AsyncProducer(ottla.bootstrap_servers, max_request_size=2000, buffer_memory=10_000) as producer:
            if is_known:
                await producer.send("t", b"x")
            room = producer.metrics()["buffer-available-bytes"]
            with pytest.raises(kind, match=message):
                producer.send("t", b"x", **wrong)
            assert producer.metrics()["buffer-available-bytes"] == room

    asyncio.run(run())


@pytest.mark.parametrize("partitioner", [None, lambda topic, key, count: 0])
def test_what_was_taken_has_room_when_its_topic_is_known(ottla: TestBroker, partitioner: Any) -> None:
    ottla.create_topic("t")
    headers = {"name": bytes(1000)}

    async def run() -> int:
        async with AsyncProducer(ottla.bootstrap_servers, buffer_memory=20_000, partitioner=partitioner) as producer:
            deliveries = []
            for number in range(100):
                try:
                    deliveries.append(producer.send("t", b"%d" % number, headers=headers))
                except BufferFull:
                    break
            assert [(await delivery).offset for delivery in deliveries] == list(range(len(deliveries)))
            return len(deliveries)

    assert 10 <= asyncio.run(run()) < 20


def test_the_first_record_may_be_as_large_as_any(ottla: TestBroker) -> None:
    ottla.create_topic("t")

    async def run() -> None:
        async with AsyncProducer(ottla.bootstrap_servers, buffer_memory=1000) as producer:
            await producer.send("t", bytes(900))

    asyncio.run(run())


def test_records_whose_room_is_taken_by_another_thread_wait_in_their_order(ottla: TestBroker) -> None:
    ottla.create_topic("t")
    ottla.create_topic("other")
    count = 6

    async def run() -> None:
        async with AsyncProducer(ottla.bootstrap_servers, buffer_memory=10_000, linger_ms=0) as producer:
            await producer.send("other", b"x")
            appender = producer.engine.appender
            choose = appender.choose

            def take_the_room(topic: Any) -> None:
                """The last that happens before a record of `t` is put in."""
                choose(topic)
                if topic.name == "t":
                    appender.choose = choose
                    value = bytes(appender.available_bytes - 25)
                    thief = threading.Thread(target=producer.send, args=("other", value), kwargs={"partition": 0})
                    thief.start()
                    thief.join()

            appender.choose = take_the_room
            deliveries = [producer.send("t", b"%d" % number) for number in range(count)]
            assert [(await delivery).offset for delivery in deliveries] == list(range(count))

    asyncio.run(run())
    assert [record.value for record in ottla.records("t")] == [b"%d" % number for number in range(count)]


def test_what_a_callback_sends_comes_behind_what_waited(ottla: TestBroker) -> None:
    ottla.create_topic("t")

    async def run() -> None:
        async with AsyncProducer(ottla.bootstrap_servers, partitioner=lambda topic, key, count: int(key)) as producer:
            producer.send("t", b"1", key=b"0")
            producer.send("t", b"?", key=b"?", on_delivery=lambda *_: producer.send("t", b"3", key=b"0"))
            producer.send("t", b"2", key=b"0")
            await producer.flush()

    asyncio.run(run())
    assert [record.value for record in ottla.records("t")] == [b"1", b"2", b"3"]


def test_a_callback_may_send_to_another_topic_that_becomes_known_by_that(ottla: TestBroker) -> None:
    ottla.create_topic("t")
    ottla.create_topic("other")
    clock = Clock()

    async def run() -> None:
        settings: dict[str, Any] = {"clock": clock, "partitioner": lambda topic, key, count: int(key)}
        async with AsyncProducer(ottla.bootstrap_servers, **settings) as producer:
            await producer.partitions_for("other")
            producer.send("t", b"?", key=b"?", on_delivery=lambda *_: producer.send("other", b"1", key=b"0"))
            behind = producer.send("t", b"x", partition=99)
            await producer.send("t", b"2", key=b"0")
            clock.ahead_seconds = MAX_BLOCK_SECONDS
            with pytest.raises(Undelivered, match="not 99"):
                await producer.flush(PATIENCE_SECONDS)
            assert behind.done()

    asyncio.run(run())
    assert [record.value for record in ottla.records("other")] == [b"1"]


def test_who_began_to_send_earlier_may_come_later(ottla: TestBroker) -> None:
    clock = Clock()
    told: list[int] = []

    async def run() -> None:
        async with AsyncProducer(ottla.bootstrap_servers, clock=clock) as producer:
            for began_at in (0, 10, 5):
                clock.ahead_seconds = began_at
                producer.send("missing", b"x", on_delivery=lambda *_, began_at=began_at: told.append(began_at))
            clock.ahead_seconds = MAX_BLOCK_SECONDS + 6
            with pytest.raises(Unfinished):
                await producer.flush(0)
            clock.ahead_seconds = MAX_BLOCK_SECONDS + 10
            await producer.flush(PATIENCE_SECONDS)

    asyncio.run(run())
    assert told == [0, 10, 5]


def test_room_that_does_not_come_back_is_waited_for_until_max_block_ms(ottla: TestBroker) -> None:
    ottla.create_topic("t")
    clock = Clock()

    async def run() -> None:
        async with AsyncProducer(ottla.bootstrap_servers, clock=clock, buffer_memory=10_000) as producer:
            appender = producer.engine.appender
            delivery = producer.send("t", b"x")
            room, appender.available_bytes = appender.available_bytes, -1000
            await producer.partitions_for("t")
            assert not delivery.done()
            clock.ahead_seconds = MAX_BLOCK_SECONDS
            with pytest.raises(BufferFull, match=r"buffer\.memory"):
                await asyncio.gather(producer.flush(), delivery)
            appender.available_bytes += room + 1000
            last = producer.send("t", b"y")
            await producer.flush(PATIENCE_SECONDS)
            assert (await last).offset == 0
            assert producer.metrics()["buffer-available-bytes"] == 10_000

    asyncio.run(run())


def test_a_record_that_comes_when_all_is_over_is_refused(ottla: TestBroker) -> None:
    async def run() -> None:
        producer = AsyncProducer(ottla.bootstrap_servers)
        await producer.start()
        loop = asyncio.get_running_loop()

        def slow_headers() -> Iterator[tuple[str, bytes]]:
            """The producer is open when they are asked for, and closed when they are there."""
            asyncio.run_coroutine_threadsafe(producer.close(0), loop).result(PATIENCE_SECONDS)
            yield "name", b"value"

        with pytest.raises(ClientClosed, match="was closed"):
            await asyncio.to_thread(producer.send, "t", b"x", headers=slow_headers())

    asyncio.run(run())


def test_with_a_partitioner_a_closed_producer_refuses_too(ottla: TestBroker) -> None:
    async def run() -> None:
        producer = AsyncProducer(ottla.bootstrap_servers, partitioner=lambda topic, key, count: 0)
        with pytest.raises(ClientClosed, match="not started"):
            producer.send("t", b"x")
        async with producer:
            pass
        with pytest.raises(ClientClosed, match="was closed"):
            producer.send("t", b"x")

    asyncio.run(run())


@pytest.mark.parametrize("partition", [99, Number(99)], ids=["int", "index"])
def test_a_partition_that_is_not_there_fails_its_record(ottla: TestBroker, partition: Any) -> None:
    ottla.create_topic("t", partitions=3)
    clock = Clock()

    async def run() -> None:
        async with AsyncProducer(ottla.bootstrap_servers, clock=clock) as producer:
            deliveries = [producer.send("t", b"x", partition=partition)]
            there: Any = Number(2)
            await producer.send("t", b"x", partition=there)
            deliveries.append(producer.send("t", b"x", partition=partition))
            clock.ahead_seconds = MAX_BLOCK_SECONDS
            with pytest.raises(Undelivered, match="2 records"):
                await producer.flush(PATIENCE_SECONDS)
            for delivery in deliveries:
                with pytest.raises(UnknownTopic, match="t has partitions 0 to 2, not 99"):
                    await delivery

    asyncio.run(run())


@pytest.mark.parametrize("is_written", [False, True])
def test_a_partition_that_is_not_there_is_waited_for_until_max_block_ms(ottla: TestBroker, is_written: bool) -> None:
    ottla.create_topic("t", partitions=3)

    async def run() -> None:
        async with AsyncProducer(ottla.bootstrap_servers, max_block_ms=200) as producer:
            await _meet(producer, "t")
            if is_written:
                await producer.send("t", b"x")
            async with asyncio.timeout(PATIENCE_SECONDS):
                with pytest.raises(UnknownTopic, match="t has partitions 0 to 2, not 99"):
                    await producer.send("t", b"x", partition=99)

    asyncio.run(run())


async def _meet(producer: AsyncProducer, topic: str) -> None:
    """A busy machine may take longer than `max.block.ms` to learn of a topic."""
    for _ in range(100):
        with contextlib.suppress(BrokerUnavailable, UnknownTopic):
            await producer.partitions_for(topic)
            return
    raise AssertionError(f"{topic} did not become known")


def test_a_partition_that_is_added_gets_the_records_that_waited_for_it(ottla: TestBroker) -> None:
    ottla.create_topic("t", partitions=1)

    async def run() -> None:
        async with AsyncProducer(ottla.bootstrap_servers, linger_ms=0) as producer:
            await producer.send("t", b"x")
            deliveries = [producer.send("t", b"%d" % number, partition=1) for number in range(3)]
            async with AsyncAdmin(ottla.bootstrap_servers) as admin:
                await admin.create_partitions({"t": 2})
            deliveries.append(producer.send("t", b"3", partition=1))
            assert [(await delivery).offset for delivery in deliveries] == list(range(4))

    asyncio.run(run())
    assert [record.value for record in ottla.records("t", 1)] == [b"%d" % number for number in range(4)]


class _Watched(Connections):
    """Counts who watches which topic."""

    def __init__(self, config: ProducerConfig) -> None:
        super().__init__(config, ids=SystemIds())
        self.watchers: Counter[str] = Counter()
        self.is_less = asyncio.Event()

    def watch_topics(self, names: Iterable[str]) -> None:
        names = list(names)
        self.watchers.update(names)
        super().watch_topics(names)

    def unwatch_topics(self, names: Iterable[str]) -> None:
        names = list(names)
        self.watchers.subtract(names)
        self.is_less.set()
        super().unwatch_topics(names)


def test_a_topic_is_watched_while_it_is_waited_for_and_used(ottla: TestBroker) -> None:
    ottla.create_topic("t")
    ottla.create_topic("prompt")
    network = _Watched(resolve(ProducerConfig, ottla.bootstrap_servers, None, {}))
    clock = Clock()

    async def run() -> None:
        async with AsyncProducer(ottla.bootstrap_servers, network=network, clock=clock) as producer:
            missing = [producer.send(name, b"x") for name in ("missing", "mistyped")]
            await producer.send("t", b"x")
            assert set(+network.watchers) == {"missing", "mistyped", "t"}
            clock.ahead_seconds = MAX_BLOCK_SECONDS
            with pytest.raises(Undelivered, match="2 records"):
                await producer.flush(PATIENCE_SECONDS)
            for delivery in missing:
                with pytest.raises(UnknownTopic, match="create it"):
                    await delivery
            async with asyncio.timeout(PATIENCE_SECONDS):
                while +network.watchers != {"t": 1}:
                    await network.is_less.wait()
                    network.is_less.clear()
            await producer.partitions_for("prompt")
            producer.send("prompt", b"x")
            await producer.flush(PATIENCE_SECONDS)
            assert +network.watchers == {"t": 1, "prompt": 1}

    asyncio.run(run())
    assert min(network.watchers.values()) == 0
