"""Produce and transactions: a partition is verified with the coordinator before its first batch (KIP-890).

    batch of a transaction -> open in this partition already: appended, as any other
                           -> not open: the coordinator is asked -> it knows the partition: appended
                                                                 -> it does not: refused

Batches of one producer that come while the coordinator is asked wait for the same answer, and are appended in the order
in which they came. A client of the second version of the protocol (Produce 12 and newer) does not announce partitions
itself: asking adds them. While the transaction before is still being ended, the coordinator says so, and is asked again
for a moment, since that is sooner than the client would come back.

| the coordinator's error                                             | what the client is told                    |
|---------------------------------------------------------------------|--------------------------------------------|
| PRODUCER_FENCED                                                     | INVALID_PRODUCER_EPOCH                     |
| TRANSACTION_ABORTABLE, before version 11                            | INVALID_TXN_STATE                          |
| NETWORK_EXCEPTION, COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR,   | NOT_ENOUGH_REPLICAS, which every client    |
| COORDINATOR_NOT_AVAILABLE; CONCURRENT_TRANSACTIONS before version 12 | tries again                                |
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.log.append_info import AppendInfo
from ottla.log.verification import UNVERIFIED, Verification
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.records import BatchHeader, CorruptRecord, read_header
from ottla.replication.partition import Partition
from ottla.runtime.promise import Promise

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

ABORTABLE_SINCE_VERSION = 11
ADDS_SINCE_VERSION = 12
RETRY_BACKOFF = "add.partitions.to.txn.retry.backoff.ms"
RETRY_BACKOFF_MAX = "add.partitions.to.txn.retry.backoff.max.ms"

_UNCERTAIN = frozenset(
    (
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    )
)


class NotVerified(KafkaError):
    """The coordinator did not vouch for the batch: the partition itself has not seen it."""


def header_of(records: memoryview) -> BatchHeader | None:
    """The header of a batch; None when there is none, which whoever appends it finds out as well."""
    try:
        return read_header(records)
    except CorruptRecord:
        return None


def append_verified(
    broker: "Broker",
    partition: Partition,
    header: BatchHeader,
    records: memoryview,
    acks: int,
    transactional_id: str,
    api_version: int,
) -> AppendInfo | asyncio.Future[AppendInfo]:
    """Append a batch of a transaction once it is verified; a future where that, or the append, has to wait."""
    if header.producer_id < 0:
        return partition.append(records, acks)
    partition.check_leader()
    if not broker.settings.config.verifies_transactions:
        return partition.append(records, acks, UNVERIFIED)
    state = partition.log.producer_state
    if state.has_open_transaction(header.producer_id, header.producer_epoch):
        return partition.append(records, acks)
    adds = api_version >= ADDS_SINCE_VERSION

    def begin() -> Verification:
        return state.verifications.begin(
            header.producer_id,
            header.base_sequence,
            header.producer_epoch,
            begins_at_zero=adds,
            now_ms=broker.clock.now_ms(),
        )

    verification = begin()
    waiting = verification.answer
    if waiting is None:
        question = _Question(broker, partition, header, transactional_id, api_version)
        try:
            answer = question.ask()
        except KafkaError as error:
            if not question.may_ask_again(error):
                raise question.told(error) from error
            answer = question.ask_again()
        if answer is None:
            return partition.append(records, acks, verification)
        waiting = question.answer
        verification.answer = waiting
        waiting.add_done_callback(lambda promise: _answered(verification, promise))
        question.follow(answer)
    permit = begin if adds else lambda: verification
    return _append_later(partition, memoryview(bytearray(records)), acks, permit, waiting)


def _answered(verification: Verification, answer: Promise[None]) -> None:
    if verification.answer is answer:
        verification.answer = None


def _append_later(
    partition: Partition, records: memoryview, acks: int, permit: Callable[[], Verification], waiting: Promise[None]
) -> asyncio.Future[AppendInfo]:
    """Append when the coordinator has answered.

    What it added was added after the markers of the producer's last transaction. One of them may have come here
    meanwhile and ended the verification, so there is a new one for what follows in the same turn of the loop.
    """
    appended: asyncio.Future[AppendInfo] = asyncio.get_running_loop().create_future()

    def answered(answer: Promise[None]) -> None:
        try:
            answer.result()
            info = partition.append(records, acks, permit())
        except Exception as error:
            appended.set_exception(error)
            return
        if isinstance(info, AppendInfo):
            appended.set_result(info)
        else:
            info.add_done_callback(finished)

    def finished(future: asyncio.Future[AppendInfo]) -> None:
        error = future.exception()
        if error is None:
            appended.set_result(future.result())
        else:
            appended.set_exception(error)

    waiting.add_done_callback(answered)
    return appended


class _Question:
    """What the coordinator is asked about one batch, until it says yes or no. `answer` is kept by then."""

    def __init__(
        self, broker: "Broker", partition: Partition, header: BatchHeader, transactional_id: str, api_version: int
    ) -> None:
        self._broker = broker
        self._partition = partition
        self._producer = (transactional_id, header.producer_id, header.producer_epoch)
        self._api_version = api_version
        self._adds = api_version >= ADDS_SINCE_VERSION
        config = broker.settings.config
        self._backoff_seconds = config.interval_ms(RETRY_BACKOFF) / 1000
        self._deadline = broker.clock.monotonic() + config.interval_ms(RETRY_BACKOFF_MAX) / 1000
        self.answer: Promise[None] = Promise()

    def ask(self) -> Promise[None] | None:
        return self._broker.transactions.verify(
            *self._producer, self._partition.topic, self._partition.index, self._adds
        )

    def may_ask_again(self, error: BaseException) -> bool:
        return (
            self._adds
            and isinstance(error, KafkaError)
            and error.code == ErrorCode.CONCURRENT_TRANSACTIONS
            and self._broker.clock.monotonic() + self._backoff_seconds <= self._deadline
        )

    def ask_again(self) -> Promise[None]:
        """The answer to the same question, asked after a while."""
        later: Promise[None] = Promise()

        def ask() -> None:
            try:
                answer = self.ask()
            except KafkaError as error:
                later.reject(error)
                return
            if answer is None:
                later.resolve(None)
            else:
                answer.add_done_callback(lambda promise: _keep(later, promise))

        asyncio.get_running_loop().call_later(self._backoff_seconds, ask)
        return later

    def follow(self, answer: Promise[None]) -> None:
        def answered(promise: Promise[None]) -> None:
            error = promise.exception()
            if error is None:
                self.answer.resolve(None)
            elif self.may_ask_again(error):
                self.follow(self.ask_again())
            else:
                self.answer.reject(self.told(error) if isinstance(error, KafkaError) else error)

        answer.add_done_callback(answered)

    def told(self, error: KafkaError) -> NotVerified:
        code = error.code
        if code == ErrorCode.PRODUCER_FENCED:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        elif code == ErrorCode.TRANSACTION_ABORTABLE and self._api_version < ABORTABLE_SINCE_VERSION:
            code = ErrorCode.INVALID_TXN_STATE
        elif code in _UNCERTAIN or (code == ErrorCode.CONCURRENT_TRANSACTIONS and not self._adds):
            return NotVerified(
                ErrorCode.NOT_ENOUGH_REPLICAS, f"{self._partition} could not be verified: {error.code.name}"
            )
        return NotVerified(code, f"{self._partition} is not in the transaction: {error.message}")


def _keep(promise: Promise[None], kept: Promise[None]) -> None:
    error = kept.exception()
    if error is None:
        promise.resolve(None)
    else:
        promise.reject(error)
