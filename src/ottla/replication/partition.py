"""One replica of a partition on this broker.

    Produce -> append -> (roll first, if the segment is full) -> log -> high watermark -> waiting producers
                                                                              |
                                                         waiting fetches <----+

What must stay true:
- Appends reach the log in the order in which they were handed in, also while a segment is being rolled: what
  arrives meanwhile waits in `_queued`, and nothing overtakes it.
- Readers see records below the high watermark only. It never goes back while this broker leads. Readers of committed
  records see those below the last stable offset, which moves with the high watermark or not at all.
- The high watermark is the smallest end offset among the in-sync replicas. This broker's own end offset counts
  as far as it is flushed where the topic asks for that (`ottla.flush.before.ack`, `flush.messages=1`), so that
  nobody reads or is promised what a power cut could take back.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ottla.cluster.image import PartitionImage
from ottla.log.append_info import AppendInfo
from ottla.log.log import Log
from ottla.log.own_batch import own_batch
from ottla.log.producer_state import Permit
from ottla.log.refused_records import UnnamedTimestamps
from ottla.log.stability import aborted_within, bytes_between, last_stable_offset
from ottla.log.transaction_index import AbortedTransaction
from ottla.log.validation import must_decompress, validate_for_append
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.records import BatchHeader, inspect_batches
from ottla.replication.traffic import Traffic
from ottla.replication.waiting import FetchWait, OffsetWaits, end_waits
from ottla.runtime import Clock, Executor, FileRange

logger = logging.getLogger(__name__)

ACKS_ALL = -1
UP_TO_HIGH_WATERMARK = -1
NO_EPOCH = -1

Result = TypeVar("Result")


class _QueuedAppend:
    """An append that waits for its turn, with its own copy of the records.

    `headers` are there once the records were validated: that may have changed them, and must not happen twice.
    """

    __slots__ = ("future", "headers", "permit", "records")

    def __init__(self, records: memoryview, headers: list[BatchHeader] | None, permit: Permit | None) -> None:
        self.records = bytearray(records)
        self.headers = headers
        self.permit = permit
        self.future: asyncio.Future[AppendInfo] = asyncio.get_running_loop().create_future()


class Partition:
    def __init__(self, topic: str, index: int, log: Log, node_id: int, clock: Clock, executor: Executor) -> None:
        self.topic = topic
        self.index = index
        self.log = log
        self.traffic = Traffic()
        self.leader_id = -1
        self.leader_epoch = -1
        self.epoch_start_offset = 0
        self.is_leader = False
        self.replicas: tuple[int, ...] = ()
        self.isr: tuple[int, ...] = ()
        self._node_id = node_id
        self._clock = clock
        self._executor = executor
        self._follower_end_offsets: dict[int, int] = {}
        self._queued: deque[_QueuedAppend] = deque()
        self._roller: asyncio.Task[object] | None = None
        self._flusher: asyncio.Task[None] | None = None
        self._fetch_waits: dict[FetchWait, None] = {}
        self._committed_waits: dict[FetchWait, None] = {}
        # As far as those who wait for committed records were told.
        self._told_stable_offset = 0
        self._produce_waits = OffsetWaits()
        self._invisible_bytes = 0

    # Leadership

    def apply(self, image: PartitionImage) -> None:
        """Take on the role that the cluster's image gives this replica."""
        self.replicas = tuple(image.replicas)
        self.isr = tuple(image.isr)
        self.leader_id = image.leader
        was_leader, self.is_leader = self.is_leader, image.leader == self._node_id
        if self.is_leader and (not was_leader or image.leader_epoch != self.leader_epoch):
            self.log.leader_epochs.assign(image.leader_epoch, self.log.log_end_offset)
            self.epoch_start_offset = self.log.log_end_offset
            self._follower_end_offsets.clear()
        self.leader_epoch = image.leader_epoch
        if self.is_leader:
            self._advance_high_watermark()
        elif was_leader:
            self.release_waits()
            self._produce_waits.fail(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "leadership moved away"))

    def check_leader(self, current_leader_epoch: int = -1) -> None:
        """Raise unless this replica leads, in the epoch that the client believes in (-1: it does not say)."""
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self} is led by broker {self.leader_id}")
        if current_leader_epoch not in (NO_EPOCH, self.leader_epoch):
            code = (
                ErrorCode.FENCED_LEADER_EPOCH
                if current_leader_epoch < self.leader_epoch
                else ErrorCode.UNKNOWN_LEADER_EPOCH
            )
            raise KafkaError(code, f"{self} is in leader epoch {self.leader_epoch}, not {current_leader_epoch}")

    @property
    def high_watermark(self) -> int:
        return self.log.high_watermark

    @property
    def last_stable_offset(self) -> int:
        log = self.log
        if log.producer_state.transactions.first_unstable_offset >= log.high_watermark:
            return log.high_watermark
        return last_stable_offset(log)

    @property
    def waiting_fetches(self) -> int:
        return len(self._fetch_waits) + len(self._committed_waits)

    @property
    def waiting_producers(self) -> int:
        return len(self._produce_waits)

    # Appending

    def append(
        self, records: memoryview, acks: int, permit: Permit | None = None
    ) -> AppendInfo | asyncio.Future[AppendInfo]:
        """Append one producer's batch; a future where a segment must be rolled or the batch decompressed first.

        The memory of `records` is only used until this returns, and its header is changed in place. The first batch of
        a transaction needs a verification as its `permit`.
        """
        if not self.is_leader:
            self.check_leader()
        if acks == ACKS_ALL:
            self._check_in_sync()
        log = self.log
        if self._roller is not None or (log.looks_into_records and must_decompress(records, log.config)):
            return self._queue(records, None, permit)
        try:
            validated, headers = self._validate(records)
        except UnnamedTimestamps as error:
            return asyncio.ensure_future(error.refuse(self._executor, bytes(records)))
        size_bytes, header = len(validated), headers[0]
        if log.must_roll(size_bytes, header.max_timestamp, header.record_count):
            return self._queue(validated, headers, permit)
        info = log.append(validated, headers, self.leader_epoch, permit)
        traffic = self.traffic
        traffic.messages_in += header.record_count
        traffic.bytes_in += len(records)
        if not info.duplicate:
            self._appended(size_bytes)
        return info

    def append_own(self, records: memoryview, transaction_version: int = 0) -> AppendInfo | asyncio.Future[AppendInfo]:
        """Append a batch that this broker made itself, for all in-sync replicas to have; waits as `append` does.

        A client's mistakes are not looked for in it, only its size, and whether it comes too late for its transaction.
        """
        self.check_leader()
        self._check_in_sync()
        headers = inspect_batches(records, False)
        header, max_bytes = headers[0], self.log.config.max_message_bytes
        if len(records) > max_bytes:
            message = f"{self}: at most {max_bytes} bytes expected, {len(records)} came"
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, message)
        permit = own_batch(records, header, transaction_version)
        must_roll = self.log.must_roll(len(records), header.max_timestamp, header.record_count)
        if self._roller is not None or must_roll:
            return self._queue(records, headers, permit)
        info = self.log.append(records, headers, self.leader_epoch, permit)
        self.traffic.messages_in += header.record_count
        self.traffic.bytes_in += len(records)
        self._appended(len(records))
        return info

    def _check_in_sync(self) -> None:
        """Kafka asks for no more replicas than the partition has."""
        wanted = min(self.log.config.min_insync_replicas, len(self.replicas))
        if len(self.isr) < wanted:
            message = f"{self} has {len(self.isr)} in-sync replicas; min.insync.replicas asks for {wanted}"
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, message)

    def _validate(self, records: memoryview) -> tuple[memoryview, list[BatchHeader]]:
        return validate_for_append(records, self.log.config, self._clock.now_ms())

    async def _validate_queued(self, records: memoryview) -> tuple[memoryview, list[BatchHeader]]:
        """Decompressing takes milliseconds: it is done beside the loop, while later appends wait their turn."""
        try:
            if not must_decompress(records, self.log.config):
                return self._validate(records)
            validated = await self._executor.run(self._validate, records)
        except UnnamedTimestamps as error:
            await error.refuse(self._executor, bytes(records))
        self.check_leader()
        return validated

    def _queue(
        self, records: memoryview, headers: list[BatchHeader] | None, permit: Permit | None
    ) -> asyncio.Future[AppendInfo]:
        queued = _QueuedAppend(records, headers, permit)
        self._queued.append(queued)
        if self._roller is None:
            self._roller = asyncio.get_running_loop().create_task(self._drain_queue())
        return queued.future

    async def _drain_queue(self) -> None:
        """Append what waits, rolling where needed; ends, in one turn of the loop, with the queue empty."""
        try:
            while self._queued:
                queued = self._queued[0]
                try:
                    info = await self._append_queued(queued)
                except Exception as error:
                    self._queued.popleft()
                    if not queued.future.done():
                        queued.future.set_exception(error)
                else:
                    self._queued.popleft()
                    if not queued.future.done():
                        queued.future.set_result(info)
        finally:
            self._roller = None

    async def _append_queued(self, queued: _QueuedAppend) -> AppendInfo:
        self.check_leader()
        validated, headers = memoryview(queued.records), queued.headers
        if headers is None:
            validated, headers = await self._validate_queued(validated)
        if self.log.must_roll(len(validated), headers[0].max_timestamp, headers[0].record_count):
            await self.log.roll()
            self.check_leader()
        info = self.log.append(validated, headers, self.leader_epoch, queued.permit)
        self.traffic.messages_in += headers[0].record_count
        self.traffic.bytes_in += len(queued.records)
        if not info.duplicate:
            self._appended(len(validated))
        return info

    async def hold_appends(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Run `work` while appends wait their turn; they go on when it is over, however it ends."""
        while self._roller is not None:
            await asyncio.wait([self._roller])

        async def alone() -> Result:
            try:
                return await work()
            finally:
                if self.is_leader:
                    # What was flushed meanwhile may be seen.
                    self._advance_high_watermark()
                await self._drain_queue()

        task = asyncio.get_running_loop().create_task(alone())
        self._roller = task
        return await asyncio.shield(task)

    def _appended(self, size_bytes: int) -> None:
        self._invisible_bytes += size_bytes
        if self.log.flushes_before_visible:
            self._start_flush()
        else:
            self._advance_high_watermark()

    def acknowledgement(self, info: AppendInfo, acks: int) -> asyncio.Future[None] | None:
        """What a producer's answer waits for; None when it need not wait."""
        log = self.log
        if log.flushes_before_visible:
            if log.flushed_offset <= info.last_offset:
                self._start_flush()
        elif log.flushes_by_count and log.flush_due():
            return asyncio.ensure_future(log.flush(info.last_offset + 1))
        elif acks != ACKS_ALL:
            return None
        if log.high_watermark > info.last_offset:
            return None
        return self._produce_waits.add(info.last_offset + 1)

    def committed(self, end_offset: int) -> asyncio.Future[None] | None:
        """What whoever wrote everything below an offset waits for; None when readers see all of it."""
        log = self.log
        if log.high_watermark >= end_offset:
            return None
        if log.flushes_before_visible:
            self._start_flush()
        return self._produce_waits.add(end_offset)

    def _start_flush(self) -> None:
        if self._flusher is None:
            self._flusher = asyncio.get_running_loop().create_task(self._flush_until_clean())

    async def _flush_until_clean(self) -> None:
        """One fsync for all that waits; what arrives during it is covered by the next."""
        try:
            while self.log.flushed_offset < self.log.log_end_offset:
                await self.log.flush()
                self._advance_high_watermark()
        except (KafkaError, OSError) as error:
            logger.error("%s could not be flushed: %s", self, error)
            self._produce_waits.fail(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self} could not be flushed: {error}"))
        finally:
            self._flusher = None

    def _advance_high_watermark(self) -> None:
        log = self.log
        end_offset = log.flushed_offset if log.flushes_before_visible else log.log_end_offset
        if len(self.isr) > 1:
            end_offset = min(end_offset, self._slowest_follower())
        if end_offset <= log.high_watermark:
            return
        log.high_watermark = end_offset
        transactions = log.producer_state.transactions
        if transactions.awaits_replication:
            transactions.replicated(end_offset)
        if self._produce_waits:
            self._produce_waits.reached(end_offset)
        size_bytes, self._invisible_bytes = self._invisible_bytes, 0
        if self._fetch_waits:
            for wait in list(self._fetch_waits):
                wait.bytes_added(size_bytes)
        if self._committed_waits:
            self._tell_stable_offset()

    def _tell_stable_offset(self) -> None:
        """Let those who wait for committed records know how many bytes of them came since they were told last."""
        told, self._told_stable_offset = self._told_stable_offset, self.last_stable_offset
        if told >= self._told_stable_offset:
            return
        try:
            size_bytes = bytes_between(self.log, told, self._told_stable_offset)
        except OSError:
            # They find out what is wrong when they read.
            end_waits(list(self._committed_waits))
            return
        for wait in list(self._committed_waits):
            wait.bytes_added(size_bytes)

    def _slowest_follower(self) -> int:
        followers = (replica for replica in self.isr if replica != self._node_id)
        return min(self._follower_end_offsets.get(replica, 0) for replica in followers)

    # Forgetting

    def delete_records(self, before_offset: int) -> int:
        """Let the records below an offset be gone (-1: below the high watermark); the first offset that is left.

        Readers notice at once; the files go when retention is applied next.
        """
        self.check_leader()
        log = self.log
        if log.config.compact and not log.config.delete:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION, f"{self}: records can be deleted where cleanup.policy has delete"
            )
        offset = log.high_watermark if before_offset == UP_TO_HIGH_WATERMARK else before_offset
        if offset < 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{self}: an offset expected, {before_offset} came")
        log.advance_start(offset)
        return log.log_start_offset

    # Reading

    def read(self, offset: int, max_bytes: int, *, min_one_batch: bool) -> FileRange | None:
        """The bytes from `offset` on that a consumer may see; None when there are none yet."""
        return self.log.read(offset, max_bytes, up_to_offset=self.log.high_watermark, min_one_batch=min_one_batch)

    def read_committed(
        self, offset: int, max_bytes: int, *, min_one_batch: bool
    ) -> tuple[FileRange | None, list[AbortedTransaction]]:
        """The bytes that a consumer of committed records may see, and the transactions that it has to leave out."""
        stable_offset = self.last_stable_offset
        found = self.log.read(offset, max_bytes, up_to_offset=stable_offset, min_one_batch=min_one_batch)
        return found, [] if found is None else aborted_within(self.log, offset, found)

    def add_fetch_wait(self, wait: FetchWait) -> None:
        if wait.is_for_committed:
            if not self._committed_waits:
                self._told_stable_offset = self.last_stable_offset
            self._committed_waits[wait] = None
        else:
            self._fetch_waits[wait] = None

    def remove_fetch_wait(self, wait: FetchWait) -> None:
        (self._committed_waits if wait.is_for_committed else self._fetch_waits).pop(wait, None)

    def release_waits(self) -> None:
        end_waits([*self._fetch_waits, *self._committed_waits])

    def fail(self, error: KafkaError) -> None:
        """Tell everyone who waits that the log is out of use; the log itself refuses whatever comes later."""
        self.release_waits()
        self._produce_waits.fail(error)

    async def stop(self) -> None:
        """Lead no more and let go of everyone who waits; queued appends are finished or refused first."""
        self.is_leader = False
        self.release_waits()
        if self._roller is not None:
            await asyncio.wait([self._roller])
        if self._flusher is not None:
            await self._flusher
        self._produce_waits.fail(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self} is no longer here"))

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"
