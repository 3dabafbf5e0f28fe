"""SQLite: triggers write every change into a log inside of the database, in the transaction that makes it.

SQLite has one writer at a time, so the log's numbers are in commit order, and a reader sees those of committed
transactions only. The number is the position; it grows for ever (AUTOINCREMENT), also when the log has been emptied.

The tables' columns are written into the triggers, so they are made anew whenever capture begins. SQLite does not tell
triggers that `INSERT OR REPLACE` removed a row: use `INSERT ... ON CONFLICT DO UPDATE`, of which it does tell them.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from ottla.capture.changes import CaptureError, Change, JsonValue, Operation, Row, Settled, Snapshot, SourceUnavailable

_LOG = "ottla_changes"
_LOCK_SECONDS = 30.0
_POLL_SECONDS = 0.05
_ROWS_AT_ONCE = 2_000

_CREATE_LOG = f"""
CREATE TABLE IF NOT EXISTS {_LOG} (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    table_name TEXT NOT NULL,
    operation TEXT NOT NULL,
    before TEXT,
    after TEXT,
    commit_time INTEGER NOT NULL
)
"""
_NOW_MS = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"
_SEEN_FROM = {Operation.INSERT: ("NEW",), Operation.UPDATE: ("OLD", "NEW"), Operation.DELETE: ("OLD",)}


class SqliteSource:
    """Some tables of one database file. It is used by one thread."""

    def __init__(self, path: Path, tables: Iterable[str]) -> None:
        self._path = path
        self._tables = tuple(tables)
        self._connection: sqlite3.Connection | None = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        connection = self._open()
        connection.execute("BEGIN")
        try:
            position = _last_position(connection)
            yield Snapshot(position, self._rows(connection, position))
        finally:
            connection.execute("ROLLBACK")

    def stream(self, position: int) -> Iterator[Change | Settled | None]:
        connection = self._open()
        if position > _last_position(connection):
            raise CaptureError(
                f"{self._path} has not seen as many changes as were captured: it is another database."
                " To begin anew with a snapshot, delete the connector's topic of positions"
            )
        while True:
            changes = list(_logged_after(connection, position))
            for change in changes:
                yield change
                yield Settled(change.position)
                position = change.position
            if len(changes) < _ROWS_AT_ONCE:
                yield None
                time.sleep(_POLL_SECONDS)

    def confirm(self, position: int) -> None:
        with _as_capture_errors(self._path):
            self._open().execute(f"DELETE FROM {_LOG} WHERE position <= ?", [position])

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            with _as_capture_errors(self._path):
                uri = f"{self._path.resolve().as_uri()}?mode=rw"
                connection = sqlite3.connect(uri, uri=True, timeout=_LOCK_SECONDS, isolation_level=None)
                self._install(connection)
                self._connection = connection
        return self._connection

    def _install(self, connection: sqlite3.Connection) -> None:
        """The log and the triggers that fill it; readers do not stop writers from here on (WAL)."""
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(_CREATE_LOG)
        for table in self._tables:
            columns = [name for _, name, *_ in connection.execute("SELECT * FROM pragma_table_info(?)", [table])]
            if not columns:
                raise CaptureError(f"{self._path} has no table {table}: create it first, or correct the name")
            for operation, sides in _SEEN_FROM.items():
                connection.execute(f'DROP TRIGGER IF EXISTS "ottla_{table}_{operation}"')
                connection.execute(_trigger(table, operation, columns, sides))
        connection.execute("COMMIT")

    def _rows(self, connection: sqlite3.Connection, position: int) -> Iterator[Change]:
        (now,) = connection.execute(f"SELECT {_NOW_MS}").fetchone()
        for table in self._tables:
            cursor = connection.execute(f'SELECT * FROM "{table}"')
            names = [name for name, *_ in cursor.description]
            for values in cursor:
                row: Row = {name: _json_value(value) for name, value in zip(names, values, strict=True)}
                yield Change(table, Operation.SNAPSHOT, None, row, position, now)


def _trigger(table: str, operation: Operation, columns: list[str], sides: tuple[str, ...]) -> str:
    before = _as_json("OLD", columns) if "OLD" in sides else "NULL"
    after = _as_json("NEW", columns) if "NEW" in sides else "NULL"
    return (
        f'CREATE TRIGGER "ottla_{table}_{operation}" AFTER {operation.upper()} ON "{table}" BEGIN'
        f" INSERT INTO {_LOG} (table_name, operation, before, after, commit_time)"
        f" VALUES ('{table}', '{operation}', {before}, {after}, {_NOW_MS}); END"
    )


def _as_json(side: str, columns: list[str]) -> str:
    """A row as a JSON object; bytes, which JSON does not have, in hexadecimal digits."""
    values = (f'{side}."{name}"' for name in columns)
    pairs = (
        f"'{name}', CASE typeof({value}) WHEN 'blob' THEN hex({value}) ELSE {value} END"
        for name, value in zip(columns, values, strict=True)
    )
    return f"json_object({', '.join(pairs)})"


def _json_value(value: int | float | str | bytes | None) -> JsonValue:
    return value.hex().upper() if isinstance(value, bytes) else value


def _last_position(connection: sqlite3.Connection) -> int:
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", [_LOG]).fetchone()
    return 0 if row is None else int(row[0])


def _logged_after(connection: sqlite3.Connection, position: int) -> Iterator[Change]:
    statement = (
        f"SELECT position, table_name, operation, before, after, commit_time FROM {_LOG}"
        " WHERE position > ? ORDER BY position LIMIT ?"
    )
    for number, table, operation, before, after, commit_time in connection.execute(
        statement, [position, _ROWS_AT_ONCE]
    ):
        yield Change(table, Operation(operation), _row(before), _row(after), number, commit_time)


def _row(text: str | None) -> Row | None:
    row: Row | None = None if text is None else json.loads(text)
    return row


@contextlib.contextmanager
def _as_capture_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise SourceUnavailable(f"{path} cannot be used: {error}") from error
