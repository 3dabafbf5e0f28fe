"""The transactional ids of one partition of `__transaction_state`: what is decided about them.

What is kept is in the records alone. Beside it is what no restart needs:

- `pending`: what an id is about to be, from the decision until its record is committed
- `endings`: prepared transactions whose markers are being written
- whoever waits until an id is neither

While an id is pending, or prepared, no other decision is made about it: who asks is told CONCURRENT_TRANSACTIONS.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from ottla.cluster.image import ClusterImage
from ottla.ledger import Decision, Ledger, Replayed
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.runtime import Clock
from ottla.transactions.ending import EndRequest, fenced, is_new_end, wrong_producer
from ottla.transactions.entries import TransactionLogKey, TransactionLogValue
from ottla.transactions.markers import Ending, MarkerWriter
from ottla.transactions.settings import TransactionSettings
from ottla.transactions.transaction import (
    EPOCH_BUMP_VERSION,
    NO_EPOCH,
    NO_PRODUCER_ID,
    Status,
    TopicPartition,
    Transaction,
    is_exhausted,
    tombstone,
)

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")
Producer = tuple[int, int]
"""A producer id and an epoch of it."""


@dataclass(frozen=True, slots=True)
class TransactionContext:
    """What the transactions of a broker are handed."""

    clock: Clock
    settings: Callable[[], TransactionSettings]
    image: Callable[[], ClusterImage]
    write_markers: MarkerWriter


class NeedsProducerId(KafkaError):
    """The decision takes a producer id, and none was offered: it is asked for again with one."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "a new producer id is needed")


class TransactionMachine:
    """See the module. Decisions that may need a new producer id are offered one, or raise `NeedsProducerId`."""

    def __init__(self, context: TransactionContext, ledger: "Ledger[TransactionMachine]") -> None:
        self._context = context
        self._ledger = ledger
        self.transactions: dict[str, Transaction] = {}
        self.ongoing: dict[str, None] = {}
        self.pending: dict[str, Transaction | None] = {}
        self.endings: dict[str, Ending] = {}
        self._waiting: dict[str, dict[Callable[[], None], None]] = {}
        self.is_gone = False

    # What the ledger asks

    def replay(self, record: Replayed) -> None:
        key, value = record.entry.key, record.entry.value
        assert isinstance(key, TransactionLogKey)
        name = key.transactional_id
        self.ongoing.pop(name, None)
        if value is None:
            self.transactions.pop(name, None)
            return
        assert isinstance(value, TransactionLogValue)
        target = self.pending.get(name)
        try:
            transaction = Transaction.from_record(
                name, value, NO_EPOCH if target is None else target.last_producer_epoch
            )
        except ValueError as error:
            logger.error("offset %d of the transactions: %s is passed over: %s", record.offset, name, error)
            return
        self.transactions[name] = transaction
        if transaction.status is Status.ONGOING:
            self.ongoing[name] = None

    def replay_end(self, producer_id: int, producer_epoch: int, *, is_commit: bool) -> None:
        """Nobody writes into this topic in a transaction."""

    def loaded(self) -> None:
        """Go on with what was decided before."""
        for name, transaction in list(self.transactions.items()):
            if transaction.status.is_prepared:
                self._carry_out(name)

    def unload(self, error: KafkaError) -> None:
        self.is_gone = True
        for ending in self.endings.values():
            ending.stop()
        self.endings.clear()
        for name in list(self._waiting):
            self._wake(name)

    # Looking

    def is_pending(self, name: str) -> bool:
        if name in self.pending:
            return True
        transaction = self.transactions.get(name)
        return transaction is not None and transaction.status.is_prepared

    def when_settled(self, name: str, callback: Callable[[], None]) -> None:
        """Call it once the id is not pending any more, or this broker does not have it any more."""
        self._waiting.setdefault(name, {})[callback] = None

    def stop_waiting(self, name: str, callback: Callable[[], None]) -> bool:
        """Whether it was waiting: it may have been called already."""
        waiting = self._waiting.get(name)
        if waiting is None or callback not in waiting:
            return False
        del waiting[callback]
        if not waiting:
            del self._waiting[name]
        return True

    def verify(self, name: str, producer: Producer, partition: TopicPartition) -> None:
        """`KafkaError` unless the partition is part of the producer's transaction."""
        transaction = self._of_producer(name, producer)
        if transaction.status.is_prepared:
            raise _concurrent(name)
        if partition not in transaction.partitions:
            raise KafkaError(
                ErrorCode.TRANSACTION_ABORTABLE,
                f"{partition.topic}-{partition.partition} is not in the transaction of {name}",
            )

    def _of_producer(self, name: str, producer: Producer) -> Transaction:
        transaction = self.transactions.get(name)
        if transaction is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"{name} has no producer, or has expired")
        if transaction.producer_id != producer[0]:
            raise wrong_producer(transaction, producer[0])
        if transaction.producer_epoch != producer[1]:
            raise fenced(transaction, producer[1])
        return transaction

    def _check_settled(self, name: str) -> None:
        if self.is_pending(name):
            raise _concurrent(name)

    # Deciding

    def initialize(
        self, name: str, timeout_ms: int, expected: Producer | None, offered_id: int | None
    ) -> Decision[Producer | None]:
        """Give the id to a producer that begins, or begins again (`expected` is what it was); None: ask again later.

        A transaction of the producer before it is aborted first.
        """
        self._check_settled(name)
        transaction = self.transactions.get(name)
        if transaction is None:
            transaction = Transaction(name, _offered(offered_id))
        if expected is not None and not _may_continue(transaction, expected):
            raise fenced(transaction, expected[1])
        if transaction.status is Status.ONGOING:
            return self._transit(self._aborted(transaction, offered_id), None)
        now_ms = self._context.clock.now_ms()
        epoch = transaction.producer_epoch
        if is_exhausted(epoch) and (expected is None or expected[1] == epoch):
            last_epoch = NO_EPOCH if expected is None else epoch
            target = transaction.rotated(_offered(offered_id), last_epoch, timeout_ms, now_ms)
        elif expected is None:
            target = transaction.initialized(epoch + 1, NO_EPOCH, timeout_ms, now_ms)
        elif epoch in (NO_EPOCH, expected[1]):
            target = transaction.initialized(epoch + 1, epoch, timeout_ms, now_ms)
        elif expected[1] == transaction.last_producer_epoch:
            target = transaction.initialized(epoch, transaction.last_producer_epoch, timeout_ms, now_ms)
        else:
            raise fenced(transaction, expected[1])
        return self._transit(target, target.producer)

    def add_partitions(
        self, name: str, producer: Producer, partitions: Iterable[TopicPartition], client_version: int
    ) -> Decision[None]:
        """Make partitions part of the producer's transaction, and begin one if there is none."""
        self._check_settled(name)
        transaction = self._of_producer(name, producer)
        added = frozenset(partitions)
        if transaction.status is Status.ONGOING and added <= transaction.partitions:
            return Decision(None)
        return self._transit(transaction.with_partitions(added, client_version, self._context.clock.now_ms()), None)

    def end(self, name: str, request: EndRequest, offered_id: int | None) -> Decision[Producer]:
        """Commit or abort; the answer is the producer's id and epoch from then on."""
        if request.bumps_epoch:
            self._check_settled(name)
        transaction = self.transactions.get(name)
        if transaction is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"{name} has no producer, or has expired")
        if not request.bumps_epoch:
            self._of_producer(name, (request.producer_id, request.producer_epoch))
            self._check_settled(name)
        if not is_new_end(transaction, request):
            return Decision(transaction.producer)
        needs_id = request.bumps_epoch and is_exhausted(transaction.producer_epoch)
        target = transaction.prepared(
            is_commit=request.is_commit,
            client_version=request.client_version,
            next_producer_id=_offered(offered_id) if needs_id else NO_PRODUCER_ID,
            now_ms=self._context.clock.now_ms(),
        )
        return self._transit(target, target.completed(target.updated_ms).producer)

    def abort_timed_out(self, name: str, offered_id: int | None) -> Decision[None]:
        """Abort a transaction whose producer has been silent for too long, and fence the producer."""
        transaction = self.transactions.get(name)
        if transaction is None or self.is_pending(name) or not transaction.has_timed_out(self._context.clock.now_ms()):
            return Decision(None)
        logger.info("the transaction of %s is aborted: it was open for more than %d ms", name, transaction.timeout_ms)
        return self._transit(self._aborted(transaction, offered_id), None)

    def expire(self, names: Iterable[str]) -> Decision[None]:
        """Forget ids that nobody has used for long."""
        now_ms, expiration_ms = self._context.clock.now_ms(), self._context.settings().transactional_id_expiration_ms
        expired = [
            name
            for name in names
            if name in self.transactions
            and not self.is_pending(name)
            and self.transactions[name].has_expired(now_ms, expiration_ms)
        ]
        self.pending.update(dict.fromkeys(expired))

        def written(error: KafkaError | None) -> None:
            for name in expired:
                self._settle(name)

        return Decision(None, [tombstone(name) for name in expired], written=written)

    def _aborted(self, transaction: Transaction, offered_id: int | None) -> Transaction:
        """Aborted in the absence of its producer: with another epoch, so that whatever it still sends is refused."""
        needs_id = is_exhausted(transaction.producer_epoch)
        return transaction.prepared(
            is_commit=False,
            client_version=EPOCH_BUMP_VERSION,
            next_producer_id=_offered(offered_id) if needs_id else NO_PRODUCER_ID,
            now_ms=self._context.clock.now_ms(),
        )

    # From a decision to its end

    def _transit(self, target: Transaction, answer: Answer) -> Decision[Answer]:
        name = target.transactional_id
        self.pending[name] = target

        def written(error: KafkaError | None) -> None:
            if error is None and target.status.is_prepared:
                del self.pending[name]
                self._carry_out(name)
            else:
                self._settle(name)

        return Decision(answer, [target.entry()], written=written)

    def _carry_out(self, name: str) -> None:
        if self.is_gone:
            return
        ending = Ending(
            self.transactions[name],
            self._ledger.leader_epoch,
            self._context.write_markers,
            self._context.image,
            lambda: self._ledger.write(lambda: self._complete(name)),
        )
        self.endings[name] = ending
        ending.go_on()

    def _complete(self, name: str) -> Decision[None]:
        target = self.transactions[name].completed(self._context.clock.now_ms())
        self.pending[name] = target

        def written(error: KafkaError | None) -> None:
            if error is None:
                self.endings.pop(name, None)
            self._settle(name)

        return Decision(None, [target.entry()], written=written)

    def _settle(self, name: str) -> None:
        self.pending.pop(name, None)
        if not self.is_pending(name):
            self._wake(name)

    def _wake(self, name: str) -> None:
        for callback in self._waiting.pop(name, {}):
            callback()


def _may_continue(transaction: Transaction, expected: Producer) -> bool:
    """Whether a producer that was known by another id or epoch is still the one that has the transactional id.

    The last usable epoch of the id before: its epochs were used up, and the answer with the new id was lost.
    """
    producer_id, epoch = expected
    return (
        transaction.producer_epoch == NO_EPOCH
        or producer_id == transaction.producer_id
        or (producer_id == transaction.previous_producer_id and is_exhausted(epoch))
    )


def _offered(producer_id: int | None) -> int:
    if producer_id is None:
        raise NeedsProducerId
    return producer_id


def _concurrent(name: str) -> KafkaError:
    return KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, f"{name} is changing; try again")
