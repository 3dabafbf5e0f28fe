"""Places in a topic as a user writes them, and the offsets that they stand for.

| written                          | means                                                                        |
|----------------------------------|------------------------------------------------------------------------------|
| `beginning`, `end`               | the first record that is there; behind the last one                          |
| `42`                             | offset 42 of each partition                                                  |
| `-5`                             | 5 before the end of each partition                                           |
| `@1767225600000`                 | the first record that is not older: milliseconds since 1970                  |
| `2026-01-01T12:00`, `2026-01-01` | the same, in local time unless it says otherwise (`Z`, `+02:00`)             |
| `30s`, `15m`, `2h`, `7d`         | the same, that long ago                                                      |

Everything here is plain computation: the offsets that brokers tell are handed in.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from ottla.client.types import TopicPartition

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_AGO = re.compile(r"(\d+)(ms|s|m|h|d|w)(?: ago)?")
_NUMBER = re.compile(r"\d+")
_BEFORE_END = re.compile(r"-(\d+)")
_LARGEST_OFFSET = 2**63 - 1

EXPLANATION = "beginning, end, an offset, -N from the end, @milliseconds, 2026-01-31T12:00, or 15m, 2h, 7d ago"


class Kind(Enum):
    BEGINNING = "beginning"
    END = "end"
    OFFSET = "offset"
    BEFORE_END = "before end"
    TIME = "time"


class WrongPosition(ValueError):
    """What was written names no place in a topic."""


@dataclass(frozen=True, slots=True)
class Position:
    """`value` is an offset, a number of records or milliseconds, as the kind has it."""

    kind: Kind
    value: int = 0


BEGINNING = Position(Kind.BEGINNING)
END = Position(Kind.END)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a broker tells of a partition: its first offset, the one behind its last record, and the first that is not
    older than the time that was asked for (None where no record is that new, or no time was asked for)."""

    first: int
    end: int
    at_time: int | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """Read from `start` up to, not including, `stop`; for ever where that is None."""

    start: int
    stop: int | None

    @property
    def size(self) -> int:
        return 0 if self.stop is None else max(self.stop - self.start, 0)


def parse_position(text: str, now_ms: int) -> Position:
    written = text.strip()
    word = written.lower()
    if word in ("beginning", "start", "earliest"):
        return BEGINNING
    if word in ("end", "latest"):
        return END
    if match := _AGO.fullmatch(word):
        return Position(Kind.TIME, max(now_ms - int(match[1]) * _UNITS_MS[match[2]], 0))
    if match := _BEFORE_END.fullmatch(word):
        return Position(Kind.BEFORE_END, int(match[1]))
    if _NUMBER.fullmatch(word) and int(word) <= _LARGEST_OFFSET:
        return Position(Kind.OFFSET, int(word))
    if word.startswith("@") and _NUMBER.fullmatch(word[1:]) and int(word[1:]) <= _LARGEST_OFFSET:
        return Position(Kind.TIME, int(word[1:]))
    try:
        milliseconds = int(datetime.fromisoformat(written).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise WrongPosition(f"{text!r} is no place in a topic: write {EXPLANATION}") from None
    return Position(Kind.TIME, max(milliseconds, 0))


def offset_of(position: Position, bounds: Bounds) -> int:
    """The offset a position stands for, moved into the partition where it lies outside."""
    if position.kind is Kind.BEGINNING:
        return bounds.first
    if position.kind is Kind.END:
        return bounds.end
    if position.kind is Kind.BEFORE_END:
        return max(bounds.end - position.value, bounds.first)
    if position.kind is Kind.TIME:
        return bounds.end if bounds.at_time is None else min(max(bounds.at_time, bounds.first), bounds.end)
    return min(max(position.value, bounds.first), bounds.end)


def span_of(start: Position, stop: Position | None, bounds: Bounds, stop_bounds: Bounds) -> Span:
    """What to read of one partition; `stop_bounds` were asked for the time of `stop`. A stop that is an offset may lie
    ahead of the end: then it is waited for."""
    first = offset_of(start, bounds)
    if stop is None:
        return Span(first, None)
    if stop.kind is Kind.OFFSET:
        return Span(first, max(stop.value, first))
    return Span(first, max(offset_of(stop, stop_bounds), first))


Spans = Mapping[TopicPartition, Span]


def last_spans(bounds: Mapping[TopicPartition, Bounds], count: int) -> dict[TopicPartition, Span]:
    """Where the last `count` records of all partitions together must be, if every offset has a record."""
    return {
        partition: Span(max(bound.end - count, bound.first), bound.end) for partition, bound in sorted(bounds.items())
    }


def earlier_spans(spans: Spans, bounds: Mapping[TopicPartition, Bounds], factor: int = 4) -> dict[TopicPartition, Span]:
    """The same ends from further back, for where offsets without records (compaction, transactions) left too few; those
    that begin at the beginning stay as they are."""
    wider = {}
    for partition, span in spans.items():
        bound = bounds[partition]
        wider[partition] = Span(max(bound.end - max(span.size, 1) * factor, bound.first), bound.end)
    return wider


def parse_partitions(text: str) -> frozenset[int]:
    """`0,3,5-7` as a set of partitions."""
    numbers: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not _NUMBER.fullmatch(first) or (dash and not _NUMBER.fullmatch(last)):
            raise WrongPosition(f"{text!r} are no partitions: write numbers and ranges, such as 0,3,5-7")
        low, high = int(first), int(last or first)
        if high < low or high - low > 1_000_000:
            raise WrongPosition(f"{part.strip()!r} is no range of partitions: the smaller number comes first")
        numbers.update(range(low, high + 1))
    return frozenset(numbers)
