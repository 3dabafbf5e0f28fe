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

Checking never changes anything; `update` does, after the append succeeded.
"""

from collections.abc import Iterable
from typing import NamedTuple

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.records import BatchHeader

BATCHES_KEPT = 5
MAX_SEQUENCE = 2**31 - 1
NO_EPOCH = -1
NO_SEQUENCE = -1
NO_OFFSET = -1


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

    __slots__ = ("end_offset", "producers")

    def __init__(self, entries: Iterable[ProducerEntry] = (), end_offset: int = 0) -> None:
        self.producers = {entry.producer_id: entry for entry in entries}
        self.end_offset = end_offset

    def check(self, header: BatchHeader) -> StoredBatch | None:
        """The batch this one repeats, or None when it may be appended; KafkaError when it may not."""
        entry = self.producers.get(header.producer_id)
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

    def end_transaction(self, header: BatchHeader, coordinator_epoch: int) -> None:
        """Note a transaction marker: the producer's transaction is over, its sequences go on."""
        entry = self.producers.get(header.producer_id)
        if entry is None:
            entry = self.producers[header.producer_id] = ProducerEntry(header.producer_id)
        if entry.epoch != header.producer_epoch:
            entry.epoch = header.producer_epoch
            entry.batches.clear()
        entry.coordinator_epoch = coordinator_epoch
        entry.current_txn_first_offset = NO_OFFSET
        entry.last_timestamp = header.max_timestamp

    def remove_expired(self, now_ms: int, expiration_ms: int, producer_ids: Iterable[int] | None = None) -> None:
        """Forget the producers that were silent for `expiration_ms`, except in the middle of a transaction.

        Looks at all of them, or at the ones named.
        """
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
