"""What connectors have in a PostgreSQL server."""

from __future__ import annotations

from typing import Any

from tests.capture.capturing import wait_for


def streams(connection: Any) -> list[Any]:
    """Connectors that have done with the snapshot. A slot is active while it is made, too; and a server whose log ends
    within a record calls a stream behind, until somebody commits."""
    statement = "SELECT pid FROM pg_stat_replication WHERE state IN ('catchup', 'streaming')"
    found: list[Any] = connection.execute(statement).fetchall()
    return found


def active_slots(connection: Any) -> list[Any]:
    """Each with the process that has it."""
    statement = "SELECT slot_name, active_pid FROM pg_replication_slots WHERE active"
    found: list[Any] = connection.execute(statement).fetchall()
    return found


def forget_captures(connection: Any) -> None:
    """Publications and slots are gone afterwards."""
    for (name,) in connection.execute("SELECT pubname FROM pg_publication").fetchall():
        connection.execute(f'DROP PUBLICATION "{name}"')
    connection.execute("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active")
    wait_for(lambda: not active_slots(connection))
    connection.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
