"""The batches that are sent: version 2, no compression, no producer id, records of 100 bytes."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.records import Record, build_batch

RECORD_BYTES = 100
_LEAST_OVERHEAD_BYTES, _MOST_OVERHEAD_BYTES = 7, 12
_TIMESTAMP_MS = 1_750_000_000_000


@dataclass(frozen=True, slots=True)
class Batch:
    data: bytes
    record_count: int


def one_record() -> Batch:
    """What a producer sends that does not wait: one record a batch."""
    return _build([RECORD_BYTES])


def filled(size_bytes: int) -> Batch:
    """As many records as make exactly `size_bytes`; the last one takes up the slack.

    The exact size matters to fetches: where the size of a request is a multiple of it, both brokers answer with whole
    batches and the same number of bytes, although Kafka may cut the last batch and Ottla may not.
    """
    count = size_bytes // (RECORD_BYTES + _LEAST_OVERHEAD_BYTES)
    batch = _build([RECORD_BYTES] * count)
    while len(batch.data) > size_bytes:
        count -= -(-(len(batch.data) - size_bytes) // (RECORD_BYTES + _MOST_OVERHEAD_BYTES))
        batch = _build([RECORD_BYTES] * count)
    batch = _build([RECORD_BYTES] * (count - 1) + [RECORD_BYTES + size_bytes - len(batch.data)])
    if len(batch.data) != size_bytes:
        raise ValueError(f"expected a batch of {size_bytes} bytes, {count} records make {len(batch.data)}")
    return batch


def _build(value_sizes: list[int]) -> Batch:
    pattern = bytes(range(256)) * (max(value_sizes) // 256 + 1)
    records = [
        Record(offset=index, timestamp=_TIMESTAMP_MS, key=None, value=pattern[:size], headers=[])
        for index, size in enumerate(value_sizes)
    ]
    return Batch(build_batch(records), len(records))
