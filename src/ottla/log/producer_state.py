"""What each idempotent producer sent last, so that a retry is not stored twice and a gap is not stored at all.

    a batch of producer P, epoch E, sequences F..L        what is known of P        answer
    ---------------------------------------------------   -----------------------   ------------------------------
    (E, F, L) is one of its last 5 batches                any                       duplicate: the first offsets
    E below the known epoch                               any                       INVALID_PRODUCER_EPOCH
    E above the known epoch, F is 0                       any                       stored, older batches forgotten
    E above the known epoch, F is not 0                   any                       OUT_OF_ORDER_SEQUENCE_NUMBER
    F follows the last sequence (0 follows 2^31 - 1)      same epoch                stored
    any other F                                           same epoch                OUT_OF_ORDER_SEQUENCE_NUMBER
    any F                                                 nothing                   stored: its past may have expired

The first batch of a transaction needs a verification (`ottla.log.verification`) that is still the latest one of its
producer; without one it is INVALID_TXN_STATE, unless it is a repetition. What brokers write has no sequences:

    a batch or marker of a broker's own                   what is known of P        answer
    ---------------------------------------------------   -----------------------   ------------------------------
    E below the known epoch                               any                       INVALID_PRODUCER_EPOCH
    a marker of version 2 with the known epoch            a transaction is open     INVALID_PRODUCER_EPOCH
    the same, again: it was not known to be written       none is open              stored
    a marker of an older coordinator than the last        any                       TRANSACTION_COORDINATOR_FENCED
    anything else                                         any                       stored

Checking never changes anything; `update` and `end_transaction` do, after the append succeeded.
"""

from collections.abc import Iterable
from typing import NamedTuple

from ottla.log.open_transactions import OpenTransactions
from ottla.log.own_batch import OwnBatch
from ottla.log.transaction_index import AbortedTransaction
from ottla.log.verification import UNVERIFIED, Verification, Verifications
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.records import BatchHeader, ControlType, EndTransactionMarker

BATCHES_KEPT = 5
MAX_SEQUENCE = 2**31 - 1
MAX_EPOCH = 2**15 - 1
NO_EPOCH = -1
NO_SEQUENCE = -1
NO_OFFSET = -1
# From this version of the protocol of transactions on every marker has an epoch of its own (KIP-890).
OWN_MARKER_EPOCHS_SINCE_VERSION = 2

Permit = OwnBatch | Verification


class StoredBatch(NamedTuple):
    """A batch that a producer stored; the offsets answer its repetition."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class ProducerEntry:
    """One producer. `current_txn_first_offset` is -1 outside of a transaction."""

    __slots__ = ("batches", "coordinator_epoch", "current_txn_first_offset", "epoch", "last_timestamp", "producer_id")

    def __init__(
        self,
        producer_id: int,
        epoch: int = NO_EPOCH,
        coordinator_epoch: int = -1,
        last_timestamp: int = -1,
        current_txn_first_offset: int = NO_OFFSET,
        batches: Iterable[StoredBatch] = (),
    ) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        self.current_txn_first_offset = current_txn_first_offset
        self.batches = list(batches)

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def __repr__(self) -> str:
        return f"ProducerEntry({self.producer_id}, epoch={self.epoch}, batches={self.batches})"


class ProducerState:
    """The producers of one log. `end_offset` is the offset up to which the log is reflected here."""

    __slots__ = ("end_offset", "producers", "transactions", "verifications")

    def __init__(self, entries: Iterable[ProducerEntry] = (), end_offset: int = 0) -> None:
        self.producers = {entry.producer_id: entry for entry in entries}
        self.end_offset = end_offset
        self.transactions = OpenTransactions(
            (entry.producer_id, entry.current_txn_first_offset)
            for entry in self.producers.values()
            if entry.current_txn_first_offset != NO_OFFSET
        )
        self.verifications = Verifications()

    def has_open_transaction(self, producer_id: int, epoch: int) -> bool:
        entry = self.producers.get(producer_id)
        return entry is not None and entry.current_txn_first_offset != NO_OFFSET and entry.epoch == epoch

    def check(self, header: BatchHeader, permit: Permit | None = None) -> StoredBatch | None:
        """The batch this one repeats, or None when it may be appended; KafkaError when it may not."""
        entry = self.producers.get(header.producer_id)
        if header.is_transactional:
            if isinstance(permit, OwnBatch):
                self._check_own(header, entry, permit)
                return None
            if not self.has_open_transaction(header.producer_id, header.producer_epoch):
                repeated = self._check_first(header, entry, permit)
                if repeated is not None:
                    return repeated
        if entry is None:
            if header.producer_epoch < NO_EPOCH:
                raise _old_epoch(header, NO_EPOCH)
            return None
        first_sequence = header.base_sequence
        batches = entry.batches
        if header.producer_epoch == entry.epoch:
            last_sequence = batches[-1][1] if batches else NO_SEQUENCE
            if first_sequence == last_sequence + 1 or (first_sequence == 0 and last_sequence == MAX_SEQUENCE):
                self._check_transaction(header, entry)
                return None
            header_last_sequence = header.last_sequence
            for batch in batches:
                if batch[0] == first_sequence and batch[1] == header_last_sequence:
                    return batch
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id}: sequence {last_sequence + 1} expected, {first_sequence} came",
            )
        if header.producer_epoch < entry.epoch:
            raise _old_epoch(header, entry.epoch)
        if first_sequence != 0:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id}: new epoch {header.producer_epoch} must begin at sequence 0, "
                f"{first_sequence} came",
            )
        self._check_transaction(header, entry)
        return None

    def _check_transaction(self, header: BatchHeader, entry: ProducerEntry) -> None:
        if entry.current_txn_first_offset != NO_OFFSET and not header.is_transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {header.producer_id}: a transactional batch expected, its transaction is open since "
                f"offset {entry.current_txn_first_offset}",
            )

    def _check_first(
        self, header: BatchHeader, entry: ProducerEntry | None, verification: Verification | None
    ) -> StoredBatch | None:
        """What a batch that begins a transaction has to have, beside the right sequence."""
        sequence, batches = header.base_sequence, [] if entry is None else entry.batches
        if entry is not None and entry.epoch == header.producer_epoch:
            for batch in batches:
                if batch.first_sequence == sequence and batch.last_sequence == header.last_sequence:
                    return batch
        if verification is UNVERIFIED:
            return None
        if verification is None or self.verifications.get(header.producer_id) is not verification:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE, f"producer {header.producer_id} has no transaction open in this partition"
            )
        if entry is not None and header.producer_epoch < entry.epoch:
            raise _old_epoch(header, entry.epoch)
        expected = 0 if verification.begins_at_zero and not batches else verification.lowest_sequence
        if sequence > expected:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id}: its transaction begins with sequence {expected}, {sequence} came",
            )
        return None

    def _check_own(self, header: BatchHeader, entry: ProducerEntry | None, permit: OwnBatch) -> None:
        known_epoch = NO_EPOCH if entry is None else entry.epoch
        if header.producer_epoch < known_epoch:
            raise _old_epoch(header, known_epoch)
        marker = permit.marker
        if marker is None or entry is None:
            return
        if (
            header.producer_epoch == known_epoch != MAX_EPOCH
            and permit.transaction_version >= OWN_MARKER_EPOCHS_SINCE_VERSION
            and entry.current_txn_first_offset != NO_OFFSET
        ):
            raise _old_epoch(header, known_epoch + 1)
        if marker.coordinator_epoch < entry.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"producer {header.producer_id}: coordinator epoch {entry.coordinator_epoch} or later expected, "
                f"{marker.coordinator_epoch} came",
            )

    def update(self, header: BatchHeader, first_offset: int, last_offset: int) -> None:
        """Note a stored data batch of a producer. Does not judge: the log is right, whoever wrote it."""
        entry = self.producers.get(header.producer_id)
        if entry is None:
            entry = self.producers[header.producer_id] = ProducerEntry(header.producer_id)
        batches = entry.batches
        if entry.epoch != header.producer_epoch:
            entry.epoch = header.producer_epoch
            batches.clear()
        elif len(batches) == BATCHES_KEPT:
            del batches[0]
        entry.last_timestamp = timestamp = header.max_timestamp
        batches.append(StoredBatch(header.base_sequence, header.last_sequence, first_offset, last_offset, timestamp))
        if header.is_transactional and entry.current_txn_first_offset == NO_OFFSET:
            entry.current_txn_first_offset = first_offset
            self.transactions.begin(header.producer_id, first_offset)
            self.verifications.forget(header.producer_id)

    def end_transaction(
        self, header: BatchHeader, marker: EndTransactionMarker, offset: int
    ) -> AbortedTransaction | None:
        """Note a marker: the producer's transaction is over. What the index has to know, if it was aborted."""
        producer_id = header.producer_id
        entry = self.producers.get(producer_id)
        if entry is None:
            entry = self.producers[producer_id] = ProducerEntry(producer_id)
        if entry.epoch != header.producer_epoch:
            entry.epoch = header.producer_epoch
            entry.batches.clear()
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp = header.max_timestamp
        self.verifications.forget(producer_id)
        first_offset, entry.current_txn_first_offset = entry.current_txn_first_offset, NO_OFFSET
        if first_offset == NO_OFFSET:
            return None
        last_stable_offset = self.transactions.end(producer_id, offset)
        if marker.control_type is not ControlType.ABORT:
            return None
        self.transactions.has_aborted = True
        return AbortedTransaction(producer_id, first_offset, offset, last_stable_offset)

    def remove_expired(self, now_ms: int, expiration_ms: int, producer_ids: Iterable[int] | None = None) -> None:
        """Forget the producers that were silent for `expiration_ms`, except in the middle of a transaction.

        Looks at all of them, or at the ones named.
        """
        self.verifications.remove_expired(now_ms - expiration_ms)
        for producer_id in list(self.producers) if producer_ids is None else producer_ids:
            entry = self.producers.get(producer_id)
            if (
                entry is not None
                and entry.current_txn_first_offset == NO_OFFSET
                and now_ms - entry.last_timestamp >= expiration_ms
            ):
                del self.producers[producer_id]


def _old_epoch(header: BatchHeader, epoch: int) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"producer {header.producer_id}: epoch {epoch} expected, {header.producer_epoch} came",
    )
