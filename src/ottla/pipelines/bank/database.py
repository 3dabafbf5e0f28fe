"""The bank's tables, in SQLite or PostgreSQL, and how a write reaches them."""

from typing import Any, Protocol

from ottla.capture.changes import Operation, Row
from ottla.pipelines.bank.events import THRESHOLDS, TRANSACTIONS, Write

SCHEMA = (
    f"CREATE TABLE IF NOT EXISTS {TRANSACTIONS} (id BIGINT PRIMARY KEY, account TEXT NOT NULL, event_id TEXT NOT NULL,"
    " amount_cents BIGINT, event_time BIGINT NOT NULL)",
    f"CREATE TABLE IF NOT EXISTS {THRESHOLDS} (account TEXT PRIMARY KEY, limit_cents BIGINT NOT NULL)",
)
# PostgreSQL only: changes tell the row before, too.
IDENTITIES = tuple(f"ALTER TABLE {table} REPLICA IDENTITY FULL" for table in (TRANSACTIONS, THRESHOLDS))

_KEYS = {TRANSACTIONS: "id", THRESHOLDS: "account"}


class Connection(Protocol):
    """Of sqlite3 or psycopg; one marks parameters with `?`, the other with `%s`."""

    def execute(self, statement: Any, parameters: Any = ..., /) -> Any: ...


def write(connection: Connection, change: Write, mark: str = "?") -> None:
    """One statement; the caller commits."""
    key = _KEYS[change.table]
    if change.operation is Operation.DELETE:
        assert change.before is not None
        connection.execute(f"DELETE FROM {change.table} WHERE {key} = {mark}", [change.before[key]])
        return
    assert change.after is not None
    row: Row = change.after
    if change.operation is Operation.UPDATE:
        columns = ", ".join(f"{name} = {mark}" for name in row)
        connection.execute(f"UPDATE {change.table} SET {columns} WHERE {key} = {mark}", [*row.values(), row[key]])
        return
    marks = ", ".join(mark for _ in row)
    renewed = ", ".join(f"{name} = excluded.{name}" for name in row)
    connection.execute(
        f"INSERT INTO {change.table} ({', '.join(row)}) VALUES ({marks}) ON CONFLICT ({key}) DO UPDATE SET {renewed}",
        list(row.values()),
    )
