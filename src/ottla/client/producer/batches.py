"""A batch of records on its way: from the first record in it until everybody who waits was told.

    open -> closed -> (sealed: compressed) -> taken -> in flight -> done
                                                ^         |
                                                +- again -+

Listeners may be added from any thread; everything else belongs to the loop's.
"""

import logging
from collections.abc import Mapping
from typing import Any

from ottla.client.errors import BrokerError, OttlaError
from ottla.client.producer._twin import twin
from ottla.client.producer.waiting import Delivery, WaitingRecords, call
from ottla.client.types import RecordMetadata
from ottla.protocol.errors import ErrorCode
from ottla.records import Buffer, Codec, compress, frame_passing_batch

logger = logging.getLogger(__name__)

__all__ = ["HEADER_BYTES", "Batch", "Delivery", "next_sequence"]

HEADER_BYTES = 61
SEQUENCES = 2**31
_TRANSACTIONAL_BIT = 0x10


def next_sequence(sequence: int, count: int) -> int:
    """Sequence numbers go on from 0 after the largest."""
    return (sequence + count) % SEQUENCES


def _callback_failed(error: BaseException) -> None:
    logger.error("a delivery callback failed", exc_info=error)


class Batch(WaitingRecords):
    """Records of one partition. `size_bytes` is what they take of `buffer.memory`.

    `sequence` is -1 until the first attempt; retries keep it, unless the epoch of the producer rises. `serial` rises
    from batch to batch: what a flush waits for.
    """

    __slots__ = (
        "append_time_ms",
        "attempts",
        "base_offset",
        "created_at",
        "given",
        "is_in_flight",
        "is_reopened",
        "is_sealing",
        "last_failure",
        "leader_epoch",
        "may_be_written",
        "not_before",
        "payload",
        "producer_epoch",
        "producer_id",
        "queue",
        "record_errors",
        "sequence",
        "serial",
        "taken_at",
    )

    def __init__(self, owner: "twin.Appender", queue: Any, created_at: float) -> None:
        super().__init__(owner)
        self.queue = queue
        self.serial = 0
        self.created_at = created_at
        self.taken_at = 0.0
        self.not_before = 0.0
        self.attempts = 0
        self.last_failure = ""
        self.leader_epoch = -1
        self.given: tuple[int, int, int, int] | None = None
        self.payload: Buffer | None = None
        self.is_sealing = False
        self.is_in_flight = False
        # Whether an attempt ended without a word about whether the records are in the log.
        self.may_be_written = False
        self.is_reopened = False
        self.producer_id = -1
        self.producer_epoch = -1
        self.sequence = -1
        self.base_offset = -1
        self.append_time_ms = -1
        self.record_errors: Mapping[int, str] = {}

    @classmethod
    def of_payload(
        cls,
        owner: "twin.Appender",
        queue: Any,
        created_at: float,
        payload: Buffer,
        *,
        record_count: int,
        timestamps: tuple[int, int],
        size_bytes: int,
    ) -> "Batch":
        """One whose records were encoded elsewhere, compressed already if they are to be."""
        batch = cls(owner, queue, created_at)
        batch.payload = payload
        batch.given = (record_count, *timestamps, size_bytes)
        return batch

    @property
    def count(self) -> int:
        return self.record_count if self.given is None else self.given[0]

    @property
    def size_bytes(self) -> int:
        return self.payload_bytes if self.given is None else self.given[3]

    @property
    def wire_bytes(self) -> int:
        """The size in a request; of one that is not compressed yet, an upper bound."""
        return HEADER_BYTES + (self.payload_bytes if self.payload is None else len(self.payload))

    @property
    def end_sequence(self) -> int:
        return next_sequence(self.sequence, self.count)

    def seal(self, codec: Codec, level: int | None) -> None:
        """Compress the records, once; also from the thread that closed the batch."""
        if self.payload is None and not self.is_sealing:
            self.is_sealing = True
            self.compress(codec, level)

    def compress(self, codec: Codec, level: int | None) -> None:
        """For whoever has set `is_sealing`: a worker, in the end. What was given up meanwhile keeps no payload."""
        try:
            self.payload = compress(codec, self.view(), level)
        finally:
            self.is_sealing = False
        if self.is_done:
            self.payload = None

    def framed(self, codec: Codec, is_transactional: bool) -> Buffer:
        """The whole batch as it goes over the wire, with the sequence that it has now. It is sent and forgotten."""
        payload = self.view() if self.payload is None else self.payload
        count, base_timestamp, max_timestamp = (
            (self.record_count, self.base_timestamp, self.max_timestamp) if self.given is None else self.given[:3]
        )
        attributes = codec | (_TRANSACTIONAL_BIT if is_transactional else 0)
        return frame_passing_batch(
            payload, 0, -1, attributes, count - 1, base_timestamp, max_timestamp, self.producer_id,
            self.producer_epoch, self.sequence, count,
        )  # fmt: skip

    def error_at(self, index: int) -> Exception | None:
        if self.error is None or not self.record_errors:
            return self.error
        message = self.record_errors.get(index)
        if message is None:
            return BrokerError(
                ErrorCode.INVALID_RECORD,
                "not written, because other records of its batch were refused: send it again without them",
            )
        code = self.error.code if isinstance(self.error, BrokerError) and len(self.record_errors) == 1 else None
        return BrokerError(code or ErrorCode.INVALID_RECORD, message)

    def metadata_at(self, index: int, timestamp: int) -> RecordMetadata:
        offset = -1 if self.base_offset < 0 else self.base_offset + index
        return RecordMetadata(
            self.queue.topic, self.queue.number, offset, timestamp if self.append_time_ms < 0 else self.append_time_ms
        )

    def succeed(self, base_offset: int, append_time_ms: int) -> None:
        """The broker has it. Callbacks run in the order of the records: now, or in the loop's own next turn."""
        self.base_offset = base_offset
        self.append_time_ms = append_time_ms
        self.written = (self.queue.topic, self.queue.number, base_offset, append_time_ms)
        self._end()
        self._tell()

    def fail(self, error: OttlaError, record_errors: Mapping[int, str] | None = None) -> None:
        self.error = error
        self.record_errors = record_errors or {}
        failures = self.owner.failures
        if failures is not None:
            self.unseen = failures.add(self.count, error, self.deliveries or (), list(self.listeners))
        self._end()
        self._tell()

    def _tell(self) -> None:
        """Whoever waits is called in the loop's own thread: who sends may hold a lock that a callback wants."""
        if not self.deliveries and not self.listeners:
            self.deliveries = None
            return
        later = self.owner.later
        if later is None:
            self._tell_now()
        else:
            later(self._tell_now)

    def _tell_now(self) -> None:
        if self.deliveries and self.error is None:
            queue = self.queue
            twin.settle_written(
                self, queue.topic, queue.number, self.base_offset, self.append_time_ms, _callback_failed
            )
        else:
            for delivery in self.deliveries or ():
                call(delivery.settle)
        self.deliveries = None
        self.tell_listeners()

    def _end(self) -> None:
        # In this order: a thread that compresses it still looks at `is_done` after it has set the payload.
        self.is_done = True
        self.payload = None
        self.release()

    def move_to(self, places: "list[tuple[Batch, int] | None]") -> None:
        """The records are in other batches from now on, and so is everybody who waits for them."""
        deliveries, self.deliveries = self.deliveries, None
        self.moved = places
        self.payload = None
        self.release()
        for delivery in deliveries or ():
            home = delivery.batch
            if home.deliveries is None:
                home.deliveries = []
            home.deliveries.append(delivery)
        self.tell_listeners()
