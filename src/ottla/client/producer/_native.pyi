"""The types of the compiled twin, and with them of the plain one: both have exactly these names."""

from collections import deque
from collections.abc import Awaitable, Callable, Generator
from datetime import datetime
from typing import Any

from ottla.client.types import RecordMetadata
from ottla.records import Buffer
from ottla.records.types import BinaryColumn
from ottla.runtime import Clock

class RecordBuffer:
    is_done: bool
    moved: list[tuple[Any, int] | None] | None
    deliveries: list[Delivery] | None
    written: tuple[str, int, int, int] | None
    @property
    def record_count(self) -> int: ...
    @property
    def base_timestamp(self) -> int: ...
    @property
    def max_timestamp(self) -> int: ...
    @property
    def payload_bytes(self) -> int: ...
    def __init__(self, *rest: object) -> None: ...
    def view(self) -> Buffer: ...
    def release(self) -> None: ...
    def append(self, timestamp: int, key: Buffer | None, value: Buffer | None, headers: Any = None) -> int: ...

class Delivery:
    timestamp: int
    callback: Callable[[RecordMetadata | None, Exception | None], object] | None
    def __init__(self, batch: RecordBuffer, index: int, timestamp: int = -1) -> None: ...
    @property
    def batch(self) -> Any: ...
    @property
    def index(self) -> int: ...
    def done(self) -> bool: ...
    def result(self, timeout: float | None = None) -> RecordMetadata: ...
    def exception(self, timeout: float | None = None) -> Exception | None: ...
    def metadata(self) -> RecordMetadata: ...
    def add_done_callback(self, callback: Callable[[Delivery], object]) -> None: ...
    def settle(self) -> None: ...
    def __await__(self) -> Generator[Any, None, RecordMetadata]: ...

class PartitionCore:
    topic: str
    number: int
    closed: deque[Any]
    open: Any
    def __init__(self, topic: str, number: int, *rest: object) -> None: ...

class TopicCore:
    name: str
    partitions: list[Any]
    is_open: bool
    sticky: int
    sticky_bytes: int
    def __init__(self, name: str, partitions: list[Any], *rest: object) -> None: ...

class Appender:
    topics: dict[str, Any]
    active: dict[Any, None]
    incomplete: dict[Any, None]
    make_batch: Callable[[Any], RecordBuffer]
    choose: Callable[[Any], None]
    unknown: Callable[..., Delivery]
    full: Callable[[int], None]
    refuse: Callable[[], None]
    wake: Callable[[], None]
    seal: Callable[[Any], None]
    pause: Callable[[], Awaitable[None]]
    pause_at: int
    clock: Clock | None
    rouse: Callable[[], None] | None
    later: Callable[[Callable[[], None]], object] | None
    failures: Any
    refuses: bool
    ignores_keys: bool
    is_timer_set: bool
    is_hungry: bool
    is_waking: bool
    seals_early: bool
    available_bytes: int
    batch_bytes: int
    record_limit_bytes: int
    waiting: int
    give_way_at: int
    appended_records: int
    appended_bytes: int
    owner_thread: int
    placing_thread: int
    def __init__(self, buffer_bytes: int, batch_bytes: int, record_limit_bytes: int) -> None: ...
    def set_topic(self, topic: TopicCore) -> None: ...
    def drop_topic(self, name: str) -> None: ...
    def own(self) -> None: ...
    def append(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: Any = None,
        timestamp: int | datetime | None = None,
        partition: int | None = None,
        on_delivery: Callable[[RecordMetadata | None, Exception | None], object] | None = None,
    ) -> Delivery: ...
    def drain(self) -> Awaitable[None]: ...
    def turn_ends(self, made_progress: bool) -> None: ...
    def add_closed(self, queue: PartitionCore, batch: RecordBuffer, size_bytes: int) -> None: ...
    def put_back(self, queue: PartitionCore, batch: RecordBuffer, position: int) -> None: ...
    def close_open(self, queue: PartitionCore) -> None: ...
    def take(self, queue: PartitionCore) -> Any: ...
    def retire(self, queue: PartitionCore) -> bool: ...
    def complete(self, batch: RecordBuffer, size_bytes: int) -> None: ...

def murmur2(data: Buffer) -> int: ...
def rows_by_partition(key: BinaryColumn, row_count: int, partition_count: int) -> tuple[bytearray, list[int]]: ...
def settle_written(
    batch: RecordBuffer,
    topic: str,
    partition: int,
    base_offset: int,
    append_time_ms: int,
    failed: Callable[[BaseException], None],
) -> None: ...
