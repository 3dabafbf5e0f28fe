"""What a source gives, and how it looks as a record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

JsonValue = None | bool | int | float | str
Row = dict[str, JsonValue]


class CaptureError(Exception):
    """What is wrong with a source or what was asked of it; the text says what to do."""


class SourceUnavailable(CaptureError):
    """The database cannot be reached now; the same may work later."""


class TablesChanged(CaptureError):
    """A connector is asked for other tables, or other keys of them, than it has captured so far."""


# The end of what is said where a connector cannot go on from its position.
HOW_TO_BEGIN_ANEW = "To begin anew with a snapshot, start it with --anew"


@dataclass(frozen=True, slots=True)
class Table:
    """A captured table. `key` is the column that changes are keyed by; `time`, if there is one, holds the time at which
    what a new row is about happened, in epoch milliseconds: it may be long before the commit."""

    name: str
    key: str
    time: str | None = None

    def check(self, row: Row) -> None:
        """Refuse a row without these columns: it would go to some partition, or to some time."""
        for column in (self.key, self.time):
            if column is not None and column not in row:
                raise CaptureError(
                    f"table {self.name} has no column {column}: it has {', '.join(row)}; correct it in --table"
                )


class Operation(StrEnum):
    """How a row came to be as it is. Rows that were there before capture began are of the snapshot."""

    SNAPSHOT = "snapshot"
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Change:
    """One row, before and after; `position` is that of its commit, by which all changes of a source are ordered."""

    table: str
    operation: Operation
    before: Row | None
    after: Row | None
    position: int
    commit_time_ms: int

    def by_key(self, column: str) -> Iterator[tuple[JsonValue, Change]]:
        """The change under its key. An update that moves a row to another key is a delete there and an insert here."""
        old = None if self.before is None else self.before.get(column)
        new = None if self.after is None else self.after.get(column)
        if self.operation is not Operation.UPDATE or old == new:
            yield (old if self.after is None else new), self
            return
        yield old, replace(self, operation=Operation.DELETE, after=None)
        yield new, replace(self, operation=Operation.INSERT, before=None)

    def to_json(self, incarnation: int, sequence: int, time: str | None) -> bytes:
        """The record's value. `incarnation` is of the snapshot that capture began with: whatever follows a newer one is
        newer, also where positions begin anew. `sequence` tells the changes of one commit apart, in their order; `time`
        is the column that says when an inserted row's event happened. Everything else happens when it is committed."""
        event_time: JsonValue = self.commit_time_ms
        if time is not None and self.after is not None and self.operation is Operation.INSERT:
            event_time = self.after.get(time)
        event = {
            "event_id": f"{incarnation}-{self.position}-{sequence}",
            "event_time": event_time,
            "table": self.table,
            "op": self.operation,
            "before": self.before,
            "after": self.after,
            "incarnation": incarnation,
            "position": self.position,
            "sequence": sequence,
            "commit_time": self.commit_time_ms,
        }
        return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class Settled:
    """All that was committed up to `position` has been given: capture may go on from here after a restart."""

    position: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All rows as they were at one moment, and the position from which the changes since then are streamed."""

    position: int
    rows: Iterator[Change]


class Source(Protocol):
    """A database."""

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Begin anew: forget the position of an earlier attempt, if there was one, and the tables that it had."""
        ...

    def stream(self, position: int) -> Iterator[Change | Settled | None]:
        """What was committed after `position`, in commit order, without an end. None: there is no more for now."""
        ...

    def confirm(self, position: int) -> None:
        """Everything up to `position` is safe elsewhere: the database need not keep it for us."""
        ...

    def close(self) -> None: ...
