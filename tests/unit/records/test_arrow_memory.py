"""Memory of tables that nobody has any more is used for others, and that of the others is not."""

from __future__ import annotations

import gc
import hashlib
import random
from pathlib import Path
from typing import Any

import pytest

from ottla.records import (
    HEADER_BYTES,
    Codec,
    CorruptRecord,
    Record,
    arrow,
    build_batch,
    frame_batch,
    frame_passing_batch,
    to_arrow,
)

ROWS = 2_000


def batch(seed: int, rows: int = ROWS, codec: Codec = Codec.NONE) -> bytes:
    dice = random.Random(seed)
    return build_batch(
        [
            Record(
                timestamp=dice.randrange(1 << 40),
                key=None if dice.random() < 0.3 else dice.randbytes(dice.randrange(40)),
                value=None if dice.random() < 0.1 else dice.randbytes(dice.randrange(400)),
                headers=(("name", b"value"),) if dice.random() < 0.01 else (),
            )
            for _ in range(rows)
        ],
        codec=codec,
    )


def digest(table: Any) -> str:
    return hashlib.sha256(repr(table.to_pylist()).encode()).hexdigest()


@pytest.mark.parametrize("codec", list(Codec))
def test_tables_that_are_kept_do_not_change(codec: Codec) -> None:
    """Whole ones, slices and single columns, while tables of about the same size come and go."""
    wanted = {seed: digest(to_arrow(batch(seed))) for seed in range(4)}
    kept: list[tuple[int, Any]] = []
    for turn in range(20):
        seed = turn % 4
        table = to_arrow([batch(seed, codec=codec)])
        assert digest(table) == wanted[seed]
        if turn % 3 == 0:
            kept.append((seed, table))
    values = [(seed, table.column("value").slice(ROWS // 2)) for seed, table in kept]
    del kept[::2]
    for seed in range(4):
        assert digest(to_arrow([batch(seed, codec=codec)])) == wanted[seed]
    for seed, table in kept:
        assert digest(table) == wanted[seed]
    for seed, column in values:
        assert column.to_pylist() == to_arrow(batch(seed)).column("value").slice(ROWS // 2).to_pylist()


@pytest.mark.parametrize("value", [7, "t", "orders", "é" * 120])
@pytest.mark.parametrize("rows", [0, 1, 5, 100_000, 300_000, 2_000_000])
def test_columns_of_one_value_are_shared_up_to_a_size(value: int | str, rows: int) -> None:
    """Whoever pickles a table, or keeps it, has at most twice the column, and what is kept for others is bounded."""
    column = arrow._repeated(value, rows)
    assert len(column) == rows
    assert not rows or {column[0].as_py(), column[rows // 2].as_py(), column[rows - 1].as_py()} == {value}
    size_bytes = sum(buffer.size for buffer in column.buffers() if buffer is not None)
    assert size_bytes <= max(2 * column.nbytes + 8, 8)
    is_shared = any(mine is not None and mine.address == other.address for mine, other in _pairs(value, rows))
    assert not is_shared or size_bytes <= arrow._MOST_SHARED_BYTES + 4


def _pairs(value: int | str, rows: int) -> list[tuple[Any, Any]]:
    return list(zip(arrow._repeated(value, rows).buffers(), arrow._repeated(value, rows).buffers(), strict=True))


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no other system tells this in a file")
def test_what_is_kept_for_others_is_bounded() -> None:
    """Tables of very different sizes, all of them gone: what stays is far less than they had."""
    stored = [batch(0, ROWS * factor) for factor in (1, 2, 4, 8, 16, 32)]
    to_arrow(stored)
    gc.collect()
    before = resident_bytes()
    tables = [to_arrow(stored[: 1 + number % len(stored)]) for number in range(48)]
    assert resident_bytes() - before > 200 << 20
    del tables
    gc.collect()
    assert resident_bytes() - before < 64 << 20


def test_one_record_may_have_all_the_bytes_of_many_that_were_promised() -> None:
    """Room is made before the records are looked at, and a header may say anything."""
    whole = build_batch([Record(value=bytes(1_000_000)), Record(value=b"x")])
    payload = whole[HEADER_BYTES:]
    fields = (0, -1, 0, 1, 0, 0, -1, -1, -1, len(payload) // 7)
    for lie in (frame_batch(payload, *fields), frame_batch(payload[:-20], *fields)):
        with pytest.raises(CorruptRecord):
            to_arrow(lie)
    assert to_arrow(whole).num_rows == 2


@pytest.mark.parametrize("size", [0, 1_000, 131_071, 131_072, 500_000])
def test_batches_that_pass_through_are_like_others(size: int) -> None:
    """Also while others of the same size are on their way."""
    fields = (0, -1, 0, 6, 1_000, 2_000, 77, 3, 11, 7)
    payloads = [random.Random(seed).randbytes(size) for seed in range(6)]
    passing = []
    for payload in payloads:
        passing.append(frame_passing_batch(payload, *fields))
        frame_passing_batch(payload[::-1], *fields)
    assert [bytes(batch) for batch in passing] == [frame_batch(payload, *fields) for payload in payloads]
