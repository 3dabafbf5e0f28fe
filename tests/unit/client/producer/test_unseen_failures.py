"""Records that failed without anybody looking: `flush` and `close` raise, once."""

import asyncio
import logging
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from ottla.client.errors import BrokerError, RecordTooLarge, Undelivered, Unfinished, UnknownTopic
from ottla.client.producer.producer import AsyncProducer
from ottla.client.sync.producer import Producer
from ottla.protocol.errors import ErrorCode
from ottla.testing import TestBroker

NOWHERE = "127.0.0.1:1"
PATIENCE_SECONDS = 30
TOO_LARGE = bytes(2000)


@pytest.fixture
def small(ottla: TestBroker) -> TestBroker:
    """A broker whose topic `t` takes small records only."""
    ottla.create_topic("t", configs={"max.message.bytes": "1000"})
    return ottla


@pytest.fixture
def producer(small: TestBroker) -> Iterator[Producer[Any, Any]]:
    with Producer[Any, Any](small.bootstrap_servers, linger_ms=1) as producer:
        yield producer


def test_flush_raises_what_nobody_looked_at_and_says_how_much_and_why(producer: Producer[Any, Any]) -> None:
    for _ in range(3):
        producer.send("t", TOO_LARGE)
    producer.send("t", b"small")
    with pytest.raises(Undelivered, match=r"3 records were not delivered: .*max\.message\.bytes") as failed:
        producer.flush()
    assert failed.value.count == 3
    assert isinstance(failed.value.__cause__, RecordTooLarge)


def test_a_failure_is_reported_once(producer: Producer[Any, Any]) -> None:
    producer.send("t", TOO_LARGE)
    with pytest.raises(Undelivered):
        producer.flush()
    producer.flush()
    producer.close()


def _send_in_with(bootstrap: str, *values: bytes, leave: BaseException | None = None, **settings: Any) -> None:
    partition = settings.pop("partition", None)
    topic = settings.pop("topic", "t")
    with Producer(bootstrap, **settings) as producer:
        for value in values:
            producer.send(topic, value, partition=partition)
        if leave is not None:
            raise leave


def test_the_end_of_with_raises(small: TestBroker) -> None:
    with pytest.raises(Undelivered, match="1 record was not delivered"):
        _send_in_with(small.bootstrap_servers, TOO_LARGE)


def test_a_partition_that_is_not_there_is_no_silent_loss(small: TestBroker) -> None:
    with pytest.raises(Undelivered, match="partitions 0 to 0, not 99"):
        _send_in_with(small.bootstrap_servers, b"value", max_block_ms=20, partition=99)


def test_a_missing_topic_is_no_silent_loss(ottla: TestBroker) -> None:
    with pytest.raises(Undelivered, match="topic missing does not exist") as failed:
        _send_in_with(ottla.bootstrap_servers, b"value", max_block_ms=20, topic="missing")
    assert isinstance(failed.value.cause, UnknownTopic)


def test_no_broker_is_no_silent_loss() -> None:
    with pytest.raises(Undelivered, match=r"2 records were not delivered: .*are the brokers reachable"):
        _send_in_with(NOWHERE, b"value", b"value", max_block_ms=20)


def _ask_for_result(producer: Producer[Any, Any]) -> None:
    with pytest.raises(RecordTooLarge):
        producer.send("t", TOO_LARGE).result()


def _ask_for_exception(producer: Producer[Any, Any]) -> None:
    assert isinstance(producer.send("t", TOO_LARGE).exception(), RecordTooLarge)


def _give_callback(producer: Producer[Any, Any]) -> None:
    producer.send("t", TOO_LARGE, on_delivery=lambda metadata, error: None)


def _give_listener(producer: Producer[Any, Any]) -> None:
    producer.send("t", TOO_LARGE).add_done_callback(lambda delivery: None)


def _ask_table(producer: Producer[Any, Any]) -> None:
    table = pa.table({"value": pa.array([TOO_LARGE] * 3)})
    assert isinstance(producer.send_table("t", table, value="value", batch_bytes=1).exception(), RecordTooLarge)


@pytest.mark.parametrize("look", [_ask_for_result, _ask_for_exception, _give_callback, _give_listener, _ask_table])
def test_a_failure_that_was_looked_at_is_not_reported(
    producer: Producer[Any, Any], look: Callable[[Producer[Any, Any]], None], caplog: pytest.LogCaptureFixture
) -> None:
    look(producer)
    producer.flush()
    producer.close()


def test_a_failure_that_is_looked_at_before_the_flush_is_not_reported(producer: Producer[Any, Any]) -> None:
    delivery, other = producer.send("t", TOO_LARGE), producer.send("t", TOO_LARGE)
    for one in (other, delivery):
        assert isinstance(one.exception(), RecordTooLarge)
        assert isinstance(one.exception(), RecordTooLarge)
    producer.flush()


def test_a_wait_that_was_given_up_is_no_look(small: TestBroker) -> None:
    producer = Producer[Any, Any](small.bootstrap_servers, linger_ms=100)
    delivery = producer.send("t", TOO_LARGE)
    with pytest.raises(Unfinished):
        delivery.result(timeout=0)
    with pytest.raises(Undelivered):
        producer.close()


def test_interceptors_do_not_count_as_looking(small: TestBroker) -> None:
    class Quiet:
        def on_acknowledgement(self, metadata: object, error: object) -> None: ...

    with pytest.raises(Undelivered):
        _send_in_with(small.bootstrap_servers, TOO_LARGE, interceptor_classes=[Quiet()])


def test_a_table_that_nobody_looks_at_counts_its_rows(producer: Producer[Any, Any]) -> None:
    producer.send_table("t", pa.table({"value": pa.array([TOO_LARGE] * 3)}), value="value")
    with pytest.raises(Undelivered, match="3 records"):
        producer.flush()


def test_what_left_the_block_gets_a_note_and_is_not_replaced(small: TestBroker) -> None:
    with pytest.raises(ZeroDivisionError) as left:
        _send_in_with(small.bootstrap_servers, TOO_LARGE, leave=ZeroDivisionError())
    assert "1 record was not delivered" in left.value.__notes__[0]


def test_one_error_per_period_is_logged(producer: Producer[Any, Any], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "ottla"):
        for _ in range(2):
            producer.send("t", TOO_LARGE, partition=0)
            with pytest.raises(Undelivered):
                producer.flush()
    assert [record.getMessage().partition(",")[0] for record in caplog.records] == ["1 records were not delivered"] * 2


def test_a_broken_transaction_is_reported_by_its_commit_alone(ottla: TestBroker) -> None:
    ottla.create_topic("t")
    with Producer(ottla.bootstrap_servers, transactional_id="one") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        ottla.faults.error("PRODUCE", ErrorCode.INVALID_RECORD)
        producer.send("t", b"value")
        producer.flush()
        producer.abort_transaction()


def test_the_async_producer_reports_alike(small: TestBroker) -> None:
    async def run() -> None:
        async with AsyncProducer(small.bootstrap_servers) as producer:
            producer.send("t", TOO_LARGE)
            with pytest.raises(Undelivered):
                await producer.flush()
            results = await asyncio.gather(
                producer.send("t", TOO_LARGE), producer.send("t", TOO_LARGE), producer.flush(), return_exceptions=True
            )
            assert [type(one) for one in results] == [RecordTooLarge, RecordTooLarge, type(None)]
            producer.send("t", TOO_LARGE)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as left:
        asyncio.run(run())
    assert "1 record was not delivered" in left.value.__notes__[0]


def test_ctrl_c_without_a_broker_ends_at_once_and_says_what_was_lost() -> None:
    """It does not wait for the time in which records may be delivered, nor for that of a request, which is 30 s."""
    with pytest.raises(KeyboardInterrupt) as left:
        _send_in_with(NOWHERE, b"value", b"value", leave=KeyboardInterrupt())
    assert "2 records were not delivered: the producer was closed" in left.value.__notes__[0]


def test_ctrl_c_with_a_broker_lets_it_acknowledge_what_was_sent(small: TestBroker) -> None:
    deliveries = []

    def send() -> None:
        with Producer(small.bootstrap_servers, linger_ms=60_000) as producer:
            producer.partitions_for("t")
            deliveries.append(producer.send("t", b"value"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as left:
        send()
    assert not getattr(left.value, "__notes__", [])
    assert deliveries[0].result().offset == 0


def test_a_flush_that_ends_early_counts_records_of_topics_that_are_not_known_yet() -> None:
    producer = Producer[Any, Any](NOWHERE)
    producer.send("t", b"value")
    with pytest.raises(Unfinished, match=r": 1 record is still on its way"):
        producer.flush(timeout=0)
    with pytest.raises(Undelivered):
        producer.close(timeout=0)


def test_undelivered_can_be_pickled() -> None:
    error = Undelivered(3, BrokerError(ErrorCode.INVALID_RECORD, "why"))
    again = pickle.loads(pickle.dumps(error))
    assert (again.count, str(again), str(again.cause)) == (3, str(error), "why")
