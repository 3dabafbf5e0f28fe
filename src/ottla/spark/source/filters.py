"""Predicates of a batch query that are applied here instead of in Spark.

Spark believes a filter that is claimed and does not check it again. So only what is applied exactly is claimed: tests
of topic and partition choose ranges, tests of the offset cut them, and tests of the timestamp are made row by row;
for those that ask for late records, a range begins where the broker finds the first of them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from operator import eq, ge, gt, le, lt
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from ottla.client.types import TopicPartition
from ottla.spark.source.columns import Projection
from ottla.spark.source.planning import OffsetRange

_OPERATORS: Final[Mapping[type[Filter], str]] = {
    EqualTo: "=",
    EqualNullSafe: "=",
    LessThan: "<",
    LessThanOrEqual: "<=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
}
_TESTS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {"=": eq, "<": lt, "<=": le, ">": gt, ">=": ge}
_ROW_TESTS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "=": pc.equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OF_PARTITIONS = ("topic", "partition")


@dataclass(frozen=True, slots=True)
class Condition:
    """`values` has one value but for the operator `in`; `is_negated` turns it round. Times are in microseconds."""

    column: str
    operator: str
    values: tuple[Any, ...]
    is_negated: bool = False

    def holds(self, value: Any) -> bool:
        if self.operator == "in":
            return (value in self.values) != self.is_negated
        return _TESTS[self.operator](value, self.values[0]) != self.is_negated


@dataclass(frozen=True, slots=True)
class RowFilter:
    """What is tested row by row: conditions on the timestamp."""

    conditions: tuple[Condition, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.conditions)

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        times = batch.column("timestamp")
        for condition in self.conditions:
            mask = _ROW_TESTS[condition.operator](times, pa.scalar(condition.values[0], times.type))
            batch = batch.filter(mask)
            times = batch.column("timestamp")
        return batch


@dataclass(frozen=True, slots=True)
class Pushed:
    """The filters that were claimed."""

    conditions: tuple[Condition, ...] = ()

    @property
    def row_filter(self) -> RowFilter:
        return RowFilter(tuple(one for one in self.conditions if one.column == "timestamp"))

    def allows(self, partition: TopicPartition) -> bool:
        values = {"topic": partition.topic, "partition": partition.partition}
        return all(one.holds(values[one.column]) for one in self.conditions if one.column in _OF_PARTITIONS)

    def narrow(self, ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
        """Ranges of the partitions that are allowed, without the offsets that are not."""
        bounds = [_bounds(one.operator, one.values[0]) for one in self.conditions if one.column == "offset"]
        allowed = [one for one in ranges if self.allows(one.topic_partition)]
        if not bounds:
            return allowed
        low, high = max(first for first, _ in bounds), min(end for _, end in bounds)
        narrowed = []
        for one in allowed:
            start = min(max(one.start, low), one.end)
            narrowed.append(replace(one.cut(start, max(min(one.end, high), start)), is_to_latest=False))
        return narrowed

    def first_time_ms(self) -> int | None:
        """No record before this time can pass, where there is such a time. Records have whole milliseconds."""
        times = []
        for one in self.conditions:
            if one.column == "timestamp" and one.operator in ("=", ">="):
                times.append(-(-one.values[0] // 1000))
            elif one.column == "timestamp" and one.operator == ">":
                times.append(one.values[0] // 1000 + 1)
        return max(times, default=None)


def _bounds(operator: str, value: int) -> tuple[int, int]:
    """The first offset that passes, and the one behind the last."""
    endless = 2**63
    return {
        "=": (value, value + 1),
        "<": (0, value),
        "<=": (0, value + 1),
        ">": (value + 1, endless),
        ">=": (value, endless),
    }[operator]


def push(filters: Sequence[Filter], projection: Projection) -> tuple[Pushed, list[Filter]]:
    """What is claimed, and the filters that are left to Spark."""
    claimed: list[Condition] = []
    left: list[Filter] = []
    for one in filters:
        column = _column_of(one, projection)
        if isinstance(one, IsNotNull) and column is not None:
            continue
        condition = None if column is None else _condition(one, column)
        if condition is None:
            left.append(one)
        else:
            claimed.append(condition)
    return Pushed(tuple(claimed)), left


def _column_of(one: Filter, projection: Projection) -> str | None:
    """The record's column that a filter is about; None for others, and for columns that can be null."""
    path: tuple[str, ...] = getattr(one.child if isinstance(one, Not) else one, "attribute", ())
    column = projection.sources.get(path[0]) if len(path) == 1 else None
    return column if column in (*_OF_PARTITIONS, "offset", "timestamp") else None


def _condition(one: Filter, column: str) -> Condition | None:
    is_negated = isinstance(one, Not)
    bare = one.child if isinstance(one, Not) else one
    if isinstance(bare, In):
        values = tuple(_plain(value, column) for value in bare.value)
        if column not in _OF_PARTITIONS or None in values:
            return None
        return Condition(column, "in", values, is_negated)
    operator = _OPERATORS.get(type(bare))
    if operator is None or (is_negated and column not in _OF_PARTITIONS):
        return None
    value = _plain(getattr(bare, "value", None), column)
    if value is None or (column == "topic" and operator != "="):
        return None
    return Condition(column, operator, (value,), is_negated)


def _plain(value: Any, column: str) -> int | str | None:
    """The literal as it is compared; None for one of another type."""
    if column == "topic":
        return value if isinstance(value, str) else None
    if column == "timestamp":
        if not isinstance(value, datetime) or value.tzinfo is None:
            return None
        return (value - _EPOCH) // timedelta(microseconds=1)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
