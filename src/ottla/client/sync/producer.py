"""The sync producer."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType
from typing import Any, Generic, Self

from ottla.client.producer.batches import Delivery
from ottla.client.producer.failures import add_to
from ottla.client.producer.interceptors import OnDelivery
from ottla.client.producer.producer import AsyncProducer, Key, Value
from ottla.client.sync.life import ended, started
from ottla.client.sync.loop_thread import LoopThread, blocking, in_loop


class Producer(Generic[Key, Value]):
    """Sends records to Ottla or Apache Kafka.

        with Producer("localhost:9092", acks="all", linger_ms=10) as producer:
            delivery = producer.send("orders", b"value", key=b"42")
            print(delivery.result().offset)

    Settings are Kafka's, as keywords or, with `config=`, by their dotted names. Any number of threads may send with one
    producer; requests and answers are the work of a thread of its own. `send` waits only while `buffer.memory` is full.
    Leaving the `with` block sends what is left and waits for it.
    """

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str] | None = None,
        *,
        config: Mapping[str, object] | None = None,
        **settings: Any,
    ) -> None:
        self._thread = LoopThread("producer")
        self._client: AsyncProducer[Key, Value] = AsyncProducer(bootstrap_servers, config=config, **settings)
        engine = self._client.engine
        engine.appender.full = engine.room.block
        engine.waking.lender = self._thread
        engine.appender.rouse = self._thread.rouse
        self._thread.is_unobserved = engine.waking.is_unobserved
        # Nothing stands between the caller and the async producer's own `send`, which may be native code.
        self.send = self._client.send  # type: ignore[method-assign]
        self._finalizer = started(self._thread, self, self._client.start)

    def close(self, timeout: float | None = None) -> None:
        """Send what is there, wait for it for at most `timeout` seconds, abort an open transaction, and disconnect.

        Records that are still on their way by then fail with ClientClosed. May be called twice, also while another
        thread is at it: both wait until it is done. Raises Undelivered, when all is closed, where records failed and
        nobody looked at their deliveries.
        """
        ended(self._thread, self._finalizer, self._client.close, timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
            return
        try:
            self.close(self._client.closing_seconds(error))
        except Exception as failure:
            add_to(error, failure)

    def send(
        self,
        topic: str,
        value: Value | None = None,
        key: Key | None = None,
        headers: Mapping[str, bytes | None] | Iterable[tuple[str, bytes | None]] | None = None,
        timestamp: int | datetime | None = None,
        partition: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Delivery:
        """Put a record into the batch of its partition, and give its `Delivery`: `result()` waits for it.

        The partition is the given one, or what the partitioner picks: by the key, the same as Java's client; without a
        key, one after the other, a batch each. `timestamp` is in milliseconds, or a datetime; now, if there is none.
        `on_delivery(metadata, error)` is called in the producer's own thread, one of the two None.

        Waits for room in `buffer.memory` for at most `max.block.ms`, then raises BufferFull. Raises SerializationError
        and RecordTooLarge; everything else comes with the delivery.
        """
        return self._client.send(topic, value, key, headers, timestamp, partition, on_delivery)

    send_table = blocking(AsyncProducer.send_table)
    flush = blocking(AsyncProducer.flush)
    partitions_for = blocking(AsyncProducer.partitions_for)
    metrics = in_loop(AsyncProducer.metrics)

    # Transactions

    init_transactions = blocking(AsyncProducer.init_transactions)
    begin_transaction = in_loop(AsyncProducer.begin_transaction)
    send_offsets_to_transaction = blocking(AsyncProducer.send_offsets_to_transaction)
    commit_transaction = blocking(AsyncProducer.commit_transaction)
    stage_transaction = blocking(AsyncProducer.stage_transaction)
    abort_transaction = blocking(AsyncProducer.abort_transaction)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Begin; at the end commit, or abort when something was raised.

        with producer.transaction():
            producer.send("orders", b"1")
            producer.send("payments", b"2")
        """
        self.begin_transaction()
        try:
            yield
            self.commit_transaction()
        except BaseException:
            transactions = self._client.engine.transactions
            if transactions is not None and transactions.is_open():
                self.abort_transaction()
            raise
