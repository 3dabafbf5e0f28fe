"""The face of AsyncProducer: waiting, memory, threads, ends."""

import asyncio
import multiprocessing
import threading
from typing import Any

import pytest
from tests.waiting import tries

from ottla.client.errors import (
    BrokerError,
    BrokerUnavailable,
    BufferFull,
    ClientClosed,
    ConfigError,
    ForkedClient,
    OttlaError,
    Undelivered,
    Unfinished,
)
from ottla.client.producer.batches import Delivery
from ottla.client.producer.producer import AsyncProducer
from ottla.client.types import RecordMetadata
from ottla.testing import TestBroker


class Background:
    """A producer whose loop runs in a thread of its own, as the sync face has it."""

    def __init__(self, broker: TestBroker, **settings: Any) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.producer = AsyncProducer(broker.bootstrap_servers, **settings)
        self.producer.engine.appender.full = self.producer.engine.room.block
        self.run(self.producer.start())

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)

    def close(self) -> None:
        self.run(self.producer.close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


def test_deliveries_can_be_awaited_asked_and_called_back(ottla: TestBroker) -> None:
    ottla.create_topic("t")
    told: list[int] = []

    async def run() -> None:
        async with AsyncProducer(ottla.bootstrap_servers) as producer:
            delivery = producer.send("t", b"x")
            delivery.add_done_callback(lambda done: told.append(done.result().offset))
            assert not delivery.done()
            with pytest.raises(Unfinished, match="await"):
                delivery.result()
            assert (await delivery).offset == 0
            assert delivery.done()
            assert delivery.exception() is None
            assert delivery.result() == await delivery == delivery.metadata()
            delivery.add_done_callback(lambda done: told.append(100))

    asyncio.run(run())
    assert told == [0, 100]


def test_a_task_that_is_cancelled_while_it_waits_harms_no_other(ottla: TestBroker) -> None:
    ottla.create_topic("t")

    async def run() -> RecordMetadata:
        async with AsyncProducer(ottla.bootstrap_servers, linger_ms=50) as producer:
            first, second = producer.send("t", b"1"), producer.send("t", b"2")

            async def wait() -> None:
                await first

            task = asyncio.ensure_future(wait())
            await asyncio.sleep(0)
            task.cancel()
            return await second

    assert asyncio.run(run()).offset == 1


def test_a_full_buffer_is_told_and_drain_makes_room(ottla: TestBroker) -> None:
    ottla.create_topic("t")

    async def run() -> int:
        refused = 0
        async with AsyncProducer(ottla.bootstrap_servers, buffer_memory=20_000, batch_size=2000) as producer:
            await producer.send("t", b"first")
            for number in range(300):
                while True:
                    try:
                        producer.send("t", b"%0500d" % number)
                        break
                    except BufferFull:
                        refused += 1
                        await producer.drain()
        return refused

    assert asyncio.run(run()) > 0
    assert [record.value for record in ottla.records("t")] == [b"first", *(b"%0500d" % number for number in range(300))]


@pytest.mark.parametrize("is_met", [False, True])
def test_draining_after_each_record_is_enough_from_the_first_on(ottla: TestBroker, is_met: bool) -> None:
    ottla.create_topic("t")

    async def run() -> None:
        async with AsyncProducer(ottla.bootstrap_servers, buffer_memory=20_000, batch_size=2000) as producer:
            if is_met:
                await producer.partitions_for("t")
            for number in range(300):
                producer.send("t", b"%0500d" % number)
                await producer.drain()

    asyncio.run(run())
    assert [record.value for record in ottla.records("t")] == [b"%0500d" % number for number in range(300)]


def test_a_record_larger_than_the_buffer_is_refused(ottla: TestBroker) -> None:
    ottla.create_topic("t")

    async def run() -> None:
        async with AsyncProducer(ottla.bootstrap_servers, buffer_memory=1000) as producer:
            await producer.send("t", b"first")
            with pytest.raises(BrokerError, match=r"buffer\.memory"):
                producer.send("t", bytes(2000))

    asyncio.run(run())


def test_flush_gives_up_waiting_in_time_and_can_be_called_again(ottla: TestBroker) -> None:
    ottla.create_topic("t")

    async def run() -> None:
        async with AsyncProducer(ottla.bootstrap_servers, retry_backoff_ms=5) as producer:
            await producer.send("t", b"first")
            ottla.faults.error("PRODUCE", "NOT_ENOUGH_REPLICAS", times=None)
            producer.send("t", b"second")
            with pytest.raises(Unfinished, match="1 record is"):
                await producer.flush(0.05)
            ottla.faults.clear()
            await producer.flush(20)

    asyncio.run(run())
    assert len(ottla.records("t")) == 2


def test_close_fails_what_it_does_not_wait_for(ottla: TestBroker) -> None:
    ottla.create_topic("t")

    async def run() -> Delivery:
        producer = await AsyncProducer(ottla.bootstrap_servers, retry_backoff_ms=5).start()
        await producer.send("t", b"first")
        ottla.faults.error("PRODUCE", "NOT_ENOUGH_REPLICAS", times=None)
        delivery = producer.send("t", b"second")
        with pytest.raises(Undelivered, match="1 record was not delivered"):
            await producer.close(0.05)
        await producer.close()
        with pytest.raises(ClientClosed, match="closed"):
            producer.send("t", b"third")
        return delivery

    assert isinstance(asyncio.run(run()).exception(), ClientClosed)


def test_a_producer_that_was_not_started_says_so(ottla: TestBroker) -> None:
    async def run() -> None:
        producer = AsyncProducer(ottla.bootstrap_servers)
        with pytest.raises(ClientClosed, match="start"):
            producer.send("t", b"x")
        await producer.close()

    asyncio.run(run())


@pytest.mark.parametrize("name", ["", "a b", "x" * 250, "..", b"bytes", None])
def test_names_that_no_topic_has_are_refused_at_once(ottla: TestBroker, name: Any) -> None:
    async def run() -> None:
        async with AsyncProducer(ottla.bootstrap_servers) as producer:
            with pytest.raises(BrokerError, match="name of a topic"):
                producer.send(name, b"x")
            with pytest.raises(BrokerError, match="name of a topic"):
                await producer.partitions_for(name)

    asyncio.run(run())


def test_threads_send_and_wait_side_by_side(ottla: TestBroker) -> None:
    ottla.create_topic("t", partitions=3)
    background = Background(ottla, batch_size=1000, buffer_memory=60_000, linger_ms=1)
    offsets: dict[int, list[int]] = {}

    def work(number: int) -> None:
        deliveries = [
            background.producer.send("t", b"%d-%06d" % (number, one), partition=number) for one in range(2000)
        ]
        offsets[number] = [delivery.result(60).offset for delivery in deliveries]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    background.close()
    assert offsets == {number: list(range(2000)) for number in range(3)}
    for number in range(3):
        values = [record.value for record in ottla.records("t", number)]
        assert values == [b"%d-%06d" % (number, one) for one in range(2000)]


def test_threads_that_meet_a_new_topic_lose_nothing(ottla: TestBroker) -> None:
    ottla.create_topic("t")
    background = Background(ottla, linger_ms=0)
    counts = [3000] * 4
    barrier = threading.Barrier(len(counts))

    def work(number: int) -> None:
        barrier.wait()
        for one in range(counts[number]):
            background.producer.send("t", b"%d-%06d" % (number, one))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(counts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    background.close()
    values = [record.value or b"" for record in ottla.records("t")]
    assert len(values) == sum(counts)
    for number in range(len(counts)):
        own = [value for value in values if value.startswith(b"%d-" % number)]
        assert own == sorted(own)


def _send_until_known(producer: AsyncProducer, topic: str) -> None:
    """A busy machine may take longer than `max.block.ms` to learn of a topic."""
    for _ in range(1000):
        try:
            producer.send(topic, b"first").result(60)
        except BrokerUnavailable:
            continue
        return
    raise AssertionError(f"{topic} did not become known")


def test_a_full_buffer_blocks_another_thread_for_max_block_ms(ottla: TestBroker) -> None:
    ottla.create_topic("t")
    background = Background(ottla, buffer_memory=5000, max_block_ms=50, retry_backoff_ms=5, batch_size=1000)
    _send_until_known(background.producer, "t")
    ottla.faults.error("PRODUCE", "NOT_ENOUGH_REPLICAS", times=None)

    def fill() -> None:
        for _ in range(100):
            background.producer.send("t", bytes(500))

    with pytest.raises(BufferFull, match=r"max\.block\.ms"):
        fill()
    ottla.faults.clear()
    background.close()


def _use_after_fork(producer: AsyncProducer, answers: Any) -> None:
    try:
        producer.send("t", b"x")
    except OttlaError as error:
        answers.put(type(error).__name__)


def test_use_after_a_fork_is_refused(ottla: TestBroker) -> None:
    async def run() -> str:
        async with AsyncProducer(ottla.bootstrap_servers) as producer:
            context = multiprocessing.get_context("fork")
            answers = context.SimpleQueue()
            child = context.Process(target=_use_after_fork, args=(producer, answers))
            child.start()
            child.join()
            return str(answers.get())

    assert asyncio.run(run()) == ForkedClient.__name__


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"key_serializer": "avro"}, r"key\.serializer"),
        ({"partitioner": 5}, r"partitioner\.class"),
        ({"linger": 5}, "linger_ms"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        AsyncProducer("localhost:9092", **settings)


def test_a_partitioner_that_picks_what_is_not_there(ottla: TestBroker) -> None:
    ottla.create_topic("t", partitions=2)

    async def run() -> None:
        async with AsyncProducer(ottla.bootstrap_servers, partitioner=lambda topic, key, count: count) as producer:
            with pytest.raises(ConfigError, match="from 0 to 1"):
                await producer.send("t", b"x")
            with pytest.raises(ConfigError, match="from 0 to 1"):
                producer.send("t", b"x")

    asyncio.run(run())


def test_a_partitioner_that_fails_costs_its_own_records(ottla: TestBroker) -> None:
    ottla.create_topic("t")

    async def run() -> None:
        async with AsyncProducer(ottla.bootstrap_servers, partitioner=lambda topic, key, count: int(key)) as producer:
            bad, good = producer.send("t", b"x", key=b"one"), producer.send("t", b"y", key=b"0")
            with pytest.raises(OttlaError, match="the partitioner failed: ValueError"):
                await bad
            assert (await good).offset == 0
            with pytest.raises(ValueError, match="invalid literal"):
                producer.send("t", b"x", key=b"one")

    asyncio.run(run())


def test_a_record_that_need_not_linger_has_left_when_send_returns(ottla: TestBroker) -> None:
    """Whatever the coroutine does next: here it keeps its loop from everything else."""
    ottla.create_topic("t")

    async def run() -> bool:
        async with AsyncProducer(ottla.bootstrap_servers, linger_ms=0) as producer:
            await producer.send("t", b"first")
            producer.send("t", b"second")
            return any(len(ottla.records("t")) == 2 for _ in tries(30))

    assert asyncio.run(run())


def test_behind_one_record_another_leaves_at_once_and_more_leave_together(ottla: TestBroker) -> None:
    ottla.create_topic("t")

    async def run() -> None:
        async with AsyncProducer(ottla.bootstrap_servers, linger_ms=0) as producer:
            await producer.send("t", b"0")
            ottla.faults.delay("PRODUCE", 1.0, times=2)
            before = ottla.faults.requests("PRODUCE")
            deliveries = [producer.send("t", b"%d" % number) for number in range(1, 6)]
            # Nothing else of the loop has run yet.
            assert any(ottla.faults.requests("PRODUCE") - before == 2 for _ in tries(30))
            assert [(await one).offset for one in deliveries] == [1, 2, 3, 4, 5]
            assert ottla.faults.requests("PRODUCE") - before == 3

    asyncio.run(run())


def test_callbacks_that_send_without_lingering_keep_the_order(ottla: TestBroker) -> None:
    """They are called in the middle of the producer's own work, which must not begin anew in there."""
    ottla.create_topic("t", partitions=3)
    count = 200
    all_sent = asyncio.Event()

    async def run() -> None:
        async with AsyncProducer(ottla.bootstrap_servers, linger_ms=0, max_in_flight=1) as producer:

            def go_on(number: int) -> None:
                if number >= count:
                    all_sent.set()
                    return
                for partition in range(3):
                    wants_more = partition == number % 3
                    producer.send(
                        "t",
                        b"%d" % number,
                        partition=partition,
                        on_delivery=(lambda *_: go_on(number + 1)) if wants_more else None,
                    )

            go_on(0)
            await asyncio.wait_for(all_sent.wait(), 30)

    asyncio.run(run())
    for partition in range(3):
        assert [record.value for record in ottla.records("t", partition)] == [b"%d" % number for number in range(count)]


def test_a_record_that_is_refused_is_told_apart_from_the_others_of_its_batch(ottla: TestBroker) -> None:
    topic = "refused"
    ottla.create_topic(topic, configs={"cleanup.policy": "compact"})

    async def work() -> list[BaseException | RecordMetadata]:
        async with AsyncProducer(ottla.bootstrap_servers, linger_ms=10_000) as producer:
            sent = [producer.send(topic, b"v", key) for key in (b"a", None, b"b")]
            # They are looked at before flush, which raises for those that nobody looks at.
            outcomes = asyncio.gather(*sent, return_exceptions=True)
            await producer.flush()
            return await outcomes

    first, keyless, last = asyncio.run(work())
    assert "a key for every record expected" in str(keyless)
    for other in (first, last):
        assert "other records of its batch were refused" in str(other)
