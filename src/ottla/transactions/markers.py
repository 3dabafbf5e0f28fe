"""From decided to done: a marker in every partition of the transaction, then the record that it is complete.

    prepared --> markers in pieces of `PIECE` partitions --> complete
                    ^                |
                    +--- back off ---+ some partitions could not take theirs

It goes on until every partition has its marker, for as long as this broker leads the ledger; another broker, or a
start, begins anew from the record of the decision, and partitions that have their marker already take it as a
repetition. A partition that exists no more needs none.

Where nothing has to be waited for all of it happens in one call, so that a producer which has its answer never finds
its transaction still ending.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ottla.cluster.image import ClusterImage
from ottla.protocol.errors import ErrorCode
from ottla.runtime.promise import Promise
from ottla.transactions.transaction import Status, TopicPartition, Transaction

logger = logging.getLogger(__name__)

PIECE = 16
FIRST_BACKOFF_MS = 50
MAX_BACKOFF_MS = 5_000


class EndedTransaction(NamedTuple):
    """What a marker says, and to whom. `client_version` is the transaction version of the producer."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    client_version: int


MarkerErrors = Mapping[TopicPartition, ErrorCode]
MarkerWriter = Callable[[EndedTransaction, Sequence[TopicPartition]], Promise[MarkerErrors]]
"""Writes markers; kept, when all are committed or refused, with the error of each partition that did not take one."""


class Ending:
    """One prepared transaction on its way. `complete` writes the last record; a promise of it."""

    def __init__(
        self,
        transaction: Transaction,
        coordinator_epoch: int,
        write_markers: MarkerWriter,
        image: Callable[[], ClusterImage],
        complete: Callable[[], Promise[None]],
    ) -> None:
        self._name = transaction.transactional_id
        self._ended = EndedTransaction(
            transaction.producer_id,
            transaction.producer_epoch,
            coordinator_epoch,
            transaction.status is Status.PREPARE_COMMIT,
            transaction.client_version,
        )
        self._left = sorted(transaction.partitions)
        self._refused: list[TopicPartition] = []
        self._write_markers = write_markers
        self._image = image
        self._complete = complete
        self._backoff_ms = FIRST_BACKOFF_MS
        self._handle: asyncio.Handle | None = None
        self.is_stopped = False

    @property
    def partitions_left(self) -> int:
        return len(self._left) + len(self._refused)

    @property
    def is_backing_off(self) -> bool:
        return isinstance(self._handle, asyncio.TimerHandle)

    def stop(self) -> None:
        """Leave the rest to the next who leads the ledger."""
        self.is_stopped = True
        if self._handle is not None:
            self._handle.cancel()

    def go_on(self) -> None:
        """Write the next piece, or the record that all is done."""
        self._handle = None
        if self.is_stopped:
            return
        image = self._image()
        piece = [each for each in self._left[:PIECE] if image.partition(*each) is not None]
        if piece:
            self._write(piece)
        elif self._left:
            self._next_piece()
        elif self._refused:
            self._left, self._refused = self._refused, []
            self._back_off()
        else:
            self._complete().add_done_callback(self._completed)

    def _write(self, piece: Sequence[TopicPartition]) -> None:
        try:
            promise = self._write_markers(self._ended, piece)
        except Exception as error:
            promise = Promise()
            promise.reject(error)
        promise.add_done_callback(lambda written: self._written(piece, written))

    def _written(self, piece: Sequence[TopicPartition], promise: Promise[MarkerErrors]) -> None:
        failure = promise.exception()
        if failure is not None:
            logger.error("markers of %s could not be written", self._name, exc_info=failure)
        errors = promise.result() if failure is None else dict.fromkeys(piece, ErrorCode.UNKNOWN_SERVER_ERROR)
        for partition in piece:
            code = errors.get(partition, ErrorCode.NONE)
            if code is ErrorCode.INVALID_PRODUCER_EPOCH:
                logger.warning("%s-%d has seen a later epoch of %s: it needs no marker", *partition, self._name)
            elif code is not ErrorCode.NONE:
                logger.warning("%s-%d: the marker of %s is tried again: %s", *partition, self._name, code.name)
                self._refused.append(partition)
        self._next_piece()

    def _next_piece(self) -> None:
        del self._left[:PIECE]
        if self._left:
            self._handle = asyncio.get_running_loop().call_soon(self.go_on)
        else:
            self.go_on()

    def _completed(self, promise: Promise[None]) -> None:
        error = promise.exception()
        if error is not None and not self.is_stopped:
            logger.warning("%s has its markers; that it is complete is written again: %s", self._name, error)
            self._back_off()

    def _back_off(self) -> None:
        self._handle = asyncio.get_running_loop().call_later(self._backoff_ms / 1000, self.go_on)
        self._backoff_ms = min(self._backoff_ms * 2, MAX_BACKOFF_MS)
