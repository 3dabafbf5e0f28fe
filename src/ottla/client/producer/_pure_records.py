"""The plain twin of the records of a batch and of the delivery of one record."""

from collections.abc import Callable, Generator, Iterable
from typing import Any

from ottla.client.producer import faults
from ottla.client.types import RecordMetadata

HEADER_BYTES = 61

Pairs = list[tuple[bytes, bytes | None]]


def murmur2(data: bytes | bytearray | memoryview) -> int:
    """MurmurHash2 as Kafka's clients have it, with their seed."""
    raw = bytes(data)
    scale, mask = 0x5BD1E995, 0xFFFFFFFF
    hashed = 0x9747B28C ^ len(raw)
    whole = len(raw) & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(raw[at : at + 4], "little") * scale & mask
        word = (word ^ word >> 24) * scale & mask
        hashed = (hashed * scale & mask) ^ word
    if whole < len(raw):
        hashed = (hashed ^ int.from_bytes(raw[whole:], "little")) * scale & mask
    hashed = (hashed ^ hashed >> 13) * scale & mask
    return hashed ^ hashed >> 15


def as_bytes(data: Any, what: str) -> bytes | None:
    if data is None or type(data) is bytes:
        return data
    if isinstance(data, str | int | float | dict | list | tuple):
        raise faults.not_bytes(what, data)
    try:
        return bytes(memoryview(data))
    except TypeError:
        raise faults.not_bytes(what, data) from None


def header_pairs(headers: Any) -> Pairs:
    pairs: Pairs = []
    if isinstance(headers, dict):
        headers = headers.items()
    try:
        for name, value in headers:
            if not isinstance(name, str):
                raise faults.header_name(name)
            pairs.append((name.encode(), as_bytes(value, "header")))
    except (ValueError, TypeError):
        raise faults.header_shape(headers) from None
    return pairs


def _varint(number: int) -> bytes:
    raw = (number << 1) ^ (number >> 63)
    out = bytearray()
    while raw >= 0x80:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


def _sized(data: bytes | None) -> bytes:
    return _varint(-1) if data is None else _varint(len(data)) + data


def _sized_bytes(data: bytes | None) -> int:
    return 1 if data is None else len(_varint(len(data))) + len(data)


def most_bytes(key: bytes | None, value: bytes | None, pairs: Pairs) -> int:
    """The most that a record may take: its numbers have 16 bytes at most, besides that of its headers."""
    fields = sum(_sized_bytes(name) + _sized_bytes(header) for name, header in pairs)
    return 16 + _sized_bytes(key) + _sized_bytes(value) + len(_varint(len(pairs))) + fields


class RecordBuffer:
    """The records of one batch, encoded one after the other."""

    is_done = False
    moved: list[Any] | None = None
    deliveries: "list[Delivery] | None" = None
    written: tuple[str, int, int, int] | None = None

    def __init__(self, *rest: object) -> None:
        self._data = bytearray()
        self.record_count = 0
        self.base_timestamp = -1
        self.max_timestamp = -1

    @property
    def payload_bytes(self) -> int:
        return len(self._data)

    def view(self) -> memoryview:
        """The records, as the buffer that the native one is by itself."""
        return memoryview(self._data).toreadonly()

    def release(self) -> None:
        self._data = bytearray()

    def append(
        self, timestamp: int, key: Any, value: Any, headers: "Iterable[tuple[str, Any]] | dict[str, Any] | None" = None
    ) -> int:
        """Add one record; gives its index."""
        pairs = header_pairs(headers) if headers else []
        if not -(2**63) <= timestamp < 2**63:
            raise OverflowError(f"a 64-bit timestamp expected, {timestamp} came")
        base = self.base_timestamp if self.record_count else timestamp
        if not -(2**63) <= timestamp - base < 2**63:
            raise faults.timestamp_distance(base, timestamp)
        body = b"\0" + _varint(timestamp - base) + _varint(self.record_count)
        body += _sized(as_bytes(key, "key")) + _sized(as_bytes(value, "value")) + _varint(len(pairs))
        body += b"".join(_sized(name) + _sized(value) for name, value in pairs)
        self.base_timestamp = base
        self.max_timestamp = max(self.max_timestamp, timestamp) if self.record_count else timestamp
        self._data += _varint(len(body)) + body
        self.record_count += 1
        return self.record_count - 1


class Delivery:
    """What becomes of one record: `result()` waits for it in a thread, `await` in a coroutine."""

    __slots__ = ("_batch", "_index", "callback", "timestamp")

    def __init__(self, batch: Any, index: int, timestamp: int = -1) -> None:
        self._batch = batch
        self._index = index
        self.callback: Callable[[RecordMetadata | None, Exception | None], object] | None = None
        self.timestamp = timestamp

    def on_delivery(self, callback: Callable[[RecordMetadata | None, Exception | None], object]) -> None:
        self.callback = callback
        if self._batch.deliveries is None:
            self._batch.deliveries = []
        self._batch.deliveries.append(self)

    def _find(self) -> Any:
        batch = self._batch
        while batch.moved is not None:
            place = batch.moved[self._index]
            if place is None:
                return batch
            batch, self._index = place
            self._batch = batch
        return batch

    @property
    def batch(self) -> Any:
        return self._find()

    @property
    def index(self) -> int:
        self._find()
        return self._index

    def done(self) -> bool:
        done: bool = self._find().is_done
        return done

    def _waited(self, timeout: float | None) -> Any:
        batch = self._find()
        if not batch.is_done:
            batch.wait(self, timeout)
        return self._find()

    def result(self, timeout: float | None = None) -> RecordMetadata:
        error = self.exception(timeout)
        if error is not None:
            raise error.with_traceback(None)
        return self.metadata()

    def exception(self, timeout: float | None = None) -> Exception | None:
        error: Exception | None = self._waited(timeout).look_at(self._index)
        return error

    def metadata(self) -> RecordMetadata:
        metadata: RecordMetadata = self._find().metadata_at(self._index, self.timestamp)
        return metadata

    def add_done_callback(self, callback: "Callable[[Delivery], object]") -> None:
        self._find().add_listener(self, callback)

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        batch = self._find()
        if not batch.is_done:
            yield from batch.future(self)
        return self.result()

    def settle(self) -> None:
        """Call what `send` was given as `on_delivery`."""
        callback, self.callback = self.callback, None
        if callback is None:
            return
        batch = self._find()
        error = batch.error_at(self._index)
        if error is None:
            callback(batch.metadata_at(self._index, self.timestamp), None)
        else:
            callback(None, error)

    def __repr__(self) -> str:
        return f"Delivery(batch={self._batch!r}, index={self._index}, done={self.done()})"
