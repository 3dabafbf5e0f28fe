"""What is kept of a transactional id, and the steps that it takes.

    Empty --> Ongoing --> PrepareCommit --> CompleteCommit --+
      ^          |                                           |
      |          +------> PrepareAbort  --> CompleteAbort  --+--> Ongoing (the next transaction)
      |                       ^                              |
      +--- InitProducerId ----|------------------------------+
                              +--- an abort without a transaction (transaction version 2)

A transaction is immutable: a step gives another one, which becomes true when its record is in the log. Every step is
taken from the step before it, so no field can be forgotten; the previous producer id is always the one before the step.

An epoch is used by one producer. It grows when another producer takes over the id, when a transaction is aborted in the
producer's absence and, in transaction version 2, with each transaction that ends: what is late is refused by its
epoch. The last epoch of a producer id stays free, so that any producer can still be fenced.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple

from ottla.ledger import Entry
from ottla.transactions.entries import PartitionsSchema, TransactionLogKey, TransactionLogValue

NO_PRODUCER_ID = -1
NO_EPOCH = -1
NO_TIMESTAMP = -1
MAX_EPOCH = 2**15 - 1
LAST_USABLE_EPOCH = MAX_EPOCH - 1
VALUE_VERSION = 1

FIRST_VERSION, EPOCH_BUMP_VERSION = 0, 2
"""Transaction versions of clients: Kafka writes 0 for all that do not get a new epoch with each transaction."""


class TopicPartition(NamedTuple):
    topic: str
    partition: int


class Status(IntEnum):
    """The numbers are those of the records. The last two are never written: they only are where an id goes to."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """As Kafka's tools write it."""
        return _TITLES[self]

    @property
    def is_prepared(self) -> bool:
        return self in (Status.PREPARE_COMMIT, Status.PREPARE_ABORT)

    @property
    def is_complete(self) -> bool:
        return self in (Status.COMPLETE_COMMIT, Status.COMPLETE_ABORT)


_TITLES = {status: status.name.title().replace("_", "") for status in Status}
STATUS_BY_TITLE = {title: status for status, title in _TITLES.items()}


def is_exhausted(epoch: int) -> bool:
    """Whether no producer may use an epoch after this one."""
    return epoch >= LAST_USABLE_EPOCH


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transactional id with its producer and its transaction, if there is one.

    `last_producer_epoch` is the producer's epoch before its present one, by which a request is known that comes again
    because its answer was lost. It is not in the records, so after a load nobody has one.
    """

    transactional_id: str
    producer_id: int
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH
    last_producer_epoch: int = NO_EPOCH
    timeout_ms: int = 0
    status: Status = Status.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = NO_TIMESTAMP
    updated_ms: int = NO_TIMESTAMP
    client_version: int = FIRST_VERSION

    @property
    def bumps_epochs(self) -> bool:
        return self.client_version >= EPOCH_BUMP_VERSION

    @property
    def producer(self) -> tuple[int, int]:
        return self.producer_id, self.producer_epoch

    def has_timed_out(self, now_ms: int) -> bool:
        return self.status is Status.ONGOING and self.started_ms + self.timeout_ms < now_ms

    def has_expired(self, now_ms: int, expiration_ms: int) -> bool:
        may_expire = self.status is Status.EMPTY or self.status.is_complete
        return may_expire and self.updated_ms <= now_ms - expiration_ms

    # Steps

    def initialized(self, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int) -> "Transaction":
        """With another epoch for a producer that begins, or begins again."""
        return self._emptied(self.producer_id, epoch, last_epoch, timeout_ms, now_ms)

    def rotated(self, producer_id: int, last_epoch: int, timeout_ms: int, now_ms: int) -> "Transaction":
        """With another producer id, since the epochs of this one are used up."""
        return self._emptied(producer_id, 0, last_epoch, timeout_ms, now_ms)

    def _emptied(self, producer_id: int, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int) -> "Transaction":
        return replace(
            self,
            producer_id=producer_id,
            previous_producer_id=self.producer_id,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            timeout_ms=timeout_ms,
            status=Status.EMPTY,
            partitions=frozenset(),
            started_ms=NO_TIMESTAMP,
            updated_ms=now_ms,
        )

    def with_partitions(self, added: Iterable[TopicPartition], client_version: int, now_ms: int) -> "Transaction":
        """With more partitions; the first ones begin a transaction."""
        return replace(
            self,
            previous_producer_id=self.producer_id,
            status=Status.ONGOING,
            partitions=self.partitions.union(added),
            started_ms=self.started_ms if self.status is Status.ONGOING else now_ms,
            updated_ms=now_ms,
            client_version=client_version,
        )

    def prepared(self, *, is_commit: bool, client_version: int, next_producer_id: int, now_ms: int) -> "Transaction":
        """Decided: from here on it ends this way, whatever happens. An abort without a transaction begins here too."""
        bumps = client_version >= EPOCH_BUMP_VERSION
        return replace(
            self,
            previous_producer_id=self.producer_id,
            next_producer_id=next_producer_id,
            producer_epoch=min(self.producer_epoch + 1, MAX_EPOCH) if bumps else self.producer_epoch,
            last_producer_epoch=self.producer_epoch if bumps else self.last_producer_epoch,
            status=Status.PREPARE_COMMIT if is_commit else Status.PREPARE_ABORT,
            started_ms=self.started_ms if self.status is Status.ONGOING else now_ms,
            updated_ms=now_ms,
            client_version=client_version,
        )

    def completed(self, now_ms: int) -> "Transaction":
        """Carried out: the producer may go on, with another producer id if its epochs are used up."""
        rotates = self.bumps_epochs and self.next_producer_id != NO_PRODUCER_ID
        return replace(
            self,
            producer_id=self.next_producer_id if rotates else self.producer_id,
            previous_producer_id=self.producer_id,
            next_producer_id=NO_PRODUCER_ID,
            producer_epoch=0 if rotates else self.producer_epoch,
            status=Status.COMPLETE_COMMIT if self.status is Status.PREPARE_COMMIT else Status.COMPLETE_ABORT,
            partitions=frozenset(),
            updated_ms=now_ms,
        )

    # Records

    def entry(self) -> Entry:
        topics: dict[str, list[int]] = {}
        for topic, partition in sorted(self.partitions):
            topics.setdefault(topic, []).append(partition)
        schemas = [PartitionsSchema(topic=topic, partition_ids=indexes) for topic, indexes in topics.items()]
        value = TransactionLogValue(
            producer_id=self.producer_id,
            previous_producer_id=self.previous_producer_id,
            next_producer_id=self.next_producer_id,
            producer_epoch=self.producer_epoch,
            transaction_timeout_ms=self.timeout_ms,
            transaction_status=self.status,
            transaction_partitions=None if self.status is Status.EMPTY else schemas,
            transaction_last_update_timestamp_ms=self.updated_ms,
            transaction_start_timestamp_ms=self.started_ms,
            client_transaction_version=self.client_version,
        )
        return Entry(TransactionLogKey(transactional_id=self.transactional_id), value, VALUE_VERSION)

    @classmethod
    def from_record(cls, transactional_id: str, value: TransactionLogValue, last_epoch: int) -> "Transaction":
        partitions = frozenset(
            TopicPartition(schema.topic, index)
            for schema in value.transaction_partitions or ()
            for index in schema.partition_ids
        )
        return cls(
            transactional_id,
            producer_id=value.producer_id,
            previous_producer_id=value.previous_producer_id,
            next_producer_id=value.next_producer_id,
            producer_epoch=value.producer_epoch,
            last_producer_epoch=last_epoch,
            timeout_ms=value.transaction_timeout_ms,
            status=Status(value.transaction_status),
            partitions=partitions,
            started_ms=value.transaction_start_timestamp_ms,
            updated_ms=value.transaction_last_update_timestamp_ms,
            client_version=value.client_transaction_version,
        )


def tombstone(transactional_id: str) -> Entry:
    return Entry(TransactionLogKey(transactional_id=transactional_id))
