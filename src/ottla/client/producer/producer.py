"""The face of the producer for programs that have an event loop."""

import asyncio
import os
import weakref
from collections.abc import Awaitable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Self

from ottla.client.closing import Closing
from ottla.client.cluster import PartitionInfo
from ottla.client.config import ProducerConfig, resolve
from ottla.client.connections import Connections
from ottla.client.errors import ConfigError, TransactionError
from ottla.client.network import Network
from ottla.client.producer.batches import Delivery
from ottla.client.producer.engine import Engine
from ottla.client.producer.failures import UnseenFailures, add_to
from ottla.client.producer.interceptors import Interceptors, OnDelivery, OutgoingRecord
from ottla.client.producer.partitions import Partitioner
from ottla.client.producer.tables import TableDelivery, TableSending
from ottla.client.producer.transaction_requests import GroupIdentity
from ottla.client.producer.transactions import Offsets, Transactions
from ottla.client.serializers import serialize, serializer_of
from ottla.client.types import StagedTransaction
from ottla.runtime import Clock, IdSource
from ottla.runtime.real import SystemClock, SystemIds, ThreadExecutor

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    # Without serializers, keys and values are bytes; before Python 3.13 only type checkers can be told.
    Key = TypeVar("Key", default=bytes)
    Value = TypeVar("Value", default=bytes)
else:
    from typing import TypeVar

    Key = TypeVar("Key")
    Value = TypeVar("Value")

_WORKERS = 2
_INTERRUPTED_SECONDS = 1.0
_alive: "weakref.WeakSet[AsyncProducer[Any, Any]]" = weakref.WeakSet()


def _forked() -> None:
    for producer in list(_alive):
        producer.engine.is_forked = True
        producer.engine.appender.refuses = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class AsyncProducer(Generic[Key, Value]):
    """Sends records to Ottla or Apache Kafka, from a program with an event loop.

    Settings are Kafka's, as keywords or by their dotted names:

        async with AsyncProducer("localhost:9092", linger_ms=10) as producer:
            delivery = producer.send("orders", b"value", key=b"42")
            metadata = await delivery

    `send` never waits: it puts the record into a batch and returns. A program that sends much awaits `drain()` in
    between, as with asyncio's streams. Idempotence is on, so that no retry writes a record twice.
    """

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str] | None = None,
        *,
        config: Mapping[str, object] | None = None,
        network: Network | None = None,
        clock: Clock | None = None,
        ids: IdSource | None = None,
        **settings: Any,
    ) -> None:
        self.config = resolve(ProducerConfig, bootstrap_servers, config, settings)
        self._key_serializer = serializer_of(self.config.key_serializer, "key.serializer")
        self._value_serializer = serializer_of(self.config.value_serializer, "value.serializer")
        self._partitioner = _partitioner_of(self.config.partitioner_class)
        self._interceptors = Interceptors(_many(self.config.interceptor_classes))
        self._executor = ThreadExecutor(_WORKERS)
        ids = ids or SystemIds()
        self._network = network or Connections(self.config, ids=ids)
        self.engine = Engine(self.config, self._network, clock or SystemClock(), ids, self._executor)
        self._failures = UnseenFailures(clock or SystemClock())
        if self.engine.transactions is None:
            self.engine.appender.failures = self._failures
        self._tables = TableSending(self.engine, self._executor)
        self.drain = self.engine.appender.drain  # type: ignore[method-assign]  # straight into native code, as `send`
        self._closing = Closing()
        if not (self._key_serializer or self._value_serializer or self._partitioner or self._interceptors):
            # Nothing stands between the caller and the native code.
            self.send = self.engine.appender.append  # type: ignore[method-assign]
        _alive.add(self)

    # Life.

    async def start(self) -> Self:
        """Begin to connect. Must be called, or `async with`, before anything is sent."""
        if isinstance(self._network, Connections):
            self._network.start()
        self.engine.start()
        return self

    async def close(self, timeout: float | None = None) -> None:
        """Send what is there, wait for it for at most `timeout` seconds, abort an open transaction, and disconnect.

        Records that are still on their way by then fail with ClientClosed. A second call waits for the first.
        Raises Undelivered, when all is closed, where records failed and nobody looked at their deliveries.
        """
        await self._closing.once(lambda: self._close(timeout), timeout)
        self._failures.raise_unseen()

    async def _close(self, timeout: float | None) -> None:
        transactions = self.engine.transactions
        try:
            if transactions is not None and transactions.is_open() and not self.engine.is_forked:
                await transactions.abort(timeout)
        finally:
            await self.engine.close(timeout)
            self._executor.shutdown()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            await self.close()
            return
        try:
            await self.close(self.closing_seconds(error))
        except Exception as failure:
            add_to(error, failure)

    def closing_seconds(self, error: BaseException) -> float:
        """How long to wait for brokers after an error, which they may be the reason for; hardly at all after a Ctrl-C
        or a cancellation, and only where a broker is connected, which may acknowledge what it has."""
        if isinstance(error, Exception):
            return self.config.request_timeout_ms / 1000
        is_connected = any(self._network.is_open(number) for number in list(self._network.cluster.nodes))
        return _INTERRUPTED_SECONDS if is_connected else 0.0

    # Records.

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
        """Put a record into the batch of its partition, and give the `Delivery` to await.

        The partition is the given one, or what the partitioner picks: by the key, the same as Java's client; without a
        key, one after the other, a batch each. `timestamp` is in milliseconds, or a datetime; now, if there is none.
        `on_delivery(metadata, error)` is called in the loop's thread, one of the two None, in the order of the records
        of a partition.

        Raises BufferFull when `buffer.memory` is used up (`await drain()`), SerializationError, RecordTooLarge;
        everything else comes with the delivery. Safe to call from any thread.
        """
        if self._interceptors:
            record = OutgoingRecord(topic, value, key, headers, timestamp, partition)
            topic, value, key, headers, timestamp, partition = self._interceptors.on_send(record)
            on_delivery = self._interceptors.acknowledging(on_delivery)
        key_bytes = serialize(self._key_serializer, topic, key, "key")
        value_bytes = serialize(self._value_serializer, topic, value, "value")
        if partition is None and self._partitioner is not None:
            known = self.engine.appender.topics.get(topic)
            if known is None:
                return self.engine.unknown(topic, value_bytes, key_bytes, headers, timestamp, self._picked, on_delivery)
            partition = self._picked(topic, key_bytes, len(known.partitions))
        return self.engine.appender.append(topic, value_bytes, key_bytes, headers, timestamp, partition, on_delivery)

    def _picked(self, topic: str, key: bytes | None, count: int) -> int:
        """What the user's partitioner says."""
        assert self._partitioner is not None
        picked = self._partitioner(topic, key, count)
        if not isinstance(picked, int) or not 0 <= picked < count:
            raise ConfigError(f"the partitioner picked {picked!r} for {topic}: a number from 0 to {count - 1} expected")
        return picked

    async def send_table(
        self,
        topic: str,
        table: Any,
        *,
        key: str | None = None,
        value: str | None = None,
        headers: str | None = None,
        timestamp: str | int | datetime | None = None,
        partition: str | int | None = None,
        batch_bytes: int | None = None,
    ) -> TableDelivery:
        """Send the rows of a table, without a Python object for a row; returns when all are in the buffer.

        A table is one of Arrow, a frame of pandas (its index is left out) or polars, or whatever else has
        `__arrow_c_stream__`.

        `key`, `value`, `headers`, `timestamp` and `partition` name columns; the last two may be numbers, for all rows.
        Keys and values are binary or string columns; a row without a partition goes where its key sends it. Without
        `value`, a row goes as a JSON object of the columns that have no other use. Rows of a partition keep their
        order. Batches are as large as `batch_bytes`, the larger of `batch.size` and about a megabyte unless given.
        Serializers, partitioner and interceptors are not asked.

            delivery = await producer.send_table("orders", table, key="user_id")
            metadata = await delivery
        """
        if self.engine.appender.refuses:
            self.engine.appender.refuse()
        return await self._tables.send(
            topic,
            table,
            key=key,
            value=value,
            headers=headers,
            timestamp=timestamp,
            partition=partition,
            batch_bytes=batch_bytes,
        )

    def drain(self) -> Awaitable[None]:
        """`await` it to wait until there is room for more; over at once while there is plenty."""
        return self.engine.appender.drain()

    async def flush(self, timeout: float | None = None) -> None:
        """Send everything that was put in so far, and wait until it is acknowledged or has failed.

        Raises Undelivered, once, where records failed and nobody looked at their deliveries: awaited them, asked them
        for a result or gave `send` a callback. In a transaction, `commit_transaction` raises instead.
        """
        await self.engine.flush(timeout)
        if self._failures:
            # Tasks that were begun together with this one may be about to look.
            await asyncio.sleep(0)
            self._failures.raise_unseen()

    async def partitions_for(self, topic: str) -> tuple[PartitionInfo, ...]:
        """The partitions of a topic, with their leaders; UnknownTopic when there is none within `max.block.ms`."""
        return (await self.engine.known_topics.info(topic)).partitions

    def metrics(self) -> Mapping[str, float]:
        """The producer's numbers since it was made, under Kafka's names.

        `request-latency-avg` and `-max` count until an answer was worked on. In a sync producer that sends single
        records for which nobody waits, that is when the next one is sent, or 10 ms later.
        """
        return self.engine.numbers()

    # Transactions.

    def _transactions(self) -> Transactions:
        if self.engine.transactions is None:
            raise TransactionError("transactions need a transactional_id: give the producer one")
        return self.engine.transactions

    async def init_transactions(self, timeout: float | None = None) -> None:
        """Once, before the first transaction: fences other producers with the same id, and ends what they left open."""
        await self._transactions().initialize(timeout)

    def begin_transaction(self) -> None:
        self._transactions().begin()

    async def send_offsets_to_transaction(
        self, offsets: Offsets, group: GroupIdentity | str, timeout: float | None = None
    ) -> None:
        """Commit what was read, `{("orders", 0): 42}`, with the transaction; `group` is the consumer's
        `group_metadata()`, or the name of a group without members."""
        await self._transactions().send_offsets(offsets, group, timeout)

    async def commit_transaction(self, timeout: float | None = None) -> None:
        """Wait for every record, then commit. MustAbort when one failed. After Unfinished, call it again."""
        await self._transactions().commit(timeout)

    async def stage_transaction(self, timeout: float | None = None) -> StagedTransaction | None:
        """Wait for every record, and leave the transaction open for another process to end (`Admin.end_transactions`).

        This is the first of two phases: tasks stage, one place decides, and what was decided is ended from there. None
        where no record was sent. MustAbort when one failed. After Unfinished, call it again. `close` leaves it open;
        it is aborted when `transaction.timeout.ms` is over, or when another producer takes the transactional id.
        """
        return await self._transactions().stage(timeout)

    async def abort_transaction(self, timeout: float | None = None) -> None:
        """Drop what was not sent, and abort the rest."""
        await self._transactions().abort(timeout)

    def transaction(self) -> AbstractAsyncContextManager[None]:
        """Begin; at the end commit, or abort when something was raised.

        async with producer.transaction():
            producer.send("orders", b"1")
            producer.send("payments", b"2")
        """
        return self._transactions().transaction()


def _many(given: Any) -> Iterable[object]:
    return given if isinstance(given, list | tuple) else (given,) if given else ()


def _partitioner_of(given: Any) -> Partitioner | None:
    if given is None or callable(given):
        return given  # type: ignore[no-any-return]  # what it gives is checked where it is called
    raise ConfigError(
        f"partitioner.class: a callable (topic, key, partition_count) -> partition expected, {given!r} came: leave it "
        "out for the partitions that Java's client picks (murmur2)"
    )
