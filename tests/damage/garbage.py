"""Batches that are right on the outside only."""

from __future__ import annotations

import struct

from ottla.records import HEADER_BYTES, Codec, Record, build_batch, crc32c

GARBAGE_AT_MS = 1_700_000_000_010


def garbage(codec: Codec, producer_id: int = -1) -> bytes:
    """The header of one record, and a body that no codec and no parser can make sense of."""
    epoch, sequence = (0, 0) if producer_id >= 0 else (-1, -1)
    record = Record(0, GARBAGE_AT_MS, b"key", b"value" * 10, [])
    batch = bytearray(
        build_batch([record], codec=codec, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    )
    batch[HEADER_BYTES:] = b"\xff" * (len(batch) - HEADER_BYTES)
    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
    return bytes(batch)
