"""Connectors beside each other, how they are ended, and what they say where they cannot go on."""

from __future__ import annotations

import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.capture.capturing import Capture, all_changes, changes
from tests.peers.ports import LOOPBACK, free_port
from tests.peers.process import ServerProcess

from ottla import Admin, Producer
from ottla.capture.changes import Table
from ottla.capture.connector import Connector
from ottla.capture.positions import Positions, Standing
from ottla.client.admin import NewTopic
from ottla.client.errors import Unfinished

Execute = Callable[..., Any]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bank.db"


@pytest.fixture
def execute(path: Path) -> Iterator[Execute]:
    """Runs a statement in the database, in a transaction of its own."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=60)) as connection:
        connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, account TEXT)")
        connection.execute("CREATE TABLE limits (account TEXT PRIMARY KEY)")
        yield connection.execute


@pytest.fixture
def capture(broker: ServerProcess, path: Path, topic: str, tmp_path: Path) -> Iterator[Capture]:
    with Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 2), NewTopic(f"{topic}-b", 2)]).raise_for_errors()
    capture = Capture(broker.bootstrap, f"sqlite:{path}", topic, ("notes=account",), tmp_path / "capture.log")
    yield capture
    capture.kill()


def test_two_connectors_of_one_file_each_get_all_that_they_asked_for(
    capture: Capture, execute: Execute, topic: str, tmp_path: Path
) -> None:
    # Only the last letters of their names differ, by what SQLite's names do not distinguish.
    capture.name = f"{topic}_a"
    other = replace(
        capture,
        topic=f"{topic}-b",
        tables=("notes=account", "limits=account"),
        log=tmp_path / "b.log",
        name=f"{topic}_A",
    )
    execute("INSERT INTO notes (account) VALUES ('ann')")
    with other.running():
        changes(other.bootstrap, other.topic, all_changes(1))
    with capture.running():
        changes(capture.bootstrap, capture.topic, all_changes(1))
        execute("INSERT INTO notes (account) VALUES ('bo')")
        execute("INSERT INTO limits (account) VALUES ('bo')")
        execute("INSERT INTO notes (account) VALUES ('cy')")
        found = changes(capture.bootstrap, capture.topic, all_changes(3))
    with other.running():
        found_too = changes(other.bootstrap, other.topic, all_changes(4))
    assert sorted((one["table"], one["key"]) for one in found) == [("notes", "ann"), ("notes", "bo"), ("notes", "cy")]
    assert sorted((one["table"], one["key"]) for one in found_too) == [
        ("limits", "bo"),
        ("notes", "ann"),
        ("notes", "bo"),
        ("notes", "cy"),
    ]


def test_other_tables_than_before_are_refused_until_capture_begins_anew(capture: Capture, execute: Execute) -> None:
    execute("INSERT INTO notes (account) VALUES ('ann')")
    execute("INSERT INTO limits (account) VALUES ('bo')")
    with capture.running():
        changes(capture.bootstrap, capture.topic, all_changes(1))
    capture.tables = ("notes=id",)
    assert "has captured notes=account so far, and is asked for notes=id" in capture.refused()
    capture.tables = ("limits=account",)
    assert "has captured notes=account so far, and is asked for limits=account" in capture.refused()
    with capture.running("--anew"):
        changes(capture.bootstrap, capture.topic, all_changes(2))
        execute("INSERT INTO notes (account) VALUES ('nobody asks')")
        execute("DELETE FROM limits")
        found = changes(capture.bootstrap, capture.topic, all_changes(3))
    assert [(one["table"], one["op"]) for one in found if one["key"] == "bo"] == [
        ("limits", "snapshot"),
        ("limits", "delete"),
    ]
    assert len(found) == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_well_when_it_is_told_to(capture: Capture, execute: Execute, number: signal.Signals) -> None:
    execute("INSERT INTO notes (account) VALUES ('ann')")
    process = capture.start()
    changes(capture.bootstrap, capture.topic, all_changes(1))
    process.send_signal(number)
    assert process.wait(60) == 0
    assert f"capture {capture.topic} has ended; started again under this name" in capture.told()
    assert "Traceback" not in capture.told()
    execute("INSERT INTO notes (account) VALUES ('bo')")
    with capture.running():
        found = changes(capture.bootstrap, capture.topic, all_changes(2))
    assert sorted((one["op"], one["key"]) for one in found) == [("insert", "bo"), ("snapshot", "ann")]


def test_a_connector_whose_database_is_away_can_be_ended(broker: ServerProcess, capture: Capture) -> None:
    source = pytest.importorskip("ottla.capture.postgres", reason="psycopg is not installed").PostgresSource(
        f"postgresql://bank@{LOOPBACK}:{free_port()}/bank", capture.topic, ["notes"]
    )
    config = {"bootstrap.servers": broker.bootstrap}
    connector = Connector(capture.topic, source, capture.topic, [Table("notes", "account")], config)
    stop, told = threading.Event(), threading.Event()
    running = threading.Thread(target=connector.run, args=(lambda _: told.set(), stop), daemon=True)
    running.start()
    assert told.wait(60)
    stop.set()
    running.join(60)
    assert not running.is_alive()


def test_what_is_no_database_is_refused_in_one_message(capture: Capture, path: Path) -> None:
    assert "correct the path" in capture.refused()
    path.write_bytes(b"Dear diary, " * 1000)
    assert "name the file of a SQLite database" in capture.refused()


@pytest.mark.parametrize("columns", ["acount", "account@when"])
def test_a_column_that_the_table_has_not_is_refused(capture: Capture, execute: Execute, columns: str) -> None:
    execute("INSERT INTO notes (account) VALUES ('ann')")
    capture.tables = (f"notes={columns}",)
    column = columns.removeprefix("account@")
    assert f"table notes has no column {column}: it has id, account" in capture.refused()


def test_a_log_that_is_gone_is_told_of_in_one_message(capture: Capture, execute: Execute) -> None:
    execute("INSERT INTO notes (account) VALUES ('ann')")
    process = capture.start()
    changes(capture.bootstrap, capture.topic, all_changes(1))
    ((log,),) = execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'ottla%'").fetchall()
    execute(f'DROP TABLE "{log}"')
    assert process.wait(60) == 1
    assert "Traceback" not in capture.told()
    assert f"no such table: {log}" in capture.told()


def test_an_open_transaction_of_another_connector_does_not_bring_an_old_position_back(
    broker: ServerProcess, topic: str
) -> None:
    config = {"bootstrap.servers": broker.bootstrap}
    positions, others = Positions(topic, "a", patience_seconds=1.0), Positions(topic, "b")
    first, second = Standing(1, 7, {"notes": "account"}), Standing(2, 7, {"notes": "account"})
    mine: Producer[bytes, bytes]
    theirs: Producer[bytes, bytes]
    with (
        Admin(config=config) as admin,
        Producer(config={**config, "transactional.id": f"{topic}-a"}) as mine,
        Producer(config={**config, "transactional.id": f"{topic}-b"}) as theirs,
    ):
        positions.prepare(admin)
        mine.init_transactions()
        theirs.init_transactions()
        with mine.transaction():
            positions.write(mine, first)
        assert positions.read(config) == first
        theirs.begin_transaction()
        others.write(theirs, Standing(5))
        theirs.flush()
        with mine.transaction():
            positions.write(mine, second)
        with pytest.raises(Unfinished, match="another connector has left a transaction open"):
            positions.read(config)
        theirs.abort_transaction()
        assert Positions(topic, "a").read(config) == second
        assert Positions(topic, "b").read(config) is None
