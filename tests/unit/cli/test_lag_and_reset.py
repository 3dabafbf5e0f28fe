"""How far a group is behind, and where its offsets would go."""

import pytest

from ottla.cli.connecting import NotThere
from ottla.cli.lag import lags, total
from ottla.cli.positions import BEGINNING, Bounds, Kind, Position
from ottla.cli.reset import chosen, planned
from ottla.client.admin import GroupDescription, GroupMember
from ottla.client.types import OffsetAndMetadata, TopicPartition

FIRST, SECOND, THIRD = (TopicPartition("orders", number) for number in range(3))


def test_lag_has_committed_partitions_and_those_that_are_only_read() -> None:
    member = GroupMember("m-1", "instance", "client", "/10.0.0.1", (SECOND,), (SECOND,))
    group = GroupDescription("billing", "classic", "Stable", "consumer", "range", 1, (member,))
    committed = {FIRST: OffsetAndMetadata(4), THIRD: OffsetAndMetadata(9)}
    rows = lags("billing", committed, {FIRST: 10, SECOND: 7}, group)
    assert [(row.partition, row.committed, row.end, row.lag, row.member, row.host) for row in rows] == [
        (0, 4, 10, 6, None, None),
        (1, None, 7, None, "instance", "10.0.0.1"),
        (2, 9, None, None, None, None),
    ]
    assert total(rows) == 6


def test_an_end_that_is_older_than_the_commit_is_no_negative_lag() -> None:
    (row,) = lags("g", {FIRST: OffsetAndMetadata(12)}, {FIRST: 10}, None)
    assert row.lag == 0


def test_moves_to_a_place() -> None:
    bounds = {FIRST: Bounds(5, 20), SECOND: Bounds(0, 3)}
    moves = planned({FIRST: OffsetAndMetadata(15)}, bounds, BEGINNING, None)
    assert [(move.partition, move.current, move.new, move.change, move.lag) for move in moves] == [
        (FIRST, 15, 5, -10, 15),
        (SECOND, None, 0, None, 3),
    ]
    (move,) = planned({}, {FIRST: Bounds(5, 20)}, Position(Kind.OFFSET, 99), None)
    assert (move.new, move.lag) == (20, 0)


def test_moves_by_a_number_stay_inside() -> None:
    committed = {FIRST: OffsetAndMetadata(15)}
    assert [planned(committed, {FIRST: Bounds(5, 20)}, None, by)[0].new for by in (-100, -3, 2, 100)] == [5, 12, 17, 20]
    with pytest.raises(NotThere, match="orders-1 has no offset"):
        planned(committed, {SECOND: Bounds(0, 1)}, None, 1)


def test_which_partitions_are_meant() -> None:
    committed = [SECOND, FIRST]
    assert chosen(committed, [], {}) == [FIRST, SECOND]
    assert chosen(committed, ["orders"], {"orders": 3}) == [FIRST, SECOND, THIRD]
    assert chosen(committed, ["orders:0,2"], {"orders": 3}) == [FIRST, THIRD]
    with pytest.raises(NotThere, match="orders has no partition 3: it has 0 to 2"):
        chosen(committed, ["orders:1-3"], {"orders": 3})
