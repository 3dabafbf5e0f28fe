"""The plain twin of `_native`: the same names and the same bytes, a hundred times slower.

What the native code gets from the GIL, one lock gives here: nobody sees a queue in between two states.
"""

import struct
import threading
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any

from ottla.client.producer import faults
from ottla.client.producer._pure_records import (
    HEADER_BYTES,
    Delivery,
    RecordBuffer,
    as_bytes,
    header_pairs,
    most_bytes,
    murmur2,
)
from ottla.client.producer.arguments import number
from ottla.client.producer.arguments import stamp as stamp_of

__all__ = [
    "Appender",
    "Delivery",
    "PartitionCore",
    "RecordBuffer",
    "TopicCore",
    "murmur2",
    "rows_by_partition",
    "settle_written",
]


def settle_written(
    batch: RecordBuffer,
    topic: str,
    partition: int,
    base_offset: int,
    append_time_ms: int,
    failed: Callable[[BaseException], None],
) -> None:
    """Call the callbacks of a batch that was written, in the order of its records."""
    for delivery in batch.deliveries or ():
        try:
            delivery.settle()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            failed(error)


class PartitionCore:
    """The batches of one partition that were not taken yet: closed ones in their order, then the open one."""

    def __init__(self, topic: str, number: int, *rest: object) -> None:
        self.topic = topic
        self.number = number
        self.closed: Any = None
        self.open: RecordBuffer | None = None


class TopicCore:
    """A topic whose partitions are known. `sticky` is where records without a key go; -1 until one was chosen."""

    def __init__(self, name: str, partitions: list[Any], *rest: object) -> None:
        self.name = name
        self.partitions = partitions
        self.is_open = True
        self.sticky = -1
        self.sticky_bytes = 0


class _Nothing:
    """To be awaited where there is nothing to wait for."""

    def __await__(self) -> Iterator[None]:
        return iter(())


_NOTHING = _Nothing()


class Appender:
    """Where records are put in: see the native one for what it is handed."""

    make_batch: Any
    choose: Any
    unknown: Any
    full: Any
    refuse: Any
    wake: Any
    seal: Any
    pause: Any

    def __init__(self, buffer_bytes: int, batch_bytes: int, record_limit_bytes: int) -> None:
        self.topics: dict[str, TopicCore] = {}
        self.active: dict[Any, None] = {}
        self.incomplete: dict[Any, None] = {}
        self.clock: Any = None
        self.rouse: Any = None
        self.later: Any = None
        self.failures: Any = None
        self.refuses = self.ignores_keys = self.is_timer_set = self.is_waking = self.seals_early = False
        self.is_hungry = True
        self.available_bytes = buffer_bytes
        self.batch_bytes = max(batch_bytes, 1)
        self.record_limit_bytes = record_limit_bytes
        self.waiting = self.appended_records = self.appended_bytes = 0
        self.owner_thread = self.placing_thread = 0
        self.give_way_at = 8
        self.pause_at = 0
        self._lock = threading.RLock()

    def set_topic(self, topic: TopicCore) -> None:
        self.topics[topic.name] = topic

    def drop_topic(self, name: str) -> None:
        self.topics.pop(name, None)

    def own(self) -> None:
        self.owner_thread = threading.get_ident()

    def _now_ms(self) -> int:
        now: int = time.time_ns() // 1_000_000 if self.clock is None else self.clock.now_ms()
        return now

    def _pick(self, known: TopicCore, key: bytes | None, partition: int | None) -> tuple[int, bool]:
        """The number of the partition, and whether it was the sticky one."""
        if partition is not None:
            if partition < 0:
                raise faults.negative_partition(partition)
            return partition, False
        if key is not None and not self.ignores_keys:
            return (murmur2(key) & 0x7FFFFFFF) % len(known.partitions), False
        if not 0 <= known.sticky < len(known.partitions):
            self.choose(known)
        return known.sticky, True

    def append(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: Any = None,
        timestamp: int | None = None,
        partition: int | None = None,
        on_delivery: Any = None,
    ) -> Delivery:
        """Put a record into the batch of its partition; gives its `Delivery`."""
        is_placed = threading.get_ident() == self.placing_thread
        if self.refuses and not is_placed:
            self.refuse()
        known = self.topics.get(topic)
        if known is not None and partition is not None:
            partition = number(partition, "partition")
        is_mine = known is not None and (known.is_open or is_placed)
        if known is None or not is_mine or (partition is not None and partition >= len(known.partitions)):
            unknown: Delivery = self.unknown(topic, value, key, headers, timestamp, partition, on_delivery)
            return unknown
        value, key = as_bytes(value, "value"), as_bytes(key, "key")
        pairs = header_pairs(headers) if headers else []
        stamp = self._now_ms() if timestamp is None else stamp_of(timestamp)
        picked, is_sticky = self._pick(known, key, partition)
        whole = most_bytes(key, value, pairs)
        if HEADER_BYTES + whole > self.record_limit_bytes:
            raise faults.record_too_large(HEADER_BYTES + whole, self.record_limit_bytes)
        while whole > self.available_bytes:
            self.full(whole)
        with self._lock:
            delivery, full_one, was_opened = self._put(known, picked, is_sticky, whole, stamp, key, value, pairs)
            if on_delivery is not None:
                delivery.on_delivery(on_delivery)
        if full_one is not None or (was_opened and not self.is_timer_set):
            self._announce(full_one)
        return delivery

    def _put(
        self,
        known: TopicCore,
        picked: int,
        is_sticky: bool,
        whole: int,
        stamp: int,
        key: bytes | None,
        value: bytes | None,
        pairs: list[tuple[bytes, bytes | None]],
    ) -> tuple[Delivery, RecordBuffer | None, bool]:
        queue = known.partitions[picked]
        batch = queue.open
        full_one = None
        was_opened = False
        if batch is not None and batch.record_count and HEADER_BYTES + batch.payload_bytes + whole > self.batch_bytes:
            full_one = self._close(queue)
            batch = None
        if batch is None:
            batch = self.make_batch(queue)
            queue.open = batch
            was_opened = True
            self.incomplete[batch] = None
            self.active[queue] = None
        before = batch.payload_bytes
        index = batch.append(stamp, key, value, [(name.decode(), header) for name, header in pairs])
        whole = batch.payload_bytes - before
        self.available_bytes -= whole
        self.appended_records += 1
        self.appended_bytes += whole
        if HEADER_BYTES + batch.payload_bytes >= self.batch_bytes:
            full_one = self._close(queue)
        if is_sticky:
            known.sticky_bytes += whole
            if known.sticky_bytes >= self.batch_bytes and (
                full_one is not None or known.sticky_bytes >= 2 * self.batch_bytes
            ):
                known.sticky, known.sticky_bytes = -1, 0
        return Delivery(batch, index, stamp), full_one, was_opened

    def _close(self, queue: PartitionCore) -> RecordBuffer | None:
        batch = queue.open
        queue.closed.append(batch)
        queue.open = None
        self.waiting += 1
        return batch

    def _announce(self, full_one: RecordBuffer | None) -> None:
        if full_one is not None and self.seals_early and threading.get_ident() != self.owner_thread:
            self.seal(full_one)
        if not self.is_waking and (self.is_hungry or full_one is None):
            self.is_waking = True
            self.wake()

    def drain(self) -> Any:
        """What a coroutine awaits between records: nothing, or a pause when it is time for one."""
        return _NOTHING if self.appended_bytes < self.pause_at else self.pause()

    def turn_ends(self, made_progress: bool) -> None:
        """The loop has sent what it could; nobody gives way here."""

    def add_closed(self, queue: PartitionCore, batch: RecordBuffer, size_bytes: int) -> None:
        with self._lock:
            self.close_open(queue)
            queue.closed.append(batch)
            self.waiting += 1
            self.available_bytes -= size_bytes
            self.appended_records += batch.record_count
            self.appended_bytes += size_bytes
            self.incomplete[batch] = None
            self.active[queue] = None

    def put_back(self, queue: PartitionCore, batch: RecordBuffer, position: int) -> None:
        with self._lock:
            queue.closed.insert(position, batch)
            self.waiting += 1
            self.incomplete[batch] = None
            self.active[queue] = None

    def close_open(self, queue: PartitionCore) -> None:
        with self._lock:
            if queue.open is not None:
                self._close(queue)

    def take(self, queue: PartitionCore) -> RecordBuffer | None:
        with self._lock:
            if not queue.closed:
                if queue.open is None:
                    return None
                self._close(queue)
            self.waiting -= 1
            batch: RecordBuffer = queue.closed.popleft()
            return batch

    def retire(self, queue: PartitionCore) -> bool:
        with self._lock:
            if queue.closed or queue.open is not None:
                return False
            self.active.pop(queue, None)
            return True

    def complete(self, batch: RecordBuffer, size_bytes: int) -> None:
        with self._lock:
            if batch in self.incomplete:
                del self.incomplete[batch]
                self.available_bytes += size_bytes


def _key_rows(key: Any, row_count: int) -> Generator[bytes | None, None, None]:
    code, width = ("q", 8) if key.is_wide else ("i", 4)
    data = memoryview(b"" if key.data is None else key.data).cast("B")
    offsets = memoryview(key.offsets).cast("B")
    validity = None if key.validity is None else memoryview(key.validity).cast("B")
    if row_count and len(offsets) < (key.first_row + row_count + 1) * width:
        raise faults.short_key_column()
    if validity is not None and len(validity) * 8 < key.first_row + row_count:
        raise faults.short_key_column()
    for row in range(row_count):
        at = key.first_row + row
        if validity is not None and not validity[at >> 3] >> (at & 7) & 1:
            yield None
            continue
        start, end = struct.unpack_from(f"={code}{code}", offsets, at * width)
        if start < 0 or end < start or end > len(data):
            raise faults.broken_key_column(row)
        yield bytes(data[start:end])


def rows_by_partition(key: Any, row_count: int, partition_count: int) -> tuple[bytearray, list[int]]:
    """Row numbers grouped by partition, and how many each partition has; last, the null keys."""
    if partition_count < 1:
        raise ValueError(f"a partition at least expected, {partition_count} came")
    groups: list[list[int]] = [[] for _ in range(partition_count + 1)]
    for row, one in enumerate(_key_rows(key, row_count)):
        groups[partition_count if one is None else (murmur2(one) & 0x7FFFFFFF) % partition_count].append(row)
    grouped = bytearray().join(struct.pack(f"={len(group)}q", *group) for group in groups)
    return grouped, [len(group) for group in groups]
