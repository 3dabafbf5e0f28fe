"""Many partitions: what is sent, what has to come back, and goals that are not ratios."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from bench.batches import filled
from bench.jobs.drain import _walk
from bench.jobs.keyed import make
from bench.jobs.produce import Lane, _chunked, targets_of
from bench.results import Outcome
from bench.rows import Row, rows
from bench.sections.compaction import cleaned_up_to
from bench.settings import KIB, MIB, full
from bench.wire import RefusedError

from ottla.records import assign_offset, check_crc, read_records, scan_headers


@pytest.mark.parametrize(("targets", "size"), [(1, 25), (25, 25), (10, 4), (2500, 25), (333, 25)])
def test_every_partition_gets_its_turn(targets: int, size: int) -> None:
    places = [("topic", number) for number in range(targets)]
    chunks = _chunked(places, size)
    assert {len(chunk) for chunk in chunks} == {size}
    turns = Counter(place for chunk in chunks for place in chunk)
    assert set(turns) == set(places)
    assert max(turns.values()) - min(turns.values()) <= 1


def test_acknowledged_batches_are_counted_for_each_partition() -> None:
    lane = object.__new__(Lane)
    lane._places = [[("topic", 0), ("topic", 1)], [("topic", 2), ("topic", 0)]]
    lane._primed = ("topic", 0)
    lane.answered_chunks = 3
    assert lane.batches() == {("topic", 0): 1 + 3, ("topic", 1): 2, ("topic", 2): 1}


def test_targets_are_the_partitions_of_all_topics() -> None:
    assert targets_of({"topics": {"a": 2, "b": 1}}) == [("a", 0), ("a", 1), ("b", 0)]
    assert targets_of({"topic": "a", "connections": 2}) == [("a", 0), ("a", 1)]


def test_fetched_batches_must_follow_one_another() -> None:
    batch = filled(16 * KIB)
    second = bytearray(batch.data)
    assign_offset(second, 0, batch.record_count, 0)
    records = memoryview(batch.data + second + second[:100])
    assert _walk(records, 0) == (2 * batch.record_count, 2 * len(batch.data))
    with pytest.raises(RefusedError, match="expected a batch at offset 5"):
        _walk(records, 5)


def test_keyed_records_are_the_same_every_time(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    assert make(one, MIB, 100) == make(two, MIB, 100)
    content = one.read_bytes()
    assert content == two.read_bytes()
    position, keys = 0, set()
    for header in scan_headers(content):
        assert header.base_offset == 0
        assert check_crc(content, position, header)
        keys |= {record.key for record in read_records(content[position : position + header.size_bytes])}
        position += header.size_bytes
    assert position == len(content)
    assert len(keys) == 100


def test_progress_of_the_cleaner_is_read_from_its_checkpoint(tmp_path: Path) -> None:
    assert cleaned_up_to(tmp_path, "a") == -1
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n2\na 0 17\na 1 30\n")
    assert cleaned_up_to(tmp_path, "a") == 17
    assert cleaned_up_to(tmp_path, "b") == -1


@pytest.mark.parametrize(("seconds", "met"), [(4.9, True), (5.1, False)])
def test_a_goal_may_be_a_figure_of_its_own(seconds: float, met: bool) -> None:
    row = Row("scale.start.10", "start", "s", higher_is_better=False, at_most=5.0)
    assert Outcome(row, [], [seconds]).met is met
    assert Outcome(row, [100.0], [seconds]).met is met
    assert Outcome(row, [1.0], []).met is None
    assert row.described_goal == "under 5 s"


def test_every_row_is_called_differently() -> None:
    keys = [row.key for row in rows(full())]
    assert len(keys) == len(set(keys))
    assert len({row.title for row in rows(full())}) == len(keys)
