"""A batch that a broker made itself: a marker that ends a transaction, or records that a coordinator writes in one."""

from typing import NamedTuple

from ottla.records import BatchHeader, EndTransactionMarker, read_control_batch


class OwnBatch(NamedTuple):
    """Goes with the batch to the log. `marker` is None where it has records."""

    marker: EndTransactionMarker | None = None
    transaction_version: int = 0


_RECORDS = OwnBatch()


def own_batch(records: memoryview, header: BatchHeader, transaction_version: int) -> OwnBatch:
    return OwnBatch(read_control_batch(records), transaction_version) if header.is_control else _RECORDS
