"""Places in a topic: how they are written, and which offsets they stand for."""

from datetime import UTC, datetime, timedelta

import pytest

from ottla.cli.positions import (
    BEGINNING,
    END,
    Bounds,
    Kind,
    Position,
    Span,
    WrongPosition,
    earlier_spans,
    last_spans,
    offset_of,
    parse_partitions,
    parse_position,
    span_of,
)
from ottla.client.types import TopicPartition

NOW_MS = 1_767_225_600_000
FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("beginning", BEGINNING),
        ("Earliest", BEGINNING),
        ("end", END),
        ("latest", END),
        ("42", Position(Kind.OFFSET, 42)),
        ("-5", Position(Kind.BEFORE_END, 5)),
        ("@1700000000000", Position(Kind.TIME, 1_700_000_000_000)),
        ("2h", Position(Kind.TIME, NOW_MS - 7_200_000)),
        ("90s ago", Position(Kind.TIME, NOW_MS - 90_000)),
        ("100w", Position(Kind.TIME, NOW_MS - 100 * 604_800_000)),
        ("2026-01-31T12:00Z", Position(Kind.TIME, 1_769_860_800_000)),
        ("2026-01-31T13:00+01:00", Position(Kind.TIME, 1_769_860_800_000)),
    ],
)
def test_what_is_written(text: str, expected: Position) -> None:
    assert parse_position(text, NOW_MS) == expected


def test_a_time_without_a_zone_is_local() -> None:
    here = datetime(2026, 1, 31, 12, 0).astimezone()
    assert parse_position("2026-01-31T12:00", NOW_MS).value == int(here.timestamp() * 1000)
    assert parse_position("2026-01-31", NOW_MS).value == int(
        (here - timedelta(hours=12)).astimezone(UTC).timestamp() * 1000
    )


@pytest.mark.parametrize("text", ["", "soon", "--5", "+5", "1.5", "@", "@-1", "5y", "2026-13-01", str(2**63)])
def test_what_is_no_place_is_told_what_would_be(text: str) -> None:
    with pytest.raises(WrongPosition, match="beginning, end, an offset"):
        parse_position(text, NOW_MS)


@pytest.mark.parametrize(
    ("position", "at_time", "expected"),
    [
        (BEGINNING, None, 10),
        (END, None, 20),
        (Position(Kind.OFFSET, 15), None, 15),
        (Position(Kind.OFFSET, 3), None, 10),
        (Position(Kind.OFFSET, 99), None, 20),
        (Position(Kind.BEFORE_END, 4), None, 16),
        (Position(Kind.BEFORE_END, 400), None, 10),
        (Position(Kind.TIME, 1), 13, 13),
        (Position(Kind.TIME, 1), None, 20),
    ],
)
def test_offsets_stay_inside_of_the_partition(position: Position, at_time: int | None, expected: int) -> None:
    assert offset_of(position, Bounds(10, 20, at_time)) == expected


def test_a_span_ends_where_it_is_told_to() -> None:
    bounds = Bounds(0, 10)
    assert span_of(BEGINNING, None, bounds, bounds) == Span(0, None)
    assert span_of(BEGINNING, END, bounds, bounds) == Span(0, 10)
    assert span_of(BEGINNING, Position(Kind.OFFSET, 15), bounds, bounds) == Span(0, 15)
    assert span_of(END, Position(Kind.OFFSET, 5), bounds, bounds) == Span(10, 10)
    assert span_of(Position(Kind.TIME, 1), Position(Kind.TIME, 2), Bounds(0, 10, 3), Bounds(0, 10, 7)) == Span(3, 7)


def test_the_last_records_are_looked_for_further_back_until_the_beginning() -> None:
    bounds = {FIRST: Bounds(0, 100), SECOND: Bounds(90, 100)}
    spans = last_spans(bounds, 5)
    assert spans == {FIRST: Span(95, 100), SECOND: Span(95, 100)}
    spans = earlier_spans(spans, bounds)
    assert spans == {FIRST: Span(80, 100), SECOND: Span(90, 100)}
    for _ in range(3):
        spans = earlier_spans(spans, bounds)
    assert spans == {FIRST: Span(0, 100), SECOND: Span(90, 100)}
    assert earlier_spans(spans, bounds) == spans


def test_an_empty_partition_is_never_looked_further_back_in() -> None:
    bounds = {FIRST: Bounds(7, 7)}
    spans = last_spans(bounds, 5)
    assert earlier_spans(spans, bounds) == spans == {FIRST: Span(7, 7)}


@pytest.mark.parametrize(("text", "expected"), [("0", {0}), ("0,3,5-7", {0, 3, 5, 6, 7}), (" 1 , 2 ", {1, 2})])
def test_partitions(text: str, expected: set[int]) -> None:
    assert parse_partitions(text) == expected


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "7-5", "0-99999999"])
def test_what_are_no_partitions(text: str) -> None:
    with pytest.raises(WrongPosition):
        parse_partitions(text)
