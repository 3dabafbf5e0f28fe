"""Idempotence: the producer's id and epoch, and the sequence numbers of every partition (KIP-98, KIP-360).

What must stay true:
- A batch keeps its sequence over all retries, so that the broker can tell a duplicate.
- Batches of a partition that are sent again go in the order of their sequences, and none with a later one before.
- A sequence number under one id and epoch never stands for two different batches. Where a batch may or may not have
  been written and is given up, or one was refused while later ones are in flight, the epoch rises and what is left of
  the partition begins again at 0.
- Until a broker has acknowledged a batch of the producer in a partition, no other one follows: a broker that knows
  nothing of a producer takes any sequence for its first, and so could not tell that the one before it is missing.
"""

from typing import TYPE_CHECKING, NamedTuple

from ottla.client.producer.batches import Batch, next_sequence
from ottla.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.client.producer.partitions import PartitionQueue

# So many of a producer's last batches a broker knows again.
REMEMBERED_BATCHES = 5

_LARGEST_EPOCH = 2**15 - 1
_NEVER = -1


class ProducerIdentity(NamedTuple):
    producer_id: int = -1
    epoch: int = -1

    @property
    def is_valid(self) -> bool:
        return self.producer_id >= 0


NOBODY = ProducerIdentity()


class PartitionSequences:
    """The numbers of one partition. `in_flight` has the batches with a sequence that are not done, in its order."""

    __slots__ = (
        "identity",
        "in_flight",
        "known_id",
        "last_acked_offset",
        "last_acked_sequence",
        "next_sequence",
        "unresolved_end",
    )

    def __init__(self) -> None:
        self.identity = NOBODY
        # The producer's id of which the partition has a batch for sure.
        self.known_id = NOBODY.producer_id
        self.next_sequence = 0
        self.last_acked_sequence = _NEVER
        self.last_acked_offset = _NEVER
        self.in_flight: list[Batch] = []
        # Where the sequences of a batch end that was given up without knowing whether it was written.
        self.unresolved_end: int | None = None

    def is_next(self, sequence: int) -> bool:
        return sequence == next_sequence(self.last_acked_sequence, 1)

    def forget_broker(self) -> None:
        """The partition is another one, of a topic that was created again: nobody there knows the producer."""
        self.known_id = NOBODY.producer_id

    def begin_again(self, identity: ProducerIdentity) -> None:
        """Number what is in flight from 0 on, under a new identity."""
        self.identity = identity
        sequence = 0
        for batch in self.in_flight:
            batch.producer_id, batch.producer_epoch = identity
            batch.sequence = sequence
            batch.is_reopened = True
            sequence = next_sequence(sequence, batch.count)
        self.next_sequence = sequence
        self.last_acked_sequence = _NEVER
        self.unresolved_end = None

    def close_gap(self, failed: Batch) -> None:
        """A batch was refused for good: those after it move down into its sequences."""
        if failed.sequence < 0 or (failed.producer_id, failed.producer_epoch) != self.identity:
            return
        self.next_sequence = next_sequence(self.next_sequence, -failed.count)
        for batch in self.in_flight:
            if (batch.sequence - failed.sequence) % 2**31 < 2**30 and batch is not failed:
                batch.sequence = next_sequence(batch.sequence, -failed.count)
                batch.is_reopened = True


class Sequences:
    """The identity of an idempotent producer, and its sequences. A transactional one gets its epochs from brokers."""

    def __init__(self, is_transactional: bool = False) -> None:
        self.identity = NOBODY
        self.is_transactional = is_transactional
        # Partitions with a sequence that will never be written; what comes before it is sent under the old epoch.
        self._gaps: dict[PartitionQueue, int] = {}
        self._unresolved: dict[PartitionQueue, None] = {}

    @property
    def is_settled(self) -> bool:
        """Whether a turn has nothing to see to here."""
        return not (self._gaps or self._unresolved)

    # What may be sent.

    def may_take(self, queue: "PartitionQueue", first: Batch) -> bool:
        """Whether the first batch of a queue may be sent now."""
        state = queue.sequences
        if not self.identity.is_valid:
            return False
        gap = self._gaps.get(queue)
        if gap is not None and (first.sequence < 0 or not _is_before(first.sequence, gap)):
            return False
        if first.sequence < 0:
            if state.unresolved_end is not None:
                return False
            is_known = state.identity == self.identity and state.known_id == self.identity.producer_id
            return len(state.in_flight) < (REMEMBERED_BATCHES if is_known else 1)
        # One that is sent again waits until everything before it is done.
        return not state.in_flight or state.in_flight[0] is first

    def number(self, queue: "PartitionQueue", batch: Batch) -> None:
        """Give a batch its sequence, if it has none."""
        if batch.sequence >= 0:
            return
        state = queue.sequences
        if state.identity != self.identity:
            assert not state.in_flight
            state.begin_again(self.identity)
        batch.producer_id, batch.producer_epoch = self.identity
        batch.sequence = state.next_sequence
        state.next_sequence = batch.end_sequence
        state.in_flight.append(batch)

    # What came of it.

    def written(self, batch: Batch, base_offset: int) -> None:
        state = batch.queue.sequences
        state.known_id = batch.producer_id
        if (batch.producer_id, batch.producer_epoch) == state.identity:
            last = next_sequence(batch.sequence, batch.count - 1)
            if (last - state.last_acked_sequence) % 2**31 < 2**30 or state.last_acked_sequence == _NEVER:
                state.last_acked_sequence = last
            if base_offset >= 0:
                state.last_acked_offset = max(state.last_acked_offset, base_offset + batch.count - 1)
        self._forget(batch)

    def may_retry(self, batch: Batch, code: ErrorCode, log_start_offset: int) -> bool:
        """Whether an error calls for the same batch again; asks for a new epoch where that is the way on."""
        queue = batch.queue
        state = queue.sequences
        if code is ErrorCode.UNKNOWN_PRODUCER_ID:
            if log_start_offset == -1 or batch.is_reopened:
                return True
            if self.is_transactional:
                if state.last_acked_offset < log_start_offset:
                    state.begin_again(self.identity)
                    return True
                return False
            self._mark_gap(queue, batch.sequence)
            return True
        if code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            if state.unresolved_end is None and (batch.is_reopened or not state.is_next(batch.sequence)):
                return True
            if self.is_transactional:
                return False
            if state.unresolved_end is None or state.unresolved_end == batch.sequence:
                self._mark_gap(queue, batch.sequence)
            return True
        return code.retriable

    def failed(self, batch: Batch, *, is_surely_absent: bool, code: ErrorCode | None) -> None:
        """A batch is given up. Those after it must not be refused for the gap that it leaves."""
        had_sequence = batch.sequence >= 0
        queue = batch.queue
        self._forget(batch)
        if not had_sequence:
            return
        if self.is_transactional:
            if code is ErrorCode.UNKNOWN_PRODUCER_ID:
                queue.sequences.begin_again(self.identity)
            elif is_surely_absent and code is not ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                queue.sequences.close_gap(batch)
        elif is_surely_absent:
            self._mark_gap(queue, batch.sequence)

    def gave_up(self, batch: Batch) -> None:
        """A batch that was sent timed out: it may be in the log. Nothing new follows it until that is known."""
        if batch.sequence < 0:
            return
        state = batch.queue.sequences
        end = batch.end_sequence
        if state.unresolved_end is None or (end - state.unresolved_end) % 2**31 < 2**30:
            state.unresolved_end = end
        self._unresolved[batch.queue] = None

    def replace(self, batch: Batch, parts: list[Batch]) -> None:
        """A batch was split: its parts share its sequences."""
        if batch.sequence < 0:
            return
        in_flight = batch.queue.sequences.in_flight
        sequence = batch.sequence
        for part in parts:
            part.producer_id, part.producer_epoch = batch.producer_id, batch.producer_epoch
            part.sequence = sequence
            part.is_reopened = batch.is_reopened
            sequence = next_sequence(sequence, part.count)
        if batch in in_flight:
            at = in_flight.index(batch)
            in_flight[at : at + 1] = parts

    def _forget(self, batch: Batch) -> None:
        in_flight = batch.queue.sequences.in_flight
        if batch in in_flight:
            in_flight.remove(batch)

    # Epochs.

    def _mark_gap(self, queue: "PartitionQueue", sequence: int) -> None:
        known = self._gaps.get(queue)
        if known is None or _is_before(sequence, known):
            self._gaps[queue] = sequence

    def resolve(self) -> None:
        """Look at partitions with a batch that was given up, once nothing of them is in flight.

        Those of a transaction stay as they are: it has to be aborted, and what comes after it has a new epoch.
        """
        if self.is_transactional:
            return
        for queue in list(self._unresolved):
            state = queue.sequences
            if state.unresolved_end is not None and state.in_flight:
                continue
            del self._unresolved[queue]
            if state.unresolved_end is None:
                continue
            state.unresolved_end = None
            if not state.is_next(state.next_sequence):
                self._mark_gap(queue, state.next_sequence)

    def bump_if_wanted(self) -> None:
        """Raise the epoch of an idempotent producer by itself; without one more, a new id has to be asked for.

        Only for partitions of which nothing is under way and nothing is left that comes before the gap: what is
        numbered anew must not be in the log already.
        """
        if not self._gaps or self.is_transactional or not self.identity.is_valid:
            return
        ready = [queue for queue, gap in self._gaps.items() if _is_settled(queue.sequences, gap)]
        if not ready:
            return
        if any(queue.sequences.identity == self.identity for queue in ready):
            if self.identity.epoch >= _LARGEST_EPOCH:
                self.identity = NOBODY
                return
            self.identity = ProducerIdentity(self.identity.producer_id, self.identity.epoch + 1)
        for queue in ready:
            self._begin_again(queue)

    def begin(self, identity: ProducerIdentity) -> None:
        """A broker gave the producer an id and an epoch."""
        self.identity = identity
        if self.is_transactional:
            # What was given up was of a transaction that has ended, and its sequences were of another epoch.
            for queue in self._unresolved:
                queue.sequences.unresolved_end = None
            self._unresolved.clear()
        for queue in [queue for queue, gap in self._gaps.items() if _is_settled(queue.sequences, gap)]:
            self._begin_again(queue)

    def _begin_again(self, queue: "PartitionQueue") -> None:
        del self._gaps[queue]
        self._unresolved.pop(queue, None)
        queue.sequences.begin_again(self.identity)


def _is_before(sequence: int, other: int) -> bool:
    return sequence != other and (other - sequence) % 2**31 < 2**30


def _is_settled(state: PartitionSequences, gap: int) -> bool:
    return not any(batch.is_in_flight or _is_before(batch.sequence, gap) for batch in state.in_flight)
