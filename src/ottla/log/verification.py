"""Verifying that the coordinator of a transaction knows of a partition, before its first batch is appended (KIP-890).

Without it a batch that comes late, after its transaction has ended, would open one that nobody ends. A producer has one
verification a partition; it is gone when a batch or a marker of that producer was appended. So an answer of the
coordinator that comes after a marker belongs to a verification that is no longer the producer's, and lets nothing in.
"""

from ottla.runtime.promise import Promise

# Of one log. A producer whose verification was dropped is verified anew.
MOST_KEPT = 10_000


class Verification:
    """`lowest_sequence` is where the producer's transaction begins, as far as its batches were seen.

    `begins_at_zero` where the producer has a new epoch for each transaction, and so begins to count in each.
    `answer` is what the coordinator was asked last, while it has not answered.
    """

    __slots__ = ("answer", "begins_at_zero", "epoch", "lowest_sequence", "started_ms")

    def __init__(self, sequence: int, epoch: int, *, begins_at_zero: bool, started_ms: int = 0) -> None:
        self.lowest_sequence = sequence
        self.epoch = epoch
        self.begins_at_zero = begins_at_zero
        self.started_ms = started_ms
        self.answer: Promise[None] | None = None

    def see(self, sequence: int, epoch: int) -> None:
        """Another batch of the producer came before its transaction is open."""
        if epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence
            # It was about a producer that is fenced by now.
            self.answer = None
        elif epoch == self.epoch and sequence < self.lowest_sequence:
            self.lowest_sequence = sequence


# Lets a transaction begin without a verification, where the broker is told not to ask for one.
UNVERIFIED = Verification(0, 0, begins_at_zero=False)


class Verifications:
    """Those of one log, by producer."""

    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        self._by_producer: dict[int, Verification] = {}

    def __len__(self) -> int:
        return len(self._by_producer)

    def get(self, producer_id: int) -> Verification | None:
        return self._by_producer.get(producer_id)

    def begin(self, producer_id: int, sequence: int, epoch: int, *, begins_at_zero: bool, now_ms: int) -> Verification:
        """The producer's verification, a new one unless it has one."""
        known = self._by_producer.get(producer_id)
        if known is not None:
            known.see(sequence, epoch)
            return known
        if len(self._by_producer) >= MOST_KEPT:
            del self._by_producer[next(iter(self._by_producer))]
        verification = Verification(sequence, epoch, begins_at_zero=begins_at_zero, started_ms=now_ms)
        self._by_producer[producer_id] = verification
        return verification

    def forget(self, producer_id: int) -> None:
        self._by_producer.pop(producer_id, None)

    def remove_expired(self, before_ms: int) -> None:
        """Forget those that began at or before a time: the oldest come first."""
        while self._by_producer:
            producer_id, oldest = next(iter(self._by_producer.items()))
            if oldest.started_ms > before_ms:
                return
            del self._by_producer[producer_id]
