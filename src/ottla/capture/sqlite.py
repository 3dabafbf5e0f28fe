"""SQLite: triggers write every change into a log inside of the database, in the transaction that makes it.

SQLite has one writer at a time, so the log's numbers are in commit order, and a reader sees those of committed
transactions only. The number is the position; it grows for ever (AUTOINCREMENT), also when the log has been emptied.

A connector has a log and triggers of its own, named after it: what one has captured is deleted from its log, and others
of the same file still have it in theirs. The tables' columns are written into the triggers, so they are made anew
whenever capture begins. SQLite does not tell triggers that `INSERT OR REPLACE` removed a row: use
`INSERT ... ON CONFLICT DO UPDATE`, of which it does tell them.
"""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from ottla.capture.changes import (
    HOW_TO_BEGIN_ANEW,
    CaptureError,
    Change,
    JsonValue,
    Operation,
    Row,
    Settled,
    Snapshot,
    SourceUnavailable,
)

_LOCK_SECONDS = 30.0
_POLL_SECONDS = 0.05
_ROWS_AT_ONCE = 2_000

_LOG_COLUMNS = """
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    table_name TEXT NOT NULL,
    operation TEXT NOT NULL,
    before TEXT,
    after TEXT,
    commit_time INTEGER NOT NULL
"""
_NOW_MS = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"
_SEEN_FROM = {Operation.INSERT: ("NEW",), Operation.UPDATE: ("OLD", "NEW"), Operation.DELETE: ("OLD",)}
# What passes by itself: somebody else holds a lock, or a disk is away or full.
_PASSING = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL}
_REMEDIES = {
    sqlite3.SQLITE_NOTADB: "name the file of a SQLite database",
    sqlite3.SQLITE_CORRUPT: "the file is damaged: check it with `PRAGMA integrity_check`, or restore it",
    sqlite3.SQLITE_READONLY: "capture adds triggers and a log: allow it to write to the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "correct the path, or allow it to read and write the file and its folder",
    sqlite3.SQLITE_PERM: "allow it to read and write the file and its folder",
}


class SqliteSource:
    """Some tables of one database file, for the connector of this name. It is used by one thread."""

    def __init__(self, path: Path, name: str, tables: Iterable[str]) -> None:
        self._path = path
        self._log = log_of(name)
        self._tables = tuple(tables)
        self._connection: sqlite3.Connection | None = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        with self._typed_errors():
            connection = self._open()
            connection.execute("BEGIN")
            try:
                position = self._last_position(connection)
                yield Snapshot(position, self._rows(connection, position))
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def stream(self, position: int) -> Iterator[Change | Settled | None]:
        with self._typed_errors():
            connection = self._open()
            if position > self._last_position(connection):
                raise CaptureError(
                    f"{self._path} has not seen as many changes as were captured: it is another database."
                    f" {HOW_TO_BEGIN_ANEW}"
                )
            while True:
                changes = list(self._logged_after(connection, position))
                for change in changes:
                    yield change
                    yield Settled(change.position)
                    position = change.position
                if len(changes) < _ROWS_AT_ONCE:
                    yield None
                    time.sleep(_POLL_SECONDS)

    def confirm(self, position: int) -> None:
        with self._typed_errors():
            self._open().execute(f"DELETE FROM {_quoted(self._log)} WHERE position <= ?", [position])

    # The log and its triggers

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            uri = f"{self._path.resolve().as_uri()}?mode=rw"
            connection = sqlite3.connect(uri, uri=True, timeout=_LOCK_SECONDS, isolation_level=None)
            try:
                self._install(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _install(self, connection: sqlite3.Connection) -> None:
        """The log and the triggers that fill it; readers do not stop writers from here on (WAL)."""
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"CREATE TABLE IF NOT EXISTS {_quoted(self._log)} ({_LOG_COLUMNS})")
        for trigger in self._triggers(connection):
            connection.execute(f"DROP TRIGGER {_quoted(trigger)}")
        for table in self._tables:
            columns = [name for _, name, *_ in connection.execute("SELECT * FROM pragma_table_info(?)", [table])]
            if not columns:
                raise CaptureError(f"{self._path} has no table {table}: create it first, or correct the name")
            for operation, sides in _SEEN_FROM.items():
                connection.execute(self._trigger(table, operation, columns, sides))
        connection.execute("COMMIT")

    def _triggers(self, connection: sqlite3.Connection) -> list[str]:
        """Those that fill the log now, of whatever tables. A dot ends the log's name, which has none."""
        statement = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND substr(name, 1, ?) = ?"
        prefix = f"{self._log}."
        return [name for (name,) in connection.execute(statement, [len(prefix), prefix])]

    def _trigger(self, table: str, operation: Operation, columns: list[str], sides: tuple[str, ...]) -> str:
        before = _as_json("OLD", columns) if "OLD" in sides else "NULL"
        after = _as_json("NEW", columns) if "NEW" in sides else "NULL"
        name = _quoted(f"{self._log}.{table}.{operation}")
        return (
            f"CREATE TRIGGER {name} AFTER {operation.upper()} ON {_quoted(table)} BEGIN"
            f" INSERT INTO {_quoted(self._log)} (table_name, operation, before, after, commit_time)"
            f" VALUES ({_literal(table)}, '{operation}', {before}, {after}, {_NOW_MS}); END"
        )

    # What is read

    def _last_position(self, connection: sqlite3.Connection) -> int:
        row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", [self._log]).fetchone()
        return 0 if row is None else int(row[0])

    def _logged_after(self, connection: sqlite3.Connection, position: int) -> Iterator[Change]:
        marks = ", ".join("?" for _ in self._tables)
        statement = (
            f"SELECT position, table_name, operation, before, after, commit_time FROM {_quoted(self._log)}"
            f" WHERE position > ? AND table_name IN ({marks}) ORDER BY position LIMIT ?"
        )
        for number, table, operation, before, after, commit_time in connection.execute(
            statement, [position, *self._tables, _ROWS_AT_ONCE]
        ):
            yield Change(table, Operation(operation), _row(before), _row(after), number, commit_time)

    def _rows(self, connection: sqlite3.Connection, position: int) -> Iterator[Change]:
        (now,) = connection.execute(f"SELECT {_NOW_MS}").fetchone()
        for table in self._tables:
            cursor = connection.execute(f"SELECT * FROM {_quoted(table)}")
            names = [name for name, *_ in cursor.description]
            for values in cursor:
                row: Row = {name: _json_value(value) for name, value in zip(names, values, strict=True)}
                yield Change(table, Operation.SNAPSHOT, None, row, position, now)

    @contextlib.contextmanager
    def _typed_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            # The low byte is the kind; the others tell more about it.
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
            if code in _PASSING:
                raise SourceUnavailable(f"{self._path} cannot be used now: {error}") from error
            remedy = _REMEDIES.get(
                code, "the tables, or what is in them, cannot be read: correct that, then start again"
            )
            raise CaptureError(f"{self._path} cannot be captured: {error}; {remedy}") from error


def log_of(name: str) -> str:
    """The table that a connector's changes are logged in. Names that differ have logs that differ, although SQLite does
    not tell large letters from small ones."""
    plain = re.sub(r"[^a-z0-9_]", "_", name.lower())
    return f"ottla_changes_{plain}" if plain == name else f"ottla_changes_{plain}_{zlib.crc32(name.encode()):08x}"


def _quoted(identifier: str) -> str:
    doubled = identifier.replace('"', '""')
    return f'"{doubled}"'


def _literal(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


def _as_json(side: str, columns: list[str]) -> str:
    """A row as a JSON object; bytes, which JSON does not have, in hexadecimal digits."""
    values = (f"{side}.{_quoted(name)}" for name in columns)
    pairs = (
        f"{_literal(name)}, CASE typeof({value}) WHEN 'blob' THEN hex({value}) ELSE {value} END"
        for name, value in zip(columns, values, strict=True)
    )
    return f"json_object({', '.join(pairs)})"


def _json_value(value: int | float | str | bytes | None) -> JsonValue:
    return value.hex().upper() if isinstance(value, bytes) else value


def _row(text: str | None) -> Row | None:
    row: Row | None = None if text is None else json.loads(text)
    return row
