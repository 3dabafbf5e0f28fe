"""How ranges are cut and batches limited: no offset is lost, and none is in two places."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from ottla.client.types import TopicPartition
from ottla.spark.source.admission import Patience, at_most
from ottla.spark.source.limits import from_offset_map, to_offset_map
from ottla.spark.source.planning import OffsetRange, OffsetRanges, split, together

SIZES = st.lists(st.integers(0, 5000), max_size=12)


def ranges_of(sizes: list[int]) -> list[OffsetRange]:
    return [OffsetRange("t", number, 100, 100 + size, is_from_earliest=True) for number, size in enumerate(sizes)]


@given(SIZES, st.none() | st.integers(1, 60), st.none() | st.integers(1, 5000))
def test_pieces_are_the_whole(sizes: list[int], min_partitions: int | None, max_records: int | None) -> None:
    ranges = ranges_of(sizes)
    pieces = split(ranges, min_partitions, max_records)
    for whole in ranges:
        own = [piece for piece in pieces if piece.partition == whole.partition]
        assert sum(piece.size for piece in own) == whole.size
        if own:
            assert (own[0].start, own[-1].end) == (whole.start, whole.end)
            assert all(before.end == after.start for before, after in pairwise(own))
            # Only what begins where the log began may find that it begins later by now.
            assert [piece.is_from_earliest for piece in own] == [True] + [False] * (len(own) - 1)
    assert all(piece.size > 0 for piece in pieces)
    if max_records is not None:
        assert all(piece.size <= max_records for piece in pieces)


def test_large_partitions_are_split_in_proportion() -> None:
    """As Spark's connector does it: small ones stay whole, and the others share what is left."""
    pieces = split(ranges_of([100, 300, 5]), 9, None)
    assert [len([piece for piece in pieces if piece.partition == number]) for number in range(3)] == [2, 6, 1]
    assert len(split(ranges_of([10, 10]), 2, None)) == 2


@given(SIZES, st.none() | st.integers(1, 60), st.integers(0, 3000))
def test_ranges_that_are_put_together_are_the_same_ranges(
    sizes: list[int], min_partitions: int | None, least: int
) -> None:
    ranges = split(ranges_of(sizes), min_partitions, None)
    tasks = together(ranges, least)
    assert sorted((one for task in tasks for one in task.ranges), key=ranges.index) == ranges
    for task in tasks:
        assert list(task.ranges) == sorted(task.ranges, key=ranges.index)
        # The consumer of a task has one position in a partition.
        assert len({one.partition for one in task.ranges}) == len(task.ranges)
        if isinstance(task, OffsetRanges):
            assert len(task.ranges) > 1
            assert all(one.size < least for one in task.ranges)
            assert sum(one.size for one in task.ranges) < 2 * least


def test_small_ranges_become_one_task_and_a_large_one_stays_alone() -> None:
    small, large, also_small, last, left = ranges = ranges_of([4, 10, 5, 1, 2])
    assert together(ranges, 10) == [large, OffsetRanges((small, also_small, last)), left]
    assert together(ranges, 0) == ranges


def test_pieces_of_a_partition_stay_in_tasks_of_their_own() -> None:
    """They would share the position of the task's consumer, and all but one would be skipped."""
    first, second, third, other = pieces = split(ranges_of([30, 4]), 4, None)
    assert together(pieces, 100) == [first, second, OffsetRanges((third, other))]


@given(st.dictionaries(st.integers(0, 9), st.integers(0, 1000), min_size=1), st.integers(1, 500))
@example({0: 1, 1: 1, 2: 4}, 3)
def test_a_limited_batch_takes_something_of_everything(behind: dict[int, int], limit: int) -> None:
    """As Spark's connector does it: one offset of each partition whose share is less than that; the others keep to the
    limit."""
    starts = {TopicPartition("t", number): 7 for number in behind}
    ends = {TopicPartition("t", number): 7 + size for number, size in behind.items()}
    limited = at_most(limit, starts, ends)
    taken = {number: limited[TopicPartition("t", number)] - 7 for number in behind}
    small = {number for number, size in behind.items() if 0 < limit * size < sum(behind.values())}
    assert all(taken[number] == 1 for number in small)
    assert sum(taken[number] for number in behind.keys() - small) <= limit
    for one, end in ends.items():
        assert 7 <= limited[one] <= end
        assert (limited[one] > 7) == (end > 7)


def test_small_batches_wait_but_not_for_ever() -> None:
    partition = TopicPartition("t", 0)
    patience = Patience(at_least=10, max_delay_ms=1000)
    assert not patience.waits({partition: 0}, {partition: 1}, now_ms=5)
    assert patience.waits({partition: 1}, {partition: 10}, now_ms=900)
    assert not patience.waits({partition: 1}, {partition: 11}, now_ms=950)
    assert patience.waits({partition: 11}, {partition: 12}, now_ms=1949)
    assert not patience.waits({partition: 11}, {partition: 12}, now_ms=1950)


@given(st.dictionaries(st.tuples(st.sampled_from("abc"), st.integers(0, 20)), st.integers(0)))
def test_offsets_are_the_same_from_their_json(offsets: dict[tuple[str, int], int]) -> None:
    named = {TopicPartition(*partition): offset for partition, offset in offsets.items()}
    assert from_offset_map(to_offset_map(named)) == named
