"""Programs without a loop: what they send is read again, by records, in groups, in tables, in transactions."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Iterator
from itertools import islice
from typing import Any, cast

import pyarrow as pa
import pytest
from tests.compat.client.conftest import Either
from tests.waiting import until_settled

from ottla import Admin, Consumer, OttlaError, Producer, TopicPartition
from ottla.client.admin import NewTopic
from ottla.client.errors import (
    BufferFull,
    ClientClosed,
    ConfigError,
    ForkedClient,
    Interrupted,
    RecordTooLarge,
    UnknownTopic,
)

# Without a handler of SIGALRM, the main thread runs the loop of a consumer that it waits for.
pytestmark = pytest.mark.timeout(300, method="thread")

PATIENCE_SECONDS = 60.0


@pytest.fixture
def new_topic(bootstrap: str, topic: str) -> Iterator[str]:
    with Admin(bootstrap) as admin:
        admin.create_topics([NewTopic(topic, partitions=2)]).raise_for_errors()
        yield topic


def from_beginning(bootstrap: str, topic: str, **settings: Any) -> Consumer[Any, Any]:
    consumer: Consumer[Any, Any] = Consumer(bootstrap, **settings)
    consumer.assign([(topic, 0, 0), (topic, 1, 0)])
    return consumer


def test_what_is_sent_is_delivered_and_read(bootstrap: str, new_topic: str) -> None:
    with Producer(bootstrap, linger_ms=10) as producer:
        delivery = producer.send(new_topic, b"first", key=b"42", headers={"trace": b"1"}, partition=1)
        metadata = delivery.result(PATIENCE_SECONDS)
        assert (metadata.topic, metadata.partition, metadata.offset) == (new_topic, 1, 0)
        for number in range(100):
            producer.send(new_topic, b"%d" % number, partition=1)
        producer.flush(PATIENCE_SECONDS)
    with from_beginning(bootstrap, new_topic) as consumer:
        found = list(islice(consumer, 101))
    assert [record.offset for record in found] == list(range(101))
    assert (found[0].key, found[0].value, list(found[0].headers)) == (b"42", b"first", [("trace", b"1")])
    assert found[-1].value == b"99"


def test_threads_may_share_a_producer(bootstrap: str, new_topic: str) -> None:
    with Producer(bootstrap) as producer:

        def send(name: int) -> None:
            for number in range(500):
                producer.send(new_topic, b"%d %d" % (name, number), partition=0)

        senders = [threading.Thread(target=send, args=(name,)) for name in range(4)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
    with from_beginning(bootstrap, new_topic) as consumer:
        rows = [tuple(map(int, value.split())) for value in consumer.to_arrow().column("value").to_pylist()]
    assert len(rows) == 2000
    for name in range(4):
        assert [number for who, number in rows if who == name] == list(range(500))


def test_a_group_goes_on_where_it_was(bootstrap: str, new_topic: str) -> None:
    with Producer(bootstrap) as producer:
        for number in range(20):
            producer.send(new_topic, b"%d" % number, partition=number % 2)
    settings: dict[str, Any] = {"group_id": f"group-of-{new_topic}", "auto_offset_reset": "earliest"}
    heard: list[str] = []

    class Listener:
        def on_assigned(self, partitions: list[TopicPartition]) -> None:
            heard.append(threading.current_thread().name)

    seen: list[Any] = []
    with Consumer[Any, Any](bootstrap, **settings) as consumer:
        consumer.subscribe([new_topic], listener=Listener())
        for record in consumer:
            seen.append(record.value)
            if len(seen) == 7:
                break
    assert heard == [threading.current_thread().name]
    with Consumer[Any, Any](bootstrap, **settings) as consumer:
        consumer.subscribe([new_topic])
        while len(seen) < 20:
            seen += [record.value for record in consumer.poll(PATIENCE_SECONDS)]
        assert consumer.poll() == []
        assert consumer.lag() == {TopicPartition(new_topic, 0): 0, TopicPartition(new_topic, 1): 0}
    assert sorted(map(int, seen)) == list(range(20))


def test_tables_go_in_and_come_out(bootstrap: str, new_topic: str) -> None:
    table = pa.table({"user": ["ann", "bo", "ann"], "amount": [1, 2, 3]})
    with Producer(bootstrap) as producer:
        sent = producer.send_table(new_topic, table, key="user")
        assert sent.result(PATIENCE_SECONDS).record_count == 3
    with from_beginning(bootstrap, new_topic) as consumer:
        read = consumer.to_arrow(value_format="json")
        assert sorted(read.column("amount").to_pylist()) == [1, 2, 3]
        assert consumer.poll() == []
    with from_beginning(bootstrap, new_topic) as consumer:
        rows = sum(each.num_rows for each in consumer.tables(timeout=2.0))
    assert rows == 3


def test_a_transaction_is_read_as_a_whole_or_not_at_all(bootstrap: str, new_topic: str) -> None:
    with Producer(bootstrap, transactional_id=f"id-of-{new_topic}") as producer:
        producer.init_transactions(PATIENCE_SECONDS)
        with producer.transaction():
            producer.send(new_topic, b"kept", partition=0)

        def fail() -> None:
            with producer.transaction():
                producer.send(new_topic, b"dropped", partition=0)
                divmod(1, 0)

        with pytest.raises(ZeroDivisionError):
            fail()
    until_settled(bootstrap)
    with from_beginning(bootstrap, new_topic, isolation_level="read_committed") as consumer:
        assert consumer.to_arrow().column("value").to_pylist() == [b"kept"]


def test_what_is_wrong_is_said_and_the_client_stays_usable(bootstrap: str, new_topic: str) -> None:
    with pytest.raises(ConfigError, match="linger"):
        Producer(bootstrap, lingr_ms=5)
    with Producer(bootstrap, max_block_ms=5000, max_request_size=10_000) as producer:
        with pytest.raises(UnknownTopic):
            producer.send("no-such-topic", b"x").result(PATIENCE_SECONDS)
        with pytest.raises(RecordTooLarge):
            producer.send(new_topic, bytes(20_000))
        with pytest.raises((TypeError, OttlaError)):
            producer.send(new_topic, cast(Any, 42))
        assert producer.send(new_topic, b"fine", partition=0).result(PATIENCE_SECONDS).offset == 0
    with pytest.raises(ClientClosed):
        producer.send(new_topic, b"late")
    with Consumer[Any, Any](bootstrap) as consumer:
        with pytest.raises(OttlaError, match="subscribe or assign"):
            consumer.poll()
        consumer.assign([(new_topic, 0, 0)])
        assert [record.value for record in consumer.poll(PATIENCE_SECONDS)] == [b"fine"]
    with pytest.raises(ClientClosed):
        consumer.poll()
    producer.close()
    consumer.close()


def test_a_full_buffer_blocks_and_then_says_so(either: Either, new_topic: str) -> None:
    """The broker stands still, so what is taken stays: records of a topic that nobody knows would be given up."""
    with Producer(either.bootstrap, buffer_memory=100_000, max_block_ms=200, batch_size=1000) as producer:
        taken = [producer.send(new_topic, b"first", partition=0)]
        taken[0].result(PATIENCE_SECONDS)
        with either.server.paused(), pytest.raises(BufferFull, match=r"max\.block\.ms"):
            taken.extend(producer.send(new_topic, bytes(1000), partition=0) for _ in range(1000))
        assert 1 < len(taken) <= 100
        offsets = [delivery.result(PATIENCE_SECONDS).offset for delivery in taken]
        assert offsets == list(range(len(taken)))
        assert producer.send(new_topic, b"last", partition=0).result(PATIENCE_SECONDS).offset == len(taken)


def test_another_thread_may_wake_a_consumer(bootstrap: str, new_topic: str) -> None:
    with from_beginning(bootstrap, new_topic) as consumer:
        threading.Timer(0.2, consumer.wakeup).start()
        with pytest.raises(Interrupted):
            next(iter(consumer))
        assert consumer.poll(0.01) == []


def test_a_child_of_a_fork_is_refused(bootstrap: str, new_topic: str) -> None:
    ours, theirs = multiprocessing.Pipe()
    with Producer(bootstrap) as producer, from_beginning(bootstrap, new_topic) as consumer:
        producer.send(new_topic, b"before", partition=0).result(PATIENCE_SECONDS)

        def child() -> None:
            for call in (lambda: producer.send(new_topic, b"x"), consumer.poll, producer.flush, producer.close):
                try:
                    call()
                except ForkedClient:
                    theirs.send("refused")
                else:
                    theirs.send("done")

        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
        assert [ours.recv() for _ in range(3)] == ["refused"] * 3
        process.join(PATIENCE_SECONDS)
        assert producer.send(new_topic, b"after", partition=0).result(PATIENCE_SECONDS).offset == 1
