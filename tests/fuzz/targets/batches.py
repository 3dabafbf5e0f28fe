"""Record batches from outside: both twins read the same bytes, and must agree on every word of the outcome.

An input is what a client or a disk may hold: batches, one behind the other. The plain records of an uncompressed batch
are read as well where its CRC is wrong, so that a wrong CRC does not hide the rest.
"""

import contextlib
import random
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import Any

from tests.fuzz.frames import batch_with_changes, with_right_crc
from tests.fuzz.target import Finding, PlainTarget
from tests.property.records.test_compaction_parity import filtered

from ottla.records import (
    Codec,
    Record,
    _native,
    _pure,
    build_batch,
    read_records,
    recompress,
    validate_records,
)
from ottla.records.errors import CorruptRecord

HEADER_BYTES = 61
KEYS_OF_COMPACTION = 40
DECOMPRESSED_LIMIT_BYTES = 64 * 1024
TARGET_MS = 1_700_000_000_000


def _outcome(question: Callable[[], Any]) -> Hashable:
    try:
        return repr(question())
    except CorruptRecord as error:
        return type(error).__name__, error.code, str(error)
    except (ValueError, OverflowError) as error:
        return type(error).__name__


def _same(what: str, question: Callable[[Any], Any]) -> Hashable:
    native, pure = _outcome(lambda: question(_native)), _outcome(lambda: question(_pure))
    if native != pure:
        raise Finding(f"{what}: the twins differ\nnative {native}\npure   {pure}")
    return pure


def _arrow(twin: Any, payload: bytes, fields: dict[str, int]) -> list[object]:
    decoder = twin.ArrowDecoder(0, 2**63 - 1, 1000, True)
    decoder.add(payload, twin.BatchHeader(**fields))
    parts = [part for item in decoder.finish() for part in (item if isinstance(item, tuple) else [item])]
    return [part if isinstance(part, int) or part is None else bytes(part) for part in parts]


def _scan(name: str, data: bytes, ignores_tail: bool, twin: Any) -> object:
    return getattr(twin, name)(data, ignores_tail)


def _read(name: str, payload: bytes, fields: dict[str, int], twin: Any) -> object:
    return getattr(twin, name)(payload, twin.BatchHeader(**fields))


class BatchesTarget(PlainTarget):
    name = "batches"
    longest_bytes = 1024

    def seeds(self) -> list[bytes]:
        dice = random.Random(1)
        batches = [_random_batch(dice) for _ in range(12)]
        return [*batches, batches[0] + batches[1], batches[2][:40]]

    def run(self, data: bytes) -> Iterable[Hashable]:
        for ignores_tail in (False, True):
            for name in ("scan_headers", "inspect_batches"):
                _same(name, partial(_scan, name, data, ignores_tail))
        outcome = _same("read_header", lambda twin: twin.read_header(data))
        if len(data) > HEADER_BYTES and isinstance(outcome, str) and not data[22] & 0x07:
            self._read_records(data)
        _same("compaction", lambda twin: filtered(twin, data, KEYS_OF_COMPACTION, TARGET_MS, []))
        self._open(data)
        return ()

    @staticmethod
    def _open(data: bytes) -> None:
        """What clients and the broker do with whole batches, compressed ones too: it works, or they are corrupt."""
        with contextlib.suppress(CorruptRecord):
            read_records(data, max_decompressed_bytes=DECOMPRESSED_LIMIT_BYTES)
        with contextlib.suppress(CorruptRecord):
            validate_records(data, max_decompressed_bytes=DECOMPRESSED_LIMIT_BYTES)
            for codec in Codec:
                if read_records(recompress(data, codec)) != read_records(data):
                    raise Finding(f"recompressing with {codec.config_name} changed the records")

    @staticmethod
    def _read_records(data: bytes) -> None:
        payload = data[HEADER_BYTES:]
        found = _pure.read_header(data)
        fields = {
            "record_count": found.record_count,
            "base_offset": found.base_offset,
            "base_timestamp": found.base_timestamp,
            "max_timestamp": found.max_timestamp,
            "last_offset_delta": found.last_offset_delta,
            "attributes": found.attributes,
        }
        for name in ("decode_records", "check_records", "latest_timestamp"):
            _same(name, partial(_read, name, payload, fields))
        limits = (True, 0, TARGET_MS, 2)
        _same("find_refused", lambda twin: twin.find_refused(payload, twin.BatchHeader(**fields), *limits))
        _same("first_at_or_after", lambda twin: twin.first_at_or_after(payload, twin.BatchHeader(**fields), TARGET_MS))
        _same("arrow", lambda twin: _arrow(twin, payload, fields))

    def mutate(self, dice: random.Random, data: bytes, other: bytes) -> bytes | None:
        if dice.random() < 0.15 or len(data) <= HEADER_BYTES:
            return _random_batch(dice)
        if dice.random() < 0.2:
            return with_right_crc(data[:HEADER_BYTES] + other[HEADER_BYTES:])
        return batch_with_changes(dice, data)


def _random_batch(dice: random.Random) -> bytes:
    records = [
        Record(
            number,
            TARGET_MS + dice.randint(-5, 5),
            dice.choice((None, b"", b"key")),
            dice.choice((None, b"", b"value")),
            [("name", dice.choice((None, b"", b"x")))] * dice.randint(0, 2),
        )
        for number in range(dice.randint(0, 4))
    ]
    codec = dice.choice((Codec.NONE, Codec.NONE, *Codec))
    return build_batch(records, codec=codec, base_offset=dice.choice((0, 7, 2**63 - 2)))
