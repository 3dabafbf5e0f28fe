"""A batch that is too large for its topic, in smaller ones."""

from ottla.client.producer.batches import HEADER_BYTES, Batch
from ottla.records import Codec, Record, read_records

# Lengths and deltas of one record, at most.
_NUMBERS_BYTES = 32


def split(batch: Batch, codec: Codec, limit_bytes: int) -> tuple[list[Batch], list[tuple[Batch, int] | None]]:
    """The parts, and for every record the part that it is in and its index there.

    No part is larger than half of the batch or than `limit_bytes`, whichever is less, unless it has one record only;
    so splitting again and again comes to an end.
    """
    records = read_records(batch.framed(codec, False), check_crc=False)
    half = sum(map(_size_of, records)) // 2
    limit_bytes = min(max(limit_bytes - HEADER_BYTES, 1), half)
    parts: list[Batch] = []
    places: list[tuple[Batch, int] | None] = []
    room = 0
    for record in records:
        need = _size_of(record)
        if not parts or need > room:
            part = Batch(batch.owner, batch.queue, batch.created_at)
            part.attempts = batch.attempts
            part.serial = batch.serial
            part.may_be_written = batch.may_be_written
            parts.append(part)
            room = limit_bytes
        room -= need
        places.append((parts[-1], parts[-1].append(record.timestamp, record.key, record.value, record.headers)))
    return parts, places


def _size_of(record: Record) -> int:
    headers = sum(len(name) * 4 + len(value or b"") + _NUMBERS_BYTES for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers + _NUMBERS_BYTES
