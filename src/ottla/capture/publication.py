"""The publication of a connector: which tables' changes the server sends it, and what those tables need for it.

A partitioned table is published by its own name, whichever partition a row is in (`publish_via_partition_root`). The
row before a change comes from the partition, so each needs REPLICA IDENTITY FULL, as every captured table does.
"""

from __future__ import annotations

from collections.abc import Mapping

import psycopg
from psycopg import sql

from ottla.capture.changes import HOW_TO_BEGIN_ANEW, CaptureError
from ottla.capture.pgoutput import missing_identity

_PARTITIONS_SINCE = 130_000
_ORDINARY, _PARTITIONED = "r", "p"
_FULL = "f"

# A TRUNCATE has no rows to tell of, so it is left out.
_PUBLISHED = "publish = 'insert, update, delete'"
_BY_THE_ROOT = ", publish_via_partition_root = true"

SchemaAndName = tuple[str, str]
TableNames = Mapping[SchemaAndName, str]


class Publication:
    """A publication of exactly these tables: (schema, table) to the name that users know."""

    def __init__(self, name: str, tables: TableNames) -> None:
        self._name = name
        self._tables = tables

    def ensure(self, connection: psycopg.Connection) -> None:
        """Make it, or have it publish these tables and no others: capture begins with what it has then."""
        self.check_tables(connection)
        published = self._published(connection)
        # Tables that inherit from one of these are tables of their own, unless they are partitions.
        tables = sql.SQL(", ").join(sql.SQL("ONLY {}").format(sql.Identifier(*table)) for table in self._tables)
        name = sql.Identifier(self._name)
        if published is None:
            options = sql.SQL(_PUBLISHED + (_BY_THE_ROOT if _has_partitions(connection) else ""))
            connection.execute(sql.SQL("CREATE PUBLICATION {} FOR TABLE {} WITH ({})").format(name, tables, options))
        elif published != set(self._tables):
            connection.execute(sql.SQL("ALTER PUBLICATION {} SET TABLE {}").format(name, tables))
        self.check(connection)

    def check(self, connection: psycopg.Connection) -> None:
        """Refuse to read what is not all of the tables."""
        published = self._published(connection)
        if published == set(self._tables):
            return
        found = "is gone" if published is None else f"publishes {_listed(published)}"
        raise CaptureError(
            f"publication {self._name} {found}, and must publish {_listed(self._tables)}, partitioned tables with"
            f" publish_via_partition_root: changes may be missing. {HOW_TO_BEGIN_ANEW}; drop the publication before"
            f" (`DROP PUBLICATION {self._name}`) where somebody else has made it"
        )

    def check_tables(self, connection: psycopg.Connection) -> None:
        """Refuse tables that do not exist, or do not tell what rows were before a change."""
        for table, known_as in self._tables.items():
            found = _kind_and_identity(connection, table)
            if found is None:
                raise CaptureError(f"table {known_as} does not exist: create it first, or correct the name")
            kind, identity = found
            if kind not in (_ORDINARY, _PARTITIONED):
                raise CaptureError(f"{known_as} is no table: name one, since changes of others are not in the log")
            if identity != _FULL:
                raise CaptureError(missing_identity(known_as))
            if kind == _PARTITIONED:
                _check_partitions(connection, table)

    def _published(self, connection: psycopg.Connection) -> set[SchemaAndName] | None:
        """None where there is no such publication."""
        if connection.execute("SELECT 1 FROM pg_publication WHERE pubname = %s", [self._name]).fetchone() is None:
            return None
        statement = "SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = %s"
        return {(schema, name) for schema, name in connection.execute(statement, [self._name])}


def _has_partitions(connection: psycopg.Connection) -> bool:
    """Whether this server publishes partitioned tables."""
    return connection.info.server_version >= _PARTITIONS_SINCE


def is_partitioned(connection: psycopg.Connection, table: SchemaAndName) -> bool:
    found = _kind_and_identity(connection, table)
    return found is not None and found[0] == _PARTITIONED


def _kind_and_identity(connection: psycopg.Connection, table: SchemaAndName) -> tuple[str, str] | None:
    """Of a relation, if it exists."""
    quoted = sql.Identifier(*table).as_string(connection)
    statement = "SELECT relkind::text, relreplident::text FROM pg_class WHERE oid = to_regclass(%s)"
    found: tuple[str, str] | None = connection.execute(statement, [quoted]).fetchone()
    return found


def _check_partitions(connection: psycopg.Connection, table: SchemaAndName) -> None:
    root = sql.Identifier(*table).as_string(connection)
    if not _has_partitions(connection):
        raise CaptureError(f"{root} is partitioned, and that needs PostgreSQL 13: name its partitions instead")
    statement = (
        "SELECT oid::regclass::text FROM pg_class JOIN pg_partition_tree(%s::regclass) ON oid = relid"
        " WHERE isleaf AND relreplident <> 'f' ORDER BY 1"
    )
    found = connection.execute(statement, [root]).fetchone()
    if found is not None:
        raise CaptureError(missing_identity(found[0]))


def _listed(tables: TableNames | set[SchemaAndName]) -> str:
    return ", ".join(f"{schema}.{name}" for schema, name in sorted(tables)) or "nothing"
