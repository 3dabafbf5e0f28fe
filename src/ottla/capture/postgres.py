"""PostgreSQL by logical decoding: a snapshot of the moment in which a replication slot is made, then what follows it.

The slot keeps the server's log from the confirmed position on; the snapshot is exported by the very command that makes
the slot, so that a change is either in the snapshot or in the stream, and never in both.

The server needs `wal_level=logical`, the user the REPLICATION attribute and SELECT on the tables; the publication is
made here if it is missing, which needs their ownership. Tables need REPLICA IDENTITY FULL, for the row before a change.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator

import psycopg
from psycopg import sql

from ottla.capture.changes import CaptureError, Change, Operation, Row, Settled, Snapshot, SourceUnavailable
from ottla.capture.pgoutput import Decoder, json_value, missing_identity
from ottla.capture.replication import SESSION, Keepalive, ReplicationConnection, lsn, lsn_text

_ROWS_AT_ONCE = 2_000
_TAKEOVER_SECONDS = 30.0
_TAKEOVER_PAUSE_SECONDS = 0.1


class PostgresSource:
    """Some tables of one database, under a slot and a publication of one name."""

    def __init__(self, conninfo: str, name: str, tables: Iterable[str]) -> None:
        """`tables` are of the schema `public` unless they are named with theirs."""
        self._conninfo = conninfo
        self._name = f"ottla_{name}".replace("-", "_").replace(".", "_").lower()
        self._tables = {_schema_and_name(table): table for table in tables}
        self._replication: ReplicationConnection | None = None

    def close(self) -> None:
        if self._replication is not None:
            self._replication.close()
            self._replication = None

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        self._publish()
        with self._connected() as connection:
            if self._slot(connection) is not None:
                self._take_over(connection)
                connection.execute("SELECT pg_drop_replication_slot(%s)", [self._name])
        with contextlib.closing(ReplicationConnection(self._conninfo)) as replication:
            position, exported = replication.create_slot(self._name)
            with self._connected() as connection:
                connection.autocommit = False
                connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(exported))
                yield Snapshot(position, self._rows(connection, position))

    def stream(self, position: int) -> Iterator[Change | Settled | None]:
        with self._connected() as connection:
            self._check_slot(connection, position)
            self._take_over(connection)
        self.close()
        self._replication = ReplicationConnection(self._conninfo)
        self._replication.start(self._name, self._name, position)
        decoder = Decoder(self._tables)
        for message in self._replication.messages():
            if message is None:
                yield None
            elif isinstance(message, Keepalive):
                if decoder.is_between_transactions:
                    yield Settled(message.position)
            else:
                yield from decoder.decode(message)

    def confirm(self, position: int) -> None:
        if self._replication is not None:
            self._replication.confirm(position)

    # The publication and the slot

    def _publish(self) -> None:
        """Have a publication of exactly these tables, each with its rows before a change."""
        with self._connected() as connection:
            for schema, name in self._tables:
                self._check_identity(connection, schema, name)
            published = {
                (schema, name)
                for schema, name in connection.execute(
                    "SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = %s", [self._name]
                )
            }
            if not published:
                tables = sql.SQL(", ").join(sql.Identifier(*table) for table in self._tables)
                # A TRUNCATE has no rows to tell of, so it is left out.
                statement = "CREATE PUBLICATION {} FOR TABLE {} WITH (publish = 'insert, update, delete')"
                connection.execute(sql.SQL(statement).format(sql.Identifier(self._name), tables))
            elif published != set(self._tables):
                raise CaptureError(
                    f"publication {self._name} has other tables than asked for: {sorted(published)};"
                    f" drop it (`DROP PUBLICATION {self._name}`) or capture under another name"
                )

    def _check_identity(self, connection: psycopg.Connection, schema: str, name: str) -> None:
        table = sql.Identifier(schema, name).as_string(connection)
        identity = connection.execute(
            "SELECT relreplident FROM pg_class WHERE oid = to_regclass(%s)", [table]
        ).fetchone()
        if identity is None:
            raise CaptureError(f"table {table} does not exist: create it first, or correct the name")
        if identity[0] not in (b"f", "f"):
            raise CaptureError(missing_identity(self._tables[schema, name]))

    def _slot(self, connection: psycopg.Connection) -> tuple[int, int | None] | None:
        """How far the slot is confirmed, and the process that reads it."""
        row = connection.execute(
            "SELECT confirmed_flush_lsn::text, active_pid FROM pg_replication_slots WHERE slot_name = %s", [self._name]
        ).fetchone()
        return None if row is None else (lsn(row[0]), row[1])

    def _check_slot(self, connection: psycopg.Connection, position: int) -> None:
        """Refuse to go on where changes are missing. We confirm what is committed, so a slot is never ahead of us."""
        slot = self._slot(connection)
        if slot is not None and slot[0] <= position:
            return
        what = "is gone" if slot is None else f"begins at {lsn_text(slot[0])}"
        raise CaptureError(
            f"replication slot {self._name} {what}, but changes were captured up to {lsn_text(position)} only: what"
            " lies between is lost. To begin anew with a snapshot, delete the connector's topic of positions"
        )

    def _take_over(self, connection: psycopg.Connection) -> None:
        """End the server's side of an older connector: it may not have noticed that its client is dead or shut out."""
        deadline = time.monotonic() + _TAKEOVER_SECONDS
        while (slot := self._slot(connection)) is not None and slot[1] is not None:
            if time.monotonic() > deadline:
                raise SourceUnavailable(f"replication slot {self._name} stays in use by process {slot[1]}")
            connection.execute("SELECT pg_terminate_backend(%s)", [slot[1]])
            time.sleep(_TAKEOVER_PAUSE_SECONDS)

    # Rows

    def _rows(self, connection: psycopg.Connection, position: int) -> Iterator[Change]:
        """All rows, of one table after the other. They lie before the first change, which may commit at `position`."""
        now = connection.execute("SELECT (extract(epoch FROM now()) * 1000)::bigint").fetchone()
        assert now is not None
        for (schema, name), table in self._tables.items():
            with connection.cursor("rows") as cursor:
                cursor.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(schema, name)))
                while cursor.fetchmany(_ROWS_AT_ONCE):
                    for row in _text_rows(cursor):
                        yield Change(table, Operation.SNAPSHOT, None, row, position - 1, now[0])

    @contextlib.contextmanager
    def _connected(self) -> Iterator[psycopg.Connection]:
        try:
            with contextlib.closing(psycopg.connect(self._conninfo, autocommit=True, options=SESSION)) as connection:
                yield connection
        except psycopg.OperationalError as error:
            raise SourceUnavailable(f"PostgreSQL cannot be used now: {error}") from error


def _schema_and_name(table: str) -> tuple[str, str]:
    schema, _, name = table.rpartition(".")
    return schema or "public", name


def _text_rows(cursor: psycopg.ServerCursor) -> Iterator[Row]:
    """The rows that were just fetched, their values as the stream would have them."""
    result = cursor.pgresult
    assert result is not None
    names = [(result.fname(column) or b"").decode() for column in range(result.nfields)]
    for number in range(result.ntuples):
        row: Row = {}
        for column, name in enumerate(names):
            value = result.get_value(number, column)
            row[name] = None if value is None else json_value(result.ftype(column), value.decode())
        yield row
