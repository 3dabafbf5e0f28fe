"""What a compaction knows of transactions, while it goes over a log once from its beginning.

A marker is needed as long as a batch of its transaction is in the log; so is what the index says of an aborted one.
Batches of aborted transactions go in the first compaction that meets them, and their marker may go in one after that,
which meets none. A producer has one transaction after another: its offsets tell which one a batch belongs to.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from operator import attrgetter

from ottla.log.transaction_index import AbortedTransaction
from ottla.records import BatchHeader, ControlType, read_end_transaction, read_records
from ottla.records.types import Buffer

_FIRST_OFFSET = attrgetter("first_offset")


class CleanedTransactions:
    """`last_epochs` are those of producers of which nothing but a marker is known."""

    def __init__(
        self,
        aborted: Iterable[AbortedTransaction] = (),
        last_epochs: Mapping[int, int] | None = None,
        now_ms: int = 0,
        horizon_ms: int = 0,
    ) -> None:
        self.now_ms = now_ms
        self.horizon_ms = horizon_ms
        self._last_epochs = dict(last_epochs or {})
        self._aborted: dict[int, list[AbortedTransaction]] = {}
        for each in aborted:
            self._aborted.setdefault(each.producer_id, []).append(each)
        # Producers with a batch since their last marker, and the aborted transactions that still had one.
        self._has_batch: set[int] = set()
        self._retained: list[AbortedTransaction] = []

    def _transaction_of(self, header: BatchHeader) -> AbortedTransaction | None:
        known = self._aborted.get(header.producer_id)
        if known is None:
            return None
        number = bisect_right(known, header.base_offset, key=_FIRST_OFFSET) - 1
        return known[number] if number >= 0 and header.base_offset <= known[number].last_offset else None

    def is_aborted(self, header: BatchHeader) -> bool:
        return self._transaction_of(header) is not None

    def see_batch(self, header: BatchHeader) -> bool:
        self._has_batch.add(header.producer_id)
        return self.is_aborted(header)

    def see_marker(self, header: BatchHeader, batch: Buffer) -> bool:
        for record in read_records(batch):
            had_batch = header.producer_id in self._has_batch
            self._has_batch.discard(header.producer_id)
            if not had_batch:
                return True
            aborted = self._transaction_of(header)
            if aborted is not None and read_end_transaction(record).control_type is ControlType.ABORT:
                self._retained.append(aborted)
            return False
        return True

    def keeps_epoch(self, header: BatchHeader) -> bool:
        return self._last_epochs.get(header.producer_id) == header.producer_epoch

    def take_retained(self) -> list[AbortedTransaction]:
        """The aborted transactions whose markers stay where they are, since this was asked last."""
        retained, self._retained = self._retained, []
        return retained
