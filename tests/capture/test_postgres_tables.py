"""Which tables of PostgreSQL are captured, what their values look like, and what is said where that cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.capture.capturing import Capture, all_changes, changes, wait_for
from tests.capture.postgres_state import active_slots, forget_captures, streams
from tests.peers.postgres import USER, PostgresServer
from tests.peers.process import ServerProcess

from ottla import Admin
from ottla.client.admin import NewTopic

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")

INSERT = "INSERT INTO notes (account, note) VALUES (%s, %s)"


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[Any]:
    """A connection that commits each statement, to a schema with a table `notes`; all is gone afterwards."""
    with psycopg.connect(postgres.address, autocommit=True) as connection:
        connection.execute("CREATE TABLE notes (id bigserial PRIMARY KEY, account text, note text)")
        connection.execute("ALTER TABLE notes REPLICA IDENTITY FULL")
        yield connection
        forget_captures(connection)
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
        connection.execute("GRANT USAGE ON SCHEMA public TO PUBLIC")


@pytest.fixture
def capture(broker: ServerProcess, postgres: PostgresServer, topic: str, tmp_path: Path) -> Iterator[Capture]:
    with Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 2)]).raise_for_errors()
    capture = Capture(broker.bootstrap, postgres.address, topic, ("notes=account",), tmp_path / "capture.log")
    yield capture
    capture.kill()


def test_values_that_python_has_no_type_for_are_told_alike_by_snapshot_and_stream(
    capture: Capture, database: Any
) -> None:
    database.execute(
        "CREATE TABLE odd (id serial PRIMARY KEY, account text, span interval, at timestamptz, day date, exact numeric,"
        " rough float8, raw bytea, nothing text)"
    )
    database.execute("ALTER TABLE odd REPLICA IDENTITY FULL")
    insert = (
        "INSERT INTO odd (account, span, at, day, exact, rough, raw) VALUES ('Zoë €', '1 year 2 days 03:04:05.5',"
        " 'infinity', '0044-03-15 BC', 'NaN', '-Infinity', '\\x00ff')"
    )
    capture.tables = ("odd=account",)
    # Whoever sets another encoding for their own programs gets the same.
    capture.database += "?client_encoding=LATIN9"
    database.execute(insert)
    with capture.running():
        wait_for(lambda: streams(database))
        database.execute(insert)
        found = changes(capture.bootstrap, capture.topic, all_changes(2))
    rows = [change["after"] for change in found]
    assert [change["op"] for change in found] == ["snapshot", "insert"]
    assert [row.pop("id") for row in rows] == [1, 2]
    assert rows[0] == rows[1]
    assert rows[0] == {
        "account": "Zoë €",
        "span": "P1Y2DT3H4M5.5S",
        "at": "infinity",
        "day": "0044-03-15 BC",
        "exact": "NaN",
        "rough": "-Infinity",
        "raw": "\\x00ff",
        "nothing": None,
    }
    assert found[0]["key"] == "Zoë €"


def test_other_tables_than_before_are_refused_until_capture_begins_anew(capture: Capture, database: Any) -> None:
    database.execute("CREATE TABLE limits (account text PRIMARY KEY)")
    database.execute("ALTER TABLE limits REPLICA IDENTITY FULL")
    database.execute("INSERT INTO limits VALUES ('ann')")
    database.execute(INSERT, ["ann", "first"])
    with capture.running():
        wait_for(lambda: streams(database))
    capture.tables = ("notes=account", "limits=account")
    said = capture.refused()
    assert "has captured notes=account so far, and is asked for limits=account, notes=account" in said
    assert "--anew" in said
    with capture.running("--anew"):
        wait_for(lambda: streams(database))
        database.execute("INSERT INTO limits VALUES ('bo')")
        found = changes(capture.bootstrap, capture.topic, lambda found: any(one["key"] == "bo" for one in found))
    assert [(one["op"], one["table"]) for one in found if one["table"] == "limits"] == [
        ("snapshot", "limits"),
        ("insert", "limits"),
    ]
    first, again = (one["incarnation"] for one in found if one["table"] == "notes")
    assert first < again
    capture.tables = ("limits=account",)
    assert "is asked for limits=account" in capture.refused()


def test_a_partitioned_table_is_captured_under_its_own_name(capture: Capture, database: Any) -> None:
    database.execute("CREATE TABLE parts (account text, amount int) PARTITION BY RANGE (amount)")
    for low in (0, 10):
        database.execute(f"CREATE TABLE parts_{low} PARTITION OF parts FOR VALUES FROM ({low}) TO ({low + 10})")
        database.execute(f"ALTER TABLE parts_{low} REPLICA IDENTITY {'DEFAULT' if low else 'FULL'}")
    database.execute("ALTER TABLE parts REPLICA IDENTITY FULL")
    database.execute("INSERT INTO parts VALUES ('ann', 1)")
    capture.tables = ("parts=account",)
    assert "ALTER TABLE parts_10 REPLICA IDENTITY FULL" in capture.refused()
    database.execute("ALTER TABLE parts_10 REPLICA IDENTITY FULL")
    # The second of them finds the publication that the first has made.
    for amount, count in ((11, 3), (12, 4)):
        with capture.running():
            wait_for(lambda: streams(database))
            database.execute("UPDATE parts SET amount = %s WHERE account = 'ann'", [amount])
            found = changes(capture.bootstrap, capture.topic, all_changes(count))
    # A row that moves to another partition is deleted from one and inserted into the other: so the log has it.
    assert {one["table"] for one in found} == {"parts"}
    assert [one["op"] for one in found] == ["snapshot", "delete", "insert", "update"]
    assert [one["after"] and one["after"]["amount"] for one in found] == [1, None, 11, 12]


def test_a_publication_that_somebody_has_changed_is_noticed(capture: Capture, database: Any) -> None:
    database.execute("CREATE TABLE others (id int)")
    with capture.running():
        wait_for(lambda: streams(database))
        ((name,),) = database.execute("SELECT pubname FROM pg_publication").fetchall()
    database.execute(f"ALTER PUBLICATION {name} ADD TABLE others")
    assert f"publication {name} publishes public.notes, public.others" in capture.refused()
    database.execute(f"DROP PUBLICATION {name}")
    assert f"publication {name} is gone" in capture.refused()


def test_a_slot_that_a_killed_connector_was_still_making_is_made_anew(
    capture: Capture, database: Any, postgres: PostgresServer
) -> None:
    with psycopg.connect(postgres.address) as other:
        # A slot is not ready before transactions that were open when it was asked for have ended.
        other.execute(INSERT, ["bo", "open"])
        with capture.running():
            wait_for(lambda: active_slots(database))
        assert database.execute("SELECT confirmed_flush_lsn FROM pg_replication_slots").fetchone() == (None,)
        old = active_slots(database)
        capture.start()
        wait_for(lambda: ((new := active_slots(database)) and new != old) or "Traceback" in capture.told())
        other.commit()
    found = changes(capture.bootstrap, capture.topic, all_changes(1))
    assert [(one["op"], one["after"]["note"]) for one in found] == [("snapshot", "open")]
    assert "Traceback" not in capture.told()


@pytest.mark.parametrize(
    ("grants", "said"),
    [
        (("ALTER ROLE clerk NOREPLICATION", "ALTER TABLE notes OWNER TO clerk"), 'ALTER ROLE "clerk" REPLICATION'),
        (("ALTER ROLE clerk REPLICATION",), "docs/CAPTURE.md"),
    ],
)
def test_a_user_without_the_rights_is_told_which(
    capture: Capture, database: Any, postgres: PostgresServer, grants: tuple[str, ...], said: str
) -> None:
    database.execute("CREATE ROLE clerk LOGIN")
    database.execute("GRANT CREATE ON DATABASE postgres TO clerk")
    try:
        for statement in grants:
            database.execute(statement)
        capture.database = postgres.address.replace(USER, "clerk", 1)
        assert said in capture.refused()
    finally:
        forget_captures(database)
        database.execute("DROP OWNED BY clerk CASCADE")
        database.execute("DROP ROLE clerk")


class _PlainServer(PostgresServer):
    """As PostgreSQL is without settings."""

    def command(self) -> list[str]:
        return [part.replace("wal_level=logical", "wal_level=replica") for part in super().command()]


def test_a_server_without_a_logical_log_is_told_what_to_set(capture: Capture, tmp_path: Path, postgres: object) -> None:
    server = _PlainServer(tmp_path / "plain")
    server.start()
    try:
        with psycopg.connect(server.address, autocommit=True) as connection:
            connection.execute("CREATE TABLE notes (account text)")
            connection.execute("ALTER TABLE notes REPLICA IDENTITY FULL")
        capture.database = server.address
        assert "wal_level = logical" in capture.refused()
    finally:
        server.remove()
