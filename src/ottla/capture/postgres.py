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
from psycopg.pq.abc import PGresult

from ottla.capture.changes import (
    HOW_TO_BEGIN_ANEW,
    CaptureError,
    Change,
    Operation,
    Row,
    Settled,
    Snapshot,
    SourceUnavailable,
)
from ottla.capture.pgoutput import Decoder, json_value
from ottla.capture.publication import Publication, is_partitioned
from ottla.capture.refusals import refusal
from ottla.capture.replication import ENCODING, SESSION, Keepalive, ReplicationConnection, lsn, lsn_text

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
        self._publication = Publication(self._name, self._tables)
        self._replication: ReplicationConnection | None = None

    def close(self) -> None:
        if self._replication is not None:
            self._replication.close()
            self._replication = None

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        with self._connected() as connection:
            self._publication.ensure(connection)
            self._take_over(connection)
            # One that was being made is gone with who made it.
            connection.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s",
                [self._name],
            )
        with contextlib.closing(self._replicating()) as replication:
            position, exported = replication.create_slot(self._name)
            with self._connected() as connection:
                connection.autocommit = False
                connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(exported))
                yield Snapshot(position, self._rows(connection, position))

    def stream(self, position: int) -> Iterator[Change | Settled | None]:
        with self._connected() as connection:
            self._publication.check_tables(connection)
            self._publication.check(connection)
            self._check_slot(connection, position)
            self._take_over(connection)
        self.close()
        self._replication = self._replicating()
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

    # The slot

    def _slot(self, connection: psycopg.Connection) -> tuple[int | None, int | None] | None:
        """How far the slot is confirmed, None while it is being made, and the process that has it."""
        row = connection.execute(
            "SELECT confirmed_flush_lsn::text, active_pid FROM pg_replication_slots WHERE slot_name = %s", [self._name]
        ).fetchone()
        return None if row is None else (None if row[0] is None else lsn(row[0]), row[1])

    def _check_slot(self, connection: psycopg.Connection, position: int) -> None:
        """Refuse to go on where changes are missing. We confirm what is committed, so a slot is never ahead of us."""
        slot = self._slot(connection)
        begins_at = None if slot is None else slot[0]
        if begins_at is not None and begins_at <= position:
            return
        what = "is gone" if begins_at is None else f"begins at {lsn_text(begins_at)}"
        raise CaptureError(
            f"replication slot {self._name} {what}, but changes were captured up to {lsn_text(position)} only: what"
            f" lies between is lost. {HOW_TO_BEGIN_ANEW}"
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
        """All rows, of one table after the other. They lie before the first change, which may commit at `position`.

        The server's texts are taken as they are: psycopg's own values would be thrown away, and it has none for some,
        such as intervals in this style, infinite times, and years before Christ."""
        now = connection.execute("SELECT (extract(epoch FROM now()) * 1000)::bigint").fetchone()
        assert now is not None
        for table, known_as in self._tables.items():
            rows = "{}" if is_partitioned(connection, table) else "ONLY {}"
            statement = sql.SQL(f"DECLARE rows NO SCROLL CURSOR FOR SELECT * FROM {rows}")
            connection.execute(statement.format(sql.Identifier(*table)))
            while (result := connection.execute(f"FETCH {_ROWS_AT_ONCE} FROM rows").pgresult) and result.ntuples:
                for row in _text_rows(result):
                    yield Change(known_as, Operation.SNAPSHOT, None, row, position - 1, now[0])
            connection.execute("CLOSE rows")

    # Connections

    @contextlib.contextmanager
    def _connected(self) -> Iterator[psycopg.Connection]:
        try:
            with contextlib.closing(
                psycopg.connect(self._conninfo, autocommit=True, options=SESSION, client_encoding=ENCODING)
            ) as connection:
                yield connection
        except psycopg.Error as error:
            is_address = error.sqlstate is None and not isinstance(error, psycopg.OperationalError)
            if is_address:
                raise CaptureError(f"PostgreSQL cannot be used: {error}; correct its address") from error
            raise refusal("PostgreSQL cannot be used", error.sqlstate, str(error)) from error

    def _replicating(self) -> ReplicationConnection:
        try:
            return ReplicationConnection(self._conninfo)
        except SourceUnavailable as error:
            self._check_role(str(error))
            raise

    def _check_role(self, reason: str) -> None:
        """A connection for replication that was refused has no error code: see whether the user may not have one."""
        with self._connected() as connection:
            role = connection.execute(
                "SELECT rolname FROM pg_roles WHERE rolname = current_user AND NOT (rolreplication OR rolsuper)"
            ).fetchone()
        if role is not None:
            user = sql.Identifier(role[0]).as_string()
            raise CaptureError(f"{reason}; run `ALTER ROLE {user} REPLICATION` as a superuser")


def _schema_and_name(table: str) -> tuple[str, str]:
    schema, _, name = table.rpartition(".")
    return schema or "public", name


def _text_rows(result: PGresult) -> Iterator[Row]:
    """Their values as the stream would have them."""
    names = [(result.fname(column) or b"").decode() for column in range(result.nfields)]
    types = [result.ftype(column) for column in range(result.nfields)]
    for number in range(result.ntuples):
        row: Row = {}
        for column, (name, type_oid) in enumerate(zip(names, types, strict=True)):
            value = result.get_value(number, column)
            row[name] = None if value is None else json_value(type_oid, value.decode())
        yield row
