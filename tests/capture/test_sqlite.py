"""SQLite into a topic: the same promises, with a log that triggers fill."""

from __future__ import annotations

import random
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from tests.capture.capturing import Capture, Step, changes, history_of, is_whole
from tests.peers.process import ServerProcess

from ottla import Admin
from ottla.client.admin import NewTopic

ACCOUNTS = ("ann", "bo", "cy")
COLUMNS = ("id", "account", "amount", "note")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "bank.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE transactions (id INTEGER PRIMARY KEY, account TEXT, amount INTEGER, note)")
    connection.close()
    return path


@pytest.fixture
def capture(broker: ServerProcess, database: Path, topic: str, tmp_path: Path) -> Iterator[Capture]:
    with Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 2)]).raise_for_errors()
    tables = ("transactions=account",)
    capture = Capture(broker.bootstrap, f"sqlite:{database}", topic, tables, tmp_path / "capture.log")
    yield capture
    capture.kill()


def _row(values: Any) -> dict[str, Any]:
    row = dict(zip(COLUMNS, values, strict=True))
    return {name: value.hex().upper() if isinstance(value, bytes) else value for name, value in row.items()}


def _commit(connection: sqlite3.Connection, account: str, choices: random.Random) -> list[Step]:
    """One transaction of one account, and what it did."""
    done: list[Step] = []
    with connection:
        for _ in range(choices.randint(1, 3)):
            rows = connection.execute("SELECT * FROM transactions WHERE account = ?", [account]).fetchall()
            amount = choices.randint(1, 1000)
            if not rows or choices.random() < 0.6:
                statement = "INSERT INTO transactions (account, amount, note) VALUES (?, ?, ?) RETURNING *"
                note = choices.choice([None, "é", b"\x00\xff", 1.5])
                done.append(("insert", None, _row(connection.execute(statement, [account, amount, note]).fetchone())))
                continue
            before = choices.choice(rows)
            if choices.random() < 0.7:
                connection.execute("UPDATE transactions SET amount = ? WHERE id = ?", [amount, before[0]])
                done.append(("update", _row(before), _row((*before[:2], amount, before[3]))))
            else:
                connection.execute("DELETE FROM transactions WHERE id = ?", [before[0]])
                done.append(("delete", _row(before), None))
    return done


def test_all_changes_arrive_once_and_in_commit_order_while_the_connector_is_killed(
    capture: Capture, database: Path
) -> None:
    choices = random.Random(5)
    commits: dict[str, list[list[Step]]] = {account: [] for account in ACCOUNTS}

    def work(count: int) -> None:
        connection = sqlite3.connect(database, timeout=60)
        for _ in range(count):
            account = choices.choice(ACCOUNTS)
            commits[account].append(_commit(connection, account, choices))
        connection.close()

    work(20)
    writer = threading.Thread(target=work, args=(500,))
    writer.start()
    moments = random.Random(6)
    while writer.is_alive():
        with capture.running():
            sleep(moments.uniform(0.3, 1.2))
    with sqlite3.connect(database) as connection:
        connection.execute("INSERT INTO transactions (account) VALUES ('last')")
    connection.close()
    with capture.running():
        found = changes(capture.bootstrap, capture.topic, lambda found: any(one["key"] == "last" for one in found))
    for account in ACCOUNTS:
        assert is_whole(history_of(account, found), commits[account])


def test_a_row_that_moves_to_another_key_ends_there_and_begins_here(capture: Capture, database: Path) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute("INSERT INTO transactions (account, amount) VALUES ('ann', 1)")
        with capture.running():
            connection.commit()
            changes(capture.bootstrap, capture.topic, lambda found: len(found) == 1)
            connection.execute("UPDATE transactions SET account = 'bo'")
            connection.commit()
            found = changes(capture.bootstrap, capture.topic, lambda found: len(found) == 3)
    connection.close()
    assert [operation for operation, _, _ in history_of("ann", found)][-1] == "delete"
    assert [operation for operation, _, _ in history_of("bo", found)] == ["insert"]
    assert len({change["event_id"] for change in found}) == 3


def test_another_database_under_the_name_of_the_first_is_refused(capture: Capture, database: Path) -> None:
    with capture.running():
        with sqlite3.connect(database) as connection:
            connection.execute("INSERT INTO transactions (account) VALUES ('ann')")
        connection.close()
        changes(capture.bootstrap, capture.topic, lambda found: len(found) == 1)
        with sqlite3.connect(database) as connection:
            connection.execute("INSERT INTO transactions (account) VALUES ('ann')")
        connection.close()
        changes(capture.bootstrap, capture.topic, lambda found: len(found) == 2)
    database.unlink()
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE transactions (id INTEGER PRIMARY KEY, account TEXT)")
    connection.close()
    assert capture.start().wait(60) == 1
    assert "it is another database" in capture.log.read_text()
    with sqlite3.connect(database) as connection:
        connection.execute("INSERT INTO transactions (account) VALUES ('bo')")
    connection.close()
    with capture.running("--anew"):
        found = changes(capture.bootstrap, capture.topic, lambda found: len(found) == 3)
    *_, last = sorted(found, key=lambda change: (change["incarnation"], change["position"]))
    assert (last["op"], last["key"]) == ("snapshot", "bo")
    assert len({change["event_id"] for change in found}) == 3
