"""Record data as producers send it, and as they should not: one name for each kind of batch."""

import struct
from zlib import crc32

from tests.compat.questions.answers import FIRST_CHOSEN_PRODUCER_ID

from ottla.records import Codec, ControlType, EndTransactionMarker, Record, build_batch, build_end_transaction, crc32c

YEAR_2100_MS = 4_102_444_800_000
LONG_AGO_MS = 1_700_000_000_000
YEAR_MS = 365 * 24 * 3600 * 1000
PRODUCER = FIRST_CHOSEN_PRODUCER_ID
NO_TIMESTAMP = -1

_CRC_FROM = 21
_FIELDS = {
    "base_offset": (0, ">q"),
    "length": (8, ">i"),
    "leader_epoch": (12, ">i"),
    "magic": (16, ">b"),
    "crc": (17, ">I"),
    "attributes": (21, ">h"),
    "last_offset_delta": (23, ">i"),
    "base_timestamp": (27, ">q"),
    "max_timestamp": (35, ">q"),
    "producer_id": (43, ">q"),
    "producer_epoch": (51, ">h"),
    "base_sequence": (53, ">i"),
    "record_count": (57, ">i"),
}


def batch(*values: bytes | None, key: bytes | None = b"k", at: int = LONG_AGO_MS, codec: Codec = Codec.NONE) -> bytes:
    """One batch; the time of each record is a second later than that of the one before."""
    records = [Record(number, at + 1000 * number, key, value, []) for number, value in enumerate(values)]
    return build_batch(records, codec=codec)


def numbered(
    sequence: int, *, epoch: int = 0, count: int = 1, producer: int = PRODUCER, transactional: bool = False
) -> bytes:
    """A batch of an idempotent producer."""
    records = [Record(number, LONG_AGO_MS, b"k", b"v", []) for number in range(count)]
    return build_batch(
        records,
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
    )


def patched(data: bytes, *, fix_crc: bool = True, **fields: int) -> bytes:
    """The batch with other values in its header, by default with the CRC that fits them."""
    changed = bytearray(data)
    for name, value in fields.items():
        position, form = _FIELDS[name]
        struct.pack_into(form, changed, position, value)
    if fix_crc and "crc" not in fields:
        struct.pack_into(">I", changed, _FIELDS["crc"][0], crc32c(bytes(changed[_CRC_FROM:])))
    return bytes(changed)


def old_message(magic: int) -> bytes:
    """A message of the formats before batches, with a CRC of the kind they had."""
    time = struct.pack(">q", LONG_AGO_MS) if magic else b""
    body = struct.pack(">bb", magic, 0) + time + struct.pack(">i1si1s", 1, b"k", 1, b"v")
    message = struct.pack(">I", crc32(body)) + body
    return struct.pack(">qi", 0, len(message)) + message


def _with_bad_record() -> bytes:
    good = bytearray(batch(b"value"))
    good[61] = 0x7F
    return patched(bytes(good))


def _header_variants() -> dict[str, bytes]:
    good = batch(b"a", b"b")
    return {
        "base_offset=7": patched(good, base_offset=7),
        "base_offset=-1": patched(good, base_offset=-1),
        "leader_epoch=5": patched(good, leader_epoch=5),
        "leader_epoch=-7": patched(good, leader_epoch=-7),
        "length=0": patched(good, length=0),
        "length=-1": patched(good, length=-1),
        "length=48": patched(good, length=48),
        "length=13": patched(good, length=13),
        "length+1": patched(good, length=len(good) - 11),
        "length-1": patched(good, length=len(good) - 13),
        "length 1 GiB": patched(good, length=2**30),
        "magic=3": patched(good, magic=3),
        "magic=-1": patched(good, magic=-1),
        "magic=127": patched(good, magic=127),
        "crc=0": patched(good, crc=0),
        "attributes unknown codec 5": patched(good, attributes=5),
        "attributes unknown codec 7": patched(good, attributes=7),
        "attributes gzip but plain": patched(good, attributes=1),
        "attributes lz4 but plain": patched(good, attributes=3),
        "attributes unused bits": patched(good, attributes=0x1F80),
        "attributes log append time": patched(good, attributes=8),
        "attributes delete horizon": patched(good, attributes=64),
        "attributes control": patched(good, attributes=0x20),
        "attributes transactional": patched(good, attributes=0x10),
        "attributes transactional control": patched(good, attributes=0x30),
        "last_offset_delta=0": patched(good, last_offset_delta=0),
        "last_offset_delta=5": patched(good, last_offset_delta=5),
        "last_offset_delta=-1": patched(good, last_offset_delta=-1),
        "base_timestamp=-1": patched(good, base_timestamp=-1),
        "base_timestamp=-5": patched(good, base_timestamp=-5),
        "max_timestamp=-1": patched(good, max_timestamp=-1),
        "max_timestamp=0": patched(good, max_timestamp=0),
        "max_timestamp far": patched(good, max_timestamp=2**63 - 1),
        "record_count=0": patched(good, record_count=0),
        "record_count=1": patched(good, record_count=1),
        "record_count=3": patched(good, record_count=3),
        "record_count=-1": patched(good, record_count=-1),
        "record_count max": patched(good, record_count=2**31 - 1),
        "count and delta high": patched(good, record_count=9, last_offset_delta=8),
        "count and delta low": patched(good, record_count=1, last_offset_delta=0),
    }


def _producer_variants() -> dict[str, bytes]:
    good = numbered(0)
    return {
        "first of a producer": good,
        "producer_id alone": patched(good, producer_epoch=-1, base_sequence=-1),
        "producer without epoch": patched(good, producer_epoch=-1),
        "producer without sequence": patched(good, base_sequence=-1),
        "sequence without producer": patched(good, producer_id=-1),
        "epoch without producer": patched(batch(b"a"), producer_epoch=3),
        "producer_id=-2": patched(good, producer_id=-2),
        "producer_epoch=-2": patched(good, producer_epoch=-2),
        "base_sequence=-2": patched(good, base_sequence=-2),
        "producer begins at 5": numbered(5),
        "producer begins in epoch 7": numbered(0, epoch=7),
        "producer begins in epoch 7 at 5": numbered(5, epoch=7),
        "producer at the last sequence": numbered(2**31 - 1, count=3),
        "transactional": numbered(0, transactional=True),
        "end of a transaction": build_end_transaction(
            EndTransactionMarker(ControlType.COMMIT, 0), producer_id=PRODUCER, producer_epoch=0, timestamp=LONG_AGO_MS
        ),
    }


def _body_variants() -> dict[str, bytes]:
    good = batch(b"a", b"b")
    many = batch(*[b"x" * 50] * 40)
    return {
        "one batch": good,
        "one record": batch(b"a"),
        "null key": batch(b"a", key=None),
        "null keys among others": build_batch([Record(0, LONG_AGO_MS, key) for key in (b"a", None, b"b", None)]),
        "times out of limits": build_batch(
            [Record(0, time, b"k") for time in (LONG_AGO_MS, NO_TIMESTAMP, YEAR_2100_MS)]
        ),
        "times and null keys": build_batch([Record(0, YEAR_2100_MS, key) for key in (b"k", None)], codec=Codec.GZIP),
        "null value": batch(None),
        "empty key and value": batch(b"", key=b""),
        "headers": build_batch([Record(0, LONG_AGO_MS, b"k", b"v", [("h", b"1"), ("h", None), ("", b"")])]),
        "no timestamp": batch(b"a", at=NO_TIMESTAMP),
        "timestamp 0": batch(b"a", at=0),
        "timestamp negative": batch(b"a", at=-1000),
        "timestamp of year 2100": batch(b"a", at=YEAR_2100_MS),
        "nothing": b"",
        "one byte": b"\0",
        "12 bytes": good[:12],
        "17 bytes": good[:17],
        "60 bytes": good[:60],
        "header only": good[:61],
        "cut": good[:-1],
        "trailing byte": good + b"\0",
        "trailing piece of a batch": good + good[:40],
        "trailing zeros": good + bytes(30),
        "two batches": good + batch(b"c"),
        "two, the second corrupt": good + patched(good, crc=1),
        "zeros": bytes(80),
        "ones": b"\xff" * 80,
        "message of magic 0": old_message(0),
        "message of magic 1": old_message(1),
        "magic 1 then 2": old_message(1) + good,
        "bad record": _with_bad_record(),
        "1300 bytes": batch(b"x" * 1230),
        "1300 bytes of zeros in lz4": batch(b"\0" * 1230, codec=Codec.LZ4),
        "gzip": batch(b"a", b"b", codec=Codec.GZIP),
        "snappy": batch(b"a", b"b", codec=Codec.SNAPPY),
        "lz4": batch(b"a", b"b", codec=Codec.LZ4),
        "zstd": batch(b"a", b"b", codec=Codec.ZSTD),
        "gzip many": batch(*[b"x" * 50] * 20, codec=Codec.GZIP),
        "gzip cut inside": patched(_shorter(batch(b"a" * 100, codec=Codec.GZIP))),
        "zstd cut inside": patched(_shorter(batch(b"a" * 100, codec=Codec.ZSTD))),
        "many records": many,
    }


def _shorter(data: bytes) -> bytes:
    """A batch whose compressed part ends too soon, with a length that says so."""
    return patched(data[:-5], length=len(data) - 12 - 5)


VARIANTS: dict[str, bytes] = {**_body_variants(), **_header_variants(), **_producer_variants()}
