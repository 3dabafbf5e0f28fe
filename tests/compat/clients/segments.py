"""The batch headers of a partition, read from its files on disk.

    offset  0  base offset          int64      23  last offset delta   int32
            8  length of the rest   int32      27  base timestamp      int64
           12  leader epoch         int32      35  max timestamp       int64
           16  magic                int8       43  producer id         int64
           17  CRC-32C from 21 on   uint32     51  producer epoch      int16
           21  attributes           int16      53  base sequence       int32
                                               57  record count        int32

Written for the tests alone, independent of the code under test. It proves what was stored, whichever broker stored it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from crc32c import crc32c
from tests.compat.clients.model import CODECS, Codec

_HEADER = struct.Struct(">qiibIhiqqqhii")
_LENGTH_POSITION = 8
_LENGTH_PREFIX_BYTES = 12
_CRC_START = 21


@dataclass(frozen=True)
class Batch:
    base_offset: int
    last_offset_delta: int
    codec: Codec
    producer_id: int
    base_sequence: int
    record_count: int
    crc_matches: bool


def read_batches(partition_directory: Path) -> list[Batch]:
    """Every whole batch of the partition, in order of segments and positions."""
    batches: list[Batch] = []
    for segment in sorted(partition_directory.glob("*.log")):
        content = segment.read_bytes()
        position = 0
        while position + _HEADER.size <= len(content):
            length: int = struct.unpack_from(">i", content, position + _LENGTH_POSITION)[0]
            end = position + _LENGTH_PREFIX_BYTES + length
            if length <= 0 or end > len(content):
                break
            batches.append(_batch(content[position:end]))
            position = end
    return batches


def _batch(content: bytes) -> Batch:
    (base_offset, _, _, magic, crc, attributes, last_delta, _, _, producer_id, _, base_sequence, count) = (
        _HEADER.unpack_from(content)
    )
    if magic != 2:
        raise ValueError(f"expected magic 2, the batch at offset {base_offset} has {magic}")
    return Batch(
        base_offset=base_offset,
        last_offset_delta=last_delta,
        codec=CODECS[attributes & 0b111],
        producer_id=producer_id,
        base_sequence=base_sequence,
        record_count=count,
        crc_matches=crc32c(content[_CRC_START:]) == crc,
    )
