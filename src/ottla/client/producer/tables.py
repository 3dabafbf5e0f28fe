"""Sending the rows of an Arrow table: encoded by workers, slice by slice, while the loop sends the slice before."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Generator, Iterator
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.client.errors import ConfigError, OttlaError, SerializationError
from ottla.client.producer import faults
from ottla.client.producer.arguments import number, stamp
from ottla.client.producer.batches import HEADER_BYTES, Batch, Delivery
from ottla.client.producer.engine import Engine
from ottla.client.producer.frames import as_arrow, is_arrow
from ottla.client.producer.partitions import TopicQueues
from ottla.client.producer.table_rows import ANY_PARTITION, EncodedBatch, TablePlan, encode_slice, plan_columns
from ottla.protocol.errors import KafkaError
from ottla.runtime import Executor

if TYPE_CHECKING:
    import pyarrow as pa

_USUAL_BATCH_BYTES = 1_000_000
_LEAST_SLICE_BYTES = 4 * 1024 * 1024
_MOST_SLICE_BYTES = 16 * 1024 * 1024
# Compressing takes longer than all else.
_SLICES_AT_ONCE = 2


class OffsetRange(NamedTuple):
    """Rows that were written one after the other: offsets from `first_offset` up to, without, `end_offset`."""

    partition: int
    first_offset: int
    end_offset: int


class TableMetadata(NamedTuple):
    """Where the rows of a table were written."""

    topic: str
    record_count: int
    ranges: tuple[OffsetRange, ...]


class TableDelivery:
    """What becomes of the rows of a table: `result()` waits in a thread, `await` in a coroutine."""

    def __init__(self, topic: str, batches: list[Batch]) -> None:
        self._topic = topic
        self._batches = batches

    def _leaves(self) -> Iterator[Batch]:
        """The batches that the rows are in by now: some may have been split."""
        waiting = self._batches[::-1]
        while waiting:
            batch = waiting.pop()
            if batch.moved is None:
                yield batch
            else:
                parts = {id(place[0]): place[0] for place in batch.moved if place is not None}
                waiting += list(parts.values())[::-1]

    def done(self) -> bool:
        return all(batch.is_done for batch in self._leaves())

    def exception(self, timeout: float | None = None) -> Exception | None:
        """The first thing that kept rows from being written; None when all were. `timeout` is for each batch."""
        while not self.done():
            for batch in self._leaves():
                if not batch.is_done:
                    batch.wait(Delivery(batch, 0), timeout)
        failed = [batch for batch in self._leaves() if batch.error is not None]
        for batch in failed:
            if batch.unseen is not None:
                batch.unseen.look_at_all()
        return failed[0].error if failed else None

    def result(self, timeout: float | None = None) -> TableMetadata:
        """Where the rows were written; raises what kept some of them from being written."""
        error = self.exception(timeout)
        if error is not None:
            raise error.with_traceback(None)
        ranges = tuple(
            OffsetRange(batch.queue.number, batch.base_offset, batch.base_offset + batch.count)
            for batch in self._leaves()
        )
        return TableMetadata(self._topic, sum(batch.count for batch in self._batches), ranges)

    def __await__(self) -> Generator[Any, None, TableMetadata]:
        while not self.done():
            for batch in self._leaves():
                if not batch.is_done:
                    yield from batch.future(Delivery(batch, 0))
        return self.result()


class TableSending:
    def __init__(self, engine: Engine, executor: Executor) -> None:
        self._engine = engine
        self._executor = executor

    async def send(
        self,
        topic: str,
        table: Any,
        *,
        key: str | None,
        value: str | None,
        headers: str | None,
        timestamp: str | int | datetime | None,
        partition: str | int | None,
        batch_bytes: int | None,
    ) -> TableDelivery:
        engine = self._engine
        if timestamp is not None and not isinstance(timestamp, str):
            timestamp = stamp(timestamp)
        if partition is not None and not isinstance(partition, str):
            partition = number(partition, "partition")
        if not is_arrow(table):
            table = await self._executor.run(as_arrow, table)
        rest = plan_columns(
            table.schema, key=key, value=value, headers=headers, timestamp=timestamp, partition=partition
        )
        queues = await engine.known_topics.queues(topic)
        count = len(queues.partitions)
        if isinstance(partition, int) and not 0 <= partition < count:
            raise ConfigError(f"partition {partition}: topic {topic} has 0 to {count - 1}")
        plan = TablePlan(
            key=key,
            value=value,
            json_columns=() if value is not None else rest,
            headers=headers,
            timestamp=timestamp,
            partition=partition,
            partition_count=count,
            ignores_keys=engine.config.partitioner_ignore_keys,
            batch_bytes=self._batch_bytes(batch_bytes),
            codec=engine.sender.codec,
            level=engine.sender.level,
        )
        return TableDelivery(topic, await self._send_slices(queues, _slices(table, plan), plan))

    async def _send_slices(
        self, queues: TopicQueues, slices: "Iterator[pa.RecordBatch]", plan: TablePlan
    ) -> list[Batch]:
        batches: list[Batch] = []
        upcoming = deque(self._encode(rows, plan) for rows in islice(slices, _SLICES_AT_ONCE))
        try:
            while upcoming:
                encoded = await _as_told(upcoming.popleft())
                upcoming.extend(self._encode(rows, plan) for rows in islice(slices, 1))
                batches += [await self._put(queues, one) for one in encoded]
        finally:
            # Where one slice cannot be sent, nobody asks what became of those behind it.
            await asyncio.gather(*upcoming, return_exceptions=True)
        return batches

    def _batch_bytes(self, given: int | None) -> int:
        config = self._engine.config
        wanted = max(config.batch_size, _USUAL_BATCH_BYTES) if given is None else given
        return max(min(wanted, config.max_request_size - 1024, config.buffer_memory // 4), 1)

    def _encode(self, rows: "pa.RecordBatch", plan: TablePlan) -> Awaitable[list[EncodedBatch]]:
        return self._executor.run(encode_slice, rows, plan, self._engine.now_ms())

    async def _put(self, queues: TopicQueues, encoded: EncodedBatch) -> Batch:
        engine = self._engine
        size_bytes = len(encoded.payload)
        if size_bytes + HEADER_BYTES > engine.appender.record_limit_bytes:
            raise faults.record_too_large(size_bytes + HEADER_BYTES, engine.appender.record_limit_bytes)
        await engine.room_for(size_bytes)
        number = engine.pick(queues) if encoded.partition == ANY_PARTITION else encoded.partition
        batch = engine.new_batch(
            queues.partitions[number],
            encoded.payload,
            record_count=encoded.row_count,
            timestamps=(encoded.base_timestamp, encoded.max_timestamp),
            size_bytes=size_bytes,
        )
        engine.put(batch)
        return batch


async def _as_told(encoding: Awaitable[list[EncodedBatch]]) -> list[EncodedBatch]:
    """What a worker made; its complaints about the table as ours."""
    try:
        encoded = await encoding
    except OttlaError:
        raise
    except (TypeError, ValueError, NotImplementedError, KafkaError) as error:
        raise SerializationError(f"the table cannot be sent: {error}") from error
    return encoded


def _slices(table: "pa.Table | pa.RecordBatch", plan: TablePlan) -> "Iterator[pa.RecordBatch]":
    """The table in pieces that fill some batches of every partition, as views of it."""
    import pyarrow as pa

    if not table.num_rows:
        return
    wanted = min(max(plan.batch_bytes * plan.partition_count, _LEAST_SLICE_BYTES), _MOST_SLICE_BYTES)
    rows = max(wanted * table.num_rows // max(table.nbytes, 1), 1)
    whole = table if isinstance(table, pa.Table) else pa.Table.from_batches([table])
    for start in range(0, table.num_rows, rows):
        piece = whole.slice(start, rows).combine_chunks()
        yield from piece.to_batches()
