"""The plain twin of `_native`: records as objects, and the walk over what was fetched. The same names and errors.

Where the extension cannot be built this is what runs, some ten times slower.
"""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Generic, Self, TypeVar

from ottla.client.consumer.batches import damaged, undecodable, unpack
from ottla.client.consumer.values import NO_TIMESTAMP, ChunkMode, Entry, TimestampType
from ottla.client.errors import ConsumerError
from ottla.records import CorruptRecord
from ottla.records import Record as StoredRecord
from ottla.records._twin import twin as stored
from ottla.records.types import RecordHeaders

__all__ = ["AsyncRecordIterator", "Chunk", "Record", "RecordIterator"]

Key = TypeVar("Key")
Value = TypeVar("Value")


class Record(Generic[Key, Value]):
    """One record that was read."""

    __slots__ = (
        "headers",
        "key",
        "leader_epoch",
        "offset",
        "partition",
        "timestamp",
        "timestamp_type",
        "topic",
        "value",
    )

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        timestamp: int = NO_TIMESTAMP,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
        key: Key | None = None,
        value: Value | None = None,
        headers: RecordHeaders = (),
        leader_epoch: int = -1,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestamp = timestamp
        self.timestamp_type = TimestampType(timestamp_type)
        self.key = key
        self.value = value
        self.headers = tuple(headers)
        self.leader_epoch = leader_epoch

    def _fields(self) -> tuple[object, ...]:
        return (
            self.topic,
            self.partition,
            self.offset,
            self.timestamp,
            self.timestamp_type,
            self.key,
            self.value,
            self.headers,
            self.leader_epoch,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash((self.topic, self.partition, self.offset))

    def __reduce__(self) -> tuple[object, ...]:
        return Record, self._fields()

    def __repr__(self) -> str:
        return (
            f"Record(topic={self.topic!r}, partition={self.partition}, offset={self.offset}, "
            f"timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}, headers={self.headers!r})"
        )


class Chunk:
    """What one fetch brought for one partition: batches, still compressed, and how far they were handed out.

    `next_offset` is the offset of the next record; `settled_offset` the one before which the user is done with
    everything. `release` gives up the bytes and tells how many they were, once.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        first_offset: int,
        end_offset: int,
        data: memoryview,
        entries: tuple[Entry, ...],
        epoch: int = -1,
        check_crcs: bool = True,
        damage: ConsumerError | None = None,
        decode_key: Callable[[str, bytes], object] | None = None,
        decode_value: Callable[[str, bytes], object] | None = None,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.next_offset = self.settled_offset = first_offset
        self.end_offset = end_offset
        self.next_epoch = epoch
        self.data = data
        self.entries = entries
        self.check_crcs = check_crcs
        self.damage = damage
        self._decode_key = decode_key
        self._decode_value = decode_value
        self._size_bytes = [len(data)]
        self._mode = ChunkMode.READY
        self._at = 0
        self._records: list[StoredRecord] | None = None
        self._index = 0

    @property
    def mode(self) -> ChunkMode:
        return self._mode

    @mode.setter
    def mode(self, value: ChunkMode) -> None:
        if self._mode is not ChunkMode.DROPPED:
            self._mode = ChunkMode(value)

    @property
    def size_bytes(self) -> int:
        return sum(self._size_bytes)

    def release(self) -> int:
        """How many bytes were held; none when they were released before. One step of the interpreter decides."""
        self._mode = ChunkMode.DROPPED
        self.data, self.entries = memoryview(b""), ()
        try:
            return self._size_bytes.pop()
        except IndexError:
            return 0

    def detach(self) -> None:
        """Keep the bytes of this chunk alone, not the whole answer that they came in."""
        if self._records is None:
            self.data = memoryview(bytes(self.data))

    def settle(self) -> None:
        self.settled_offset = self.next_offset

    def move_to(self, offset: int) -> None:
        """Go on with the first record from that offset on."""
        self._records = None
        self._at = 0
        self.next_offset = offset
        for entry in self.entries:
            if entry.header.base_offset >= offset:
                break
            self.next_epoch = entry.header.partition_leader_epoch

    def _enter(self) -> list[StoredRecord]:
        entry = self.entries[self._at]
        payload = unpack(self, entry)
        try:
            records = stored.decode_records(payload, entry.header)
        except CorruptRecord as error:
            raise damaged(self, entry.header, error) from error
        self._records, self._index = records, 0
        return records

    def _made(self, entry: Entry, raw: StoredRecord) -> Record[Any, Any]:
        header = entry.header
        key: object = raw.key
        value: object = raw.value
        try:
            if self._decode_key is not None and raw.key is not None:
                key = self._decode_key(self.topic, raw.key)
            if self._decode_value is not None and raw.value is not None:
                value = self._decode_value(self.topic, raw.value)
        except Exception as error:
            self._records = None
            raise undecodable(self, raw.offset, error) from error
        kind = TimestampType.LOG_APPEND_TIME if header.has_log_append_time else TimestampType.CREATE_TIME
        epoch = header.partition_leader_epoch
        return Record(self.topic, self.partition, raw.offset, raw.timestamp, kind, key, value, raw.headers, epoch)

    def following(self) -> Record[Any, Any] | None:
        """The next record; None when there is no more."""
        while self._at < len(self.entries):
            entry = self.entries[self._at]
            if entry.header.last_offset < self.next_offset and self._records is None:
                self._at += 1
                continue
            records = self._records if self._records is not None else self._enter()
            while self._index < len(records):
                raw = records[self._index]
                self._index += 1
                if raw.offset < self.next_offset:
                    continue
                record = self._made(entry, raw)
                self.next_epoch = record.leader_epoch
                is_last = self._index == len(records) and entry.next_offset > raw.offset
                self.next_offset = entry.next_offset if is_last else raw.offset + 1
                return record
            self._records = None
            self.next_offset = max(self.next_offset, entry.next_offset)
            self._at += 1
        if self.damage is not None:
            raise self.damage
        self.next_offset = max(self.next_offset, self.end_offset)
        return None

    def take(self, records: list[Record[Any, Any]], limit: int) -> None:
        """Append up to `limit` records; fewer only when there are no more."""
        for _ in range(limit):
            if self._mode is not ChunkMode.READY or (record := self.following()) is None:
                return
            records.append(record)


class RecordIterator:
    """Records one by one. `supply` gives the next chunk to read from, or None where the iteration ends; it may wait.

    To ask for a record is to be done with the one before.
    """

    def __init__(self, supply: Callable[[], Chunk | None]) -> None:
        self._supply = supply
        self._chunk: Chunk | None = None

    def __iter__(self) -> Iterator[Record[Any, Any]]:
        return self

    def __next__(self) -> Record[Any, Any]:
        while True:
            chunk = self._chunk
            if chunk is not None and chunk.mode is ChunkMode.READY:
                chunk.settle()
                record = chunk.following()
                if record is not None:
                    return record
                chunk.settle()
            self._chunk = None
            self._chunk = self._supply()
            if self._chunk is None:
                raise StopIteration


class AsyncRecordIterator:
    """The same with `async for`: every `burst` records, and when there is nothing, `supply` is awaited, so that the
    loop gets its turn. It ends where `supply` gives None."""

    def __init__(self, supply: Callable[[], Awaitable[Chunk | None]], burst: int) -> None:
        self._supply = supply
        self._burst = burst
        self._left = 0
        self._chunk: Chunk | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record[Any, Any]:
        while True:
            chunk = self._chunk
            if chunk is not None and chunk.mode is ChunkMode.READY:
                chunk.settle()
                if self._left > 0:
                    record = chunk.following()
                    if record is not None:
                        self._left -= 1
                        return record
                    chunk.settle()
            self._chunk = None
            self._chunk = await self._supply()
            self._left = self._burst
            if self._chunk is None:
                raise StopAsyncIteration
