"""One partition of a ledger, with the machine that its records feed.

Decisions are made one after another: the next one sees the entries of the one before replayed. Where an append has to
wait (a segment is being rolled), decisions wait in a queue; waiting for replicas holds up their answers, not them.

    loading --> ready --> gone
       \\------------------^

A broker that cannot append (the disk is full, too few replicas are in sync) keeps its state: nothing was replayed. One
that no longer leads the partition drops it whole.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Any, Generic, TypeVar

from ottla.ledger.entries import RecordTypes, UnknownRecordType
from ottla.ledger.machine import Decision, Machine, Replayed, Writer
from ottla.log.append_info import AppendInfo
from ottla.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from ottla.records import (
    HEADER_BYTES,
    BatchHeader,
    ControlType,
    CorruptRecord,
    EndTransactionMarker,
    Record,
    build_batch,
    build_end_transaction,
    read_control_batch,
    read_header,
    read_records,
)
from ottla.replication.partition import Partition
from ottla.runtime import Clock, Executor
from ottla.runtime.promise import Promise

logger = logging.getLogger(__name__)

LOAD_BYTES = 1 << 18
# Replaying a record takes about 10 us, and others want to be served meanwhile.
REPLAYED_AT_ONCE = 100
RETRY_MS = 500
# Of a record, beside its key and value: lengths, deltas, attributes and the number of headers.
_MOST_AROUND_BYTES = 32

Answer = TypeVar("Answer")
MachineType = TypeVar("MachineType", bound=Machine)

# What a client of a coordinator is told, so that it looks for the coordinator again or tries again.
_TOLD = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


class State(Enum):
    LOADING = "loading"
    READY = "ready"
    GONE = "gone"


def told(error: BaseException) -> KafkaError:
    """The error of a log, as a client of a coordinator is told of it."""
    if isinstance(error, KafkaError):
        return KafkaError(_TOLD.get(error.code, error.code), error.message)
    logger.error("a coordinator failed", exc_info=error)
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the coordinator failed; the broker's log says more")


def _ends_of_batches(records: Sequence[Record], max_bytes: int) -> Iterator[int]:
    """Where to end batches, by number, so that each has at most that many bytes."""
    room = max_bytes - HEADER_BYTES
    used = 0
    for number, record in enumerate(records):
        size = _MOST_AROUND_BYTES + len(record.key or b"") + len(record.value or b"")
        if used and used + size > room:
            yield number
            used = 0
        used += size
    yield len(records)


class Ledger(Generic[MachineType]):
    """See the module. It is also the `Timers` of its machine, which is put in once it is made."""

    machine: MachineType

    def __init__(self, partition: Partition, record_types: RecordTypes, clock: Clock, executor: Executor) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.state = State.LOADING
        self._record_types = record_types
        self._clock = clock
        self._executor = executor
        self._queued: deque[Callable[[], None]] = deque()
        self._is_appending = False
        self._timers: dict[str, asyncio.TimerHandle] = {}

    # Loading and leaving

    async def load(self) -> None:
        """Replay the log; KafkaError or OSError when it cannot be read, and the ledger is of no use then."""
        log = self.partition.log
        offset, end_offset = log.log_start_offset, log.log_end_offset
        while offset < end_offset and self.state is State.LOADING:
            found = log.read(offset, LOAD_BYTES, up_to_offset=end_offset)
            if found is None:
                break
            data = await self._executor.run(found.read)
            offset = max(await self._replay_batches(memoryview(data), offset), offset + 1)
        if self.state is State.LOADING:
            self.state = State.READY
            self.machine.loaded()

    async def _replay_batches(self, data: memoryview, from_offset: int) -> int:
        """Replay the whole batches in a piece of the log; the offset behind them."""
        position = replayed = 0
        next_offset = from_offset
        while position + 12 <= len(data) and self.state is State.LOADING:
            size = 12 + int.from_bytes(data[position + 8 : position + 12], "big")
            if position + size > len(data):
                break
            try:
                header = read_header(data[position : position + size])
                next_offset = header.next_offset
                self._replay_batch(header, data[position : position + size])
                replayed += header.record_count
            except CorruptRecord as error:
                logger.error("%s has a batch that cannot be read, and is loaded without it: %s", self.partition, error)
            position += size
            if replayed >= REPLAYED_AT_ONCE:
                replayed = 0
                await asyncio.sleep(0)
        return next_offset

    def _replay_batch(self, header: BatchHeader, batch: memoryview) -> None:
        if header.is_control:
            is_commit = read_control_batch(batch).control_type is ControlType.COMMIT
            self.machine.replay_end(header.producer_id, header.producer_epoch, is_commit=is_commit)
            return
        writer = (header.producer_id, header.producer_epoch) if header.is_transactional else (-1, -1)
        for record in read_records(batch):
            self._replay_record(record, *writer)

    def _replay_record(self, record: Record, producer_id: int, producer_epoch: int) -> None:
        try:
            entry = self._record_types.decode(record.key, record.value)
        except UnknownRecordType as error:
            logger.warning("%s: offset %d is passed over: %s", self.partition, record.offset, error)
        except MalformedMessage as error:
            logger.error("%s: offset %d cannot be read, and is passed over: %s", self.partition, record.offset, error)
        else:
            self.machine.replay(Replayed(record.offset, record.timestamp, entry, producer_id, producer_epoch))

    def unload(self) -> None:
        """Let go of everything: this broker does not lead the partition any more, or ends."""
        if self.state is State.GONE:
            return
        was_ready, self.state = self.state is State.READY, State.GONE
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if was_ready:
            self.machine.unload(self._not_here())
        self._go_on()

    def _not_here(self) -> KafkaError:
        return KafkaError(ErrorCode.NOT_COORDINATOR, f"{self.partition} is not led by this broker any more")

    def check_ready(self) -> None:
        if self.state is State.LOADING:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{self.partition} is being loaded")
        if self.state is State.GONE:
            raise self._not_here()

    # Deciding

    def write(self, decide: Callable[[], Decision[Answer]]) -> Promise[Answer]:
        """Decide, write and replay; the answer comes when the entries are committed, an error if they cannot be."""
        promise: Promise[Answer] = Promise()
        self._in_turn(lambda: self._perform(decide, promise), promise)
        return promise

    def read(self, look: Callable[[], Answer]) -> Promise[Answer]:
        """Look at the state; the answer comes when all of what was seen is committed."""
        return self.write(lambda: Decision(look()))

    def end_transaction(
        self, writer: Writer, coordinator_epoch: int, *, is_commit: bool, transaction_version: int = 0
    ) -> Promise[None]:
        """Write the marker that ends a producer's transaction here, and let its entries count or not."""
        promise: Promise[None] = Promise()
        self._in_turn(lambda: self._end(writer, coordinator_epoch, is_commit, transaction_version, promise), promise)
        return promise

    def _in_turn(self, work: Callable[[], None], promise: Promise[Any]) -> None:
        if self._is_appending:
            self._queued.append(lambda: self._guarded(work, promise))
        else:
            self._guarded(work, promise)

    def _guarded(self, work: Callable[[], None], promise: Promise[Any]) -> None:
        try:
            self.check_ready()
            work()
        except Exception as error:
            promise.reject(error if isinstance(error, KafkaError) else told(error))

    def _perform(self, decide: Callable[[], Decision[Answer]], promise: Promise[Answer]) -> None:
        decision = decide()
        if not decision.entries:
            self._when_committed(self.partition.log.log_end_offset, decision, promise)
            return
        now_ms = self._clock.now_ms()
        records = []
        for entry in decision.entries:
            key, value = entry.encode()
            records.append(Record(timestamp=now_ms, key=key, value=value))
        max_bytes = self.partition.log.config.max_message_bytes
        ends = [len(records)] if decision.is_atomic else list(_ends_of_batches(records, max_bytes))
        self._write_batches(decision, records, ends, 0, promise)

    def _write_batches(
        self,
        decision: Decision[Answer],
        records: list[Record],
        ends: list[int],
        start: int,
        promise: Promise[Answer],
    ) -> None:
        """Write the records from `start` on, each batch up to the next of `ends`."""
        end, *later = ends
        writer = decision.writer
        batch = (
            build_batch(records[start:end])
            if writer is None
            else build_batch(
                records[start:end],
                producer_id=writer.producer_id,
                producer_epoch=writer.producer_epoch,
                base_sequence=-1,
                transactional=True,
            )
        )

        def appended(info: AppendInfo) -> None:
            for offset, number in enumerate(range(start, end), info.first_offset):
                entry, timestamp = decision.entries[number], records[number].timestamp
                self.machine.replay(Replayed(offset, timestamp, entry, *(writer or (-1, -1))))
            if later:
                self._write_batches(decision, records, later, end, promise)
            else:
                self._when_committed(info.last_offset + 1, decision, promise)

        def refused(error: KafkaError) -> None:
            if decision.written is not None:
                decision.written(error)
            promise.reject(error)

        self._append(batch, appended, refused)

    def _end(
        self, writer: Writer, coordinator_epoch: int, is_commit: bool, transaction_version: int, promise: Promise[None]
    ) -> None:
        marker = EndTransactionMarker(ControlType.COMMIT if is_commit else ControlType.ABORT, coordinator_epoch)
        batch = build_end_transaction(
            marker,
            producer_id=writer.producer_id,
            producer_epoch=writer.producer_epoch,
            timestamp=self._clock.now_ms(),
        )

        def appended(info: AppendInfo) -> None:
            self.machine.replay_end(writer.producer_id, writer.producer_epoch, is_commit=is_commit)
            self._when_committed(info.last_offset + 1, Decision(None), promise)

        self._append(batch, appended, promise.reject, transaction_version)

    def _append(
        self,
        batch: bytes,
        appended: Callable[[AppendInfo], None],
        refused: Callable[[KafkaError], None],
        transaction_version: int = 0,
    ) -> None:
        try:
            info = self.partition.append_own(memoryview(bytearray(batch)), transaction_version)
        except KafkaError as error:
            refused(told(error))
            return
        if isinstance(info, AppendInfo):
            appended(info)
            return
        self._is_appending = True

        def done(future: asyncio.Future[AppendInfo]) -> None:
            self._is_appending = False
            error = future.exception()
            if self.state is State.GONE:
                refused(self._not_here())
            elif error is not None:
                refused(told(error))
            else:
                appended(future.result())
            self._go_on()

        info.add_done_callback(done)

    def _go_on(self) -> None:
        while self._queued and not self._is_appending:
            self._queued.popleft()()

    def _when_committed(self, end_offset: int, decision: Decision[Answer], promise: Promise[Answer]) -> None:
        """Answer once everything below `end_offset` is committed."""

        def answer(error: KafkaError | None) -> None:
            if decision.written is not None:
                decision.written(error)
            if error is None:
                promise.resolve(decision.answer)
            else:
                promise.reject(error)

        waiting = self.partition.committed(end_offset)
        if waiting is None:
            answer(None)
            return

        def done(future: asyncio.Future[None]) -> None:
            failure = future.exception()
            answer(None if failure is None else told(failure))

        waiting.add_done_callback(done)

    # Timers

    def schedule(self, key: str, delay_ms: float, decide: Callable[[], Decision[None]]) -> None:
        self.cancel(key)

        def fire() -> None:
            promise: Promise[None] = Promise()
            promise.add_done_callback(fired)
            self._in_turn(lambda: in_turn(promise), promise)

        def in_turn(promise: Promise[None]) -> None:
            """What came before may have replaced or cancelled the timer while it waited for its turn."""
            if self._timers.get(key) is timer:
                self.cancel(key)
                self._perform(decide, promise)

        def fired(promise: Promise[None]) -> None:
            error = promise.exception()
            if error is None or self.state is State.GONE:
                return
            logger.warning("%s: %s is tried again: %s", self.partition, key, error)
            if key not in self._timers:
                self.schedule(key, RETRY_MS, decide)

        timer = self._timers[key] = asyncio.get_running_loop().call_later(delay_ms / 1000, fire)

    def cancel(self, key: str) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    def is_scheduled(self, key: str) -> bool:
        return key in self._timers
