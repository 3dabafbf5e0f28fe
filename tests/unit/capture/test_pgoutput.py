"""pgoutput's messages as changes, byte by byte; what a running server sends is tested in tests/capture."""

from __future__ import annotations

import struct

import pytest

from ottla.capture.changes import CaptureError, Change, Operation, Settled
from ottla.capture.pgoutput import Decoder, json_value

POSTGRES_EPOCH_MS = 946_684_800_000
INT8, TEXT, BOOL, FLOAT8, NUMERIC = 20, 25, 16, 701, 1700


def _relation(identity: bytes = b"f") -> bytes:
    columns = b"".join(
        b"\x00" + name + b"\x00" + struct.pack(">Ii", oid, -1) for name, oid in ((b"id", INT8), (b"note", TEXT))
    )
    return b"R" + struct.pack(">I", 7) + b"public\x00notes\x00" + identity + struct.pack(">H", 2) + columns


def _row(*values: bytes | None) -> bytes:
    """None is a null; b"u" alone stands for a large value that is as it was."""
    parts = [
        b"n" if value is None else b"u" if value == b"u" else b"t" + struct.pack(">I", len(value)) + value
        for value in values
    ]
    return struct.pack(">H", len(values)) + b"".join(parts)


def _decoded(*messages: bytes, identity: bytes = b"f", table: str = "notes") -> list[Change | Settled]:
    decoder = Decoder({("public", table): table})
    begin = b"B" + struct.pack(">QqI", 0x1_0000_0010, 5_000_000, 99)
    commit = b"C" + struct.pack(">BQQq", 0, 0x1_0000_0010, 0x1_0000_0040, 5_000_000)
    return [item for message in (begin, _relation(identity), *messages, commit) for item in decoder.decode(message)]


def test_a_transaction_has_its_commit_s_position_and_time() -> None:
    insert = b"I" + struct.pack(">I", 7) + b"N" + _row(b"1", "é".encode())
    change, end = _decoded(insert)
    assert change == Change(
        "notes", Operation.INSERT, None, {"id": 1, "note": "é"}, 0x1_0000_0010, POSTGRES_EPOCH_MS + 5_000
    )
    assert end == Settled(0x1_0000_0040)


def test_a_large_value_that_was_not_changed_is_taken_from_the_row_before() -> None:
    update = b"U" + struct.pack(">I", 7) + b"O" + _row(b"1", b"large") + b"N" + _row(b"2", b"u")
    change, _ = _decoded(update)
    assert isinstance(change, Change)
    assert (change.before, change.after) == ({"id": 1, "note": "large"}, {"id": 2, "note": "large"})


def test_a_delete_has_the_row_before() -> None:
    change, _ = _decoded(b"D" + struct.pack(">I", 7) + b"O" + _row(b"1", None))
    assert isinstance(change, Change)
    assert (change.before, change.after) == ({"id": 1, "note": None}, None)


def test_rows_without_what_was_before_are_refused() -> None:
    with pytest.raises(CaptureError, match="ALTER TABLE notes REPLICA IDENTITY FULL"):
        _decoded(b"D" + struct.pack(">I", 7) + b"K" + _row(b"1", None), identity=b"d")


def test_rows_of_a_table_that_was_not_asked_for_are_refused() -> None:
    with pytest.raises(CaptureError, match=r"rows of public.notes, which was not asked for"):
        _decoded(b"I" + struct.pack(">I", 7) + b"N" + _row(b"1", None), table="others")


def test_an_update_of_a_partition_that_does_not_tell_its_rows_before_is_refused() -> None:
    """Its table does, so the message has no row before, and says nothing of it."""
    with pytest.raises(CaptureError, match="and the same for its partitions"):
        _decoded(b"U" + struct.pack(">I", 7) + b"N" + _row(b"1", None))


@pytest.mark.parametrize(
    ("oid", "text", "value"),
    [
        (INT8, "-9223372036854775808", -(2**63)),
        (BOOL, "t", True),
        (BOOL, "f", False),
        (FLOAT8, "0.1", 0.1),
        (FLOAT8, "NaN", "NaN"),
        (NUMERIC, "12345678901234567890.10", "12345678901234567890.10"),
        (TEXT, "7", "7"),
    ],
)
def test_values_are_what_json_can_hold_exactly(oid: int, text: str, value: object) -> None:
    assert json_value(oid, text) == value
