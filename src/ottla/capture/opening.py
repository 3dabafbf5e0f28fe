"""A source by its address."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ottla.capture.changes import CaptureError, Source, Table

_POSTGRES = ("postgresql://", "postgres://")
_SQLITE = "sqlite:"


def open_source(address: str, name: str, tables: Iterable[Table]) -> Source:
    """`postgresql://user@host/database` or `sqlite:path/to/file.db`; psycopg is loaded only where it is used."""
    names = [table.name for table in tables]
    if address.startswith(_SQLITE):
        from ottla.capture.sqlite import SqliteSource

        return SqliteSource(Path(address.removeprefix(_SQLITE)), name, names)
    if address.startswith(_POSTGRES):
        try:
            from ottla.capture.postgres import PostgresSource
        except ImportError as error:
            raise CaptureError('PostgreSQL needs psycopg: run `pip install "ottla[postgres]"`') from error
        return PostgresSource(address, name, names)
    raise CaptureError(f"{address!r} is no database: expected {_POSTGRES[0]}... or {_SQLITE}PATH")
