"""The sync consumer."""

import re
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self

from ottla.client.consumer._twin import Chunk, Record, RecordIterator
from ottla.client.consumer.arguments import Committable
from ottla.client.consumer.consumer import AsyncConsumer, Key, Parts, Value
from ottla.client.consumer.groups import Listening
from ottla.client.errors import ClientClosed, OttlaError
from ottla.client.sync.life import ended, started
from ottla.client.sync.loop_thread import LoopThread, blocking, in_loop
from ottla.client.types import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa


_CLOSE_SECONDS = 30.0


class Consumer(Generic[Key, Value]):
    """Reads records from topics.

        with Consumer("localhost:9092", group_id="billing", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(["orders"])
            for record in consumer:
                print(record.key, record.value)

    One thread uses it at a time, but `wakeup` is for any other. Fetching, heartbeats and commits by interval go on in a
    thread of the consumer's own while the code around it works.

    With a group, what was handed out counts as done when the next record is asked for, and only what is done is
    committed: a consumer that dies repeats a record, and misses none. A loop that ends by an exception does not commit
    the record that it was at.
    """

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str] | None = None,
        *,
        config: Mapping[str, object] | None = None,
        **settings: Any,
    ) -> None:
        self._thread = LoopThread("consumer", drives_here=True)
        self._client: AsyncConsumer[Key, Value] = AsyncConsumer(
            bootstrap_servers, config=config, parts=Parts(run_listener=_run_listener_in(self._thread)), **settings
        )
        self._finalizer = started(self._thread, self, self._client.start)

    # Life

    def close(self, timeout: float = _CLOSE_SECONDS, *, settled_only: bool = False) -> None:
        """Commit positions (if auto), leave the group, and let go of everything. May be called twice.

        With `settled_only` the record that was handed out last is not committed: its work may not be done.
        """
        if self._client.closing.has_begun and self._thread.is_on_errand:
            # A listener, which `close` itself waits for.
            return
        ended(self._thread, self._finalizer, self._client.close, timeout, settled_only=settled_only)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(settled_only=kind is not None)

    # What is read

    subscribe = in_loop(AsyncConsumer.subscribe)
    assign = in_loop(AsyncConsumer.assign)
    unsubscribe = blocking(AsyncConsumer.unsubscribe)

    @property
    def subscription(self) -> frozenset[str] | re.Pattern[str] | None:
        return self._client.subscription

    @property
    def assignment(self) -> list[TopicPartition]:
        """The partitions that are read now, sorted."""
        self._thread.check()
        return self._client.assignment

    # Records

    def poll(self, timeout: float = 0.0, max_records: int | None = None) -> list[Record[Key, Value]]:
        """Up to `max_records` (`max.poll.records` unless given), as soon as there are some; none after `timeout`
        seconds. To call it again is to be done with what it gave before."""
        self._thread.check()
        records = self._client.take(max_records)
        if records:
            return records
        began = time.monotonic()
        found = self._thread.look_out(self._client, lambda: self._client.take(max_records) or None, timeout)
        if found is not None:
            return found
        return self._thread.run(self._client.poll, max(timeout - (time.monotonic() - began), 0.0), max_records)

    def records(self, timeout: float | None = None) -> Iterator[Record[Key, Value]]:
        """One record after the other, without an end; with `timeout`, until none came for so many seconds."""
        client, thread = self._client, self._thread
        ready = client.ready_chunk

        def supply(owner: object = self) -> Chunk | None:
            # While somebody iterates, the consumer is not forgotten: `for record in Consumer(...)`.
            thread.check()
            chunk = ready()
            if chunk is None:
                began = time.monotonic()
                chunk = thread.look_out(client, ready, timeout)
            if chunk is None:
                left = None if timeout is None else max(timeout - (time.monotonic() - began), 0.0)
                chunk = thread.run(client.next_chunk, left)
            return chunk

        return RecordIterator(supply)

    def __iter__(self) -> Iterator[Record[Key, Value]]:
        return self.records()

    def batches(
        self, max_records: int | None = None, timeout: float | None = None
    ) -> Iterator[list[Record[Key, Value]]]:
        """Lists of records, each from one partition, without an end; with `timeout` as for `records`."""
        return self._each(lambda: self._client.batches(max_records, timeout))

    def tables(self, **options: Any) -> Iterator["pa.Table"]:
        """pyarrow tables, each as soon as there are rows for it, without an end. Options as for AsyncConsumer.tables.

        for table in consumer.tables(value_format="json", timeout=1.0):
            print(table.num_rows, table.column_names)
        """
        return self._each(lambda: self._client.tables(**options))

    def _each(self, make: Callable[[], Any]) -> Generator[Any, None, None]:
        source = make()
        try:
            while True:
                try:
                    yield self._thread.run(source.__anext__)
                except StopAsyncIteration:
                    return
        finally:
            with suppress(ClientClosed):
                self._thread.run(source.aclose)

    to_arrow = blocking(AsyncConsumer.to_arrow)

    def to_polars(self, **options: Any) -> "polars.DataFrame":
        """`to_arrow` as a polars DataFrame."""
        return self._thread.run(self._client.to_polars, **options)

    def to_pandas(self, **options: Any) -> "pandas.DataFrame":
        """`to_arrow` as a pandas DataFrame."""
        return self._thread.run(self._client.to_pandas, **options)

    def wakeup(self) -> None:
        """From any thread: make the call that waits now, or the next one, raise Interrupted."""
        self._thread.check()
        self._client.wakeup_from_thread()

    # Where it stands

    seek = in_loop(AsyncConsumer.seek)
    seek_to_beginning = in_loop(AsyncConsumer.seek_to_beginning)
    seek_to_end = in_loop(AsyncConsumer.seek_to_end)
    seek_to_time = blocking(AsyncConsumer.seek_to_time)
    position = blocking(AsyncConsumer.position)
    pause = in_loop(AsyncConsumer.pause)
    resume = in_loop(AsyncConsumer.resume)
    beginning_offsets = blocking(AsyncConsumer.beginning_offsets)
    end_offsets = blocking(AsyncConsumer.end_offsets)
    offsets_for_times = blocking(AsyncConsumer.offsets_for_times)
    lag = blocking(AsyncConsumer.lag)
    partitions_for = blocking(AsyncConsumer.partitions_for)
    topics = blocking(AsyncConsumer.topics)

    @property
    def paused(self) -> list[TopicPartition]:
        return self._thread.run(_paused, self._client)

    # Commits

    commit = blocking(AsyncConsumer.commit)
    committed = blocking(AsyncConsumer.committed)
    group_metadata = in_loop(AsyncConsumer.group_metadata)
    metrics = in_loop(AsyncConsumer.metrics)

    def commit_async(
        self,
        what: Committable | None = None,
        callback: Callable[[dict[TopicPartition, OffsetAndMetadata], OttlaError | None], object] | None = None,
    ) -> None:
        """Begin to commit, and go on. `callback` gets the offsets, and what went wrong or None, in the consumer's own
        thread; without one, failures are logged."""
        self._thread.run(_begin_commit, self._client, what, callback)


async def _paused(client: AsyncConsumer[Any, Any]) -> list[TopicPartition]:
    return client.paused


async def _begin_commit(
    client: AsyncConsumer[Any, Any],
    what: Committable | None,
    callback: Callable[[dict[TopicPartition, OffsetAndMetadata], OttlaError | None], object] | None,
) -> None:
    client.commit_async(what, callback or _log_failure)


def _log_failure(offsets: dict[TopicPartition, OffsetAndMetadata], error: OttlaError | None) -> None:
    if error is not None:
        import logging

        logging.getLogger(__name__).warning("a commit of %d partitions failed: %s", len(offsets), error)


def _run_listener_in(thread: LoopThread) -> Callable[[Listening, list[TopicPartition]], Any]:
    """Listeners run in the thread of whoever polls, as the code around the consumer does."""

    async def run(listening: Listening, partitions: list[TopicPartition]) -> None:
        await thread.errand(listening, partitions)

    return run
