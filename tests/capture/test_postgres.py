"""PostgreSQL into a topic: every row and every change, once, in commit order per key, whatever is killed."""

from __future__ import annotations

import contextlib
import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from tests.capture.capturing import Capture, Step, changes, history_of, is_whole, wait_for
from tests.capture.postgres_state import active_slots, forget_captures, streams
from tests.peers.postgres import PostgresServer
from tests.peers.process import ServerProcess

from ottla import Admin
from ottla.client.admin import NewTopic

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")

ACCOUNTS = ("ann", "bo", "cy", "di", "ed")
COLUMNS = ("id", "account", "amount", "note")


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[Any]:
    """A connection to tables of this test's own; slots and publications of it are gone afterwards."""
    with psycopg.connect(postgres.address, autocommit=True) as connection:
        connection.execute("CREATE TABLE accounts (account text PRIMARY KEY, version int NOT NULL DEFAULT 0)")
        connection.execute(
            "CREATE TABLE transactions (id bigserial PRIMARY KEY, account text, amount bigint, note text)"
        )
        connection.execute("ALTER TABLE transactions REPLICA IDENTITY FULL")
        for account in ACCOUNTS:
            connection.execute("INSERT INTO accounts VALUES (%s)", [account])
        yield connection
        forget_captures(connection)
        connection.execute("DROP TABLE transactions, accounts")


@pytest.fixture
def capture(broker: ServerProcess, postgres: PostgresServer, topic: str, tmp_path: Path) -> Iterator[Capture]:
    with Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 2)]).raise_for_errors()
    capture = Capture(broker.bootstrap, postgres.address, topic, ("transactions=account",), tmp_path / "capture.log")
    yield capture
    capture.kill()


class Writer:
    """Changes rows of all accounts, and knows what it did. Writers take turns at an account by its lock, so that the
    account's version is the order in which they were let in: the commit order."""

    def __init__(self, address: str, seed: int) -> None:
        self._address = address
        self._choices = random.Random(seed)
        self.did: list[tuple[str, int, list[Step]]] = []

    def work(self, transactions: int) -> None:
        with psycopg.connect(self._address) as connection:
            for _ in range(transactions):
                account = self._choices.choice(ACCOUNTS)
                (version,) = connection.execute(
                    "UPDATE accounts SET version = version + 1 WHERE account = %s RETURNING version", [account]
                ).fetchone()
                done = [self._change(connection, account) for _ in range(self._choices.randint(1, 4))]
                if self._choices.random() < 0.1:
                    connection.rollback()
                    continue
                connection.commit()
                self.did.append((account, version, done))

    def _change(self, connection: Any, account: str) -> Step:
        rows = connection.execute("SELECT * FROM transactions WHERE account = %s ORDER BY id", [account]).fetchall()
        amount = self._choices.randint(1, 1000)
        if not rows or self._choices.random() < 0.6:
            statement = "INSERT INTO transactions (account, amount, note) VALUES (%s, %s, %s) RETURNING *"
            note = self._choices.choice([None, "tea", "é" * 3000])
            return "insert", None, _row(connection.execute(statement, [account, amount, note]).fetchone())
        before = self._choices.choice(rows)
        if self._choices.random() < 0.7:
            statement = "UPDATE transactions SET amount = %s WHERE id = %s RETURNING *"
            return "update", _row(before), _row(connection.execute(statement, [amount, before[0]]).fetchone())
        connection.execute("DELETE FROM transactions WHERE id = %s", [before[0]])
        return "delete", _row(before), None


def _row(values: Any) -> dict[str, Any]:
    return dict(zip(COLUMNS, values, strict=True))


def test_all_changes_arrive_once_and_in_commit_order_while_the_connector_is_killed(
    capture: Capture, database: Any, postgres: PostgresServer
) -> None:
    choices = random.Random(7)
    writers = [Writer(postgres.address, seed) for seed in (1, 2, 3)]
    writers[0].work(30)
    with capture.running():
        # This life ends in the snapshot, or soon after it.
        wait_for(lambda: database.execute("SELECT 1 FROM pg_replication_slots").fetchone())
    threads = [threading.Thread(target=writer.work, args=(150,)) for writer in writers[1:]]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        with capture.running():
            sleep(choices.uniform(0.3, 1.5))
    database.execute("INSERT INTO transactions (account, amount) VALUES ('last', 0)")
    with capture.running():
        found = changes(capture.bootstrap, capture.topic, lambda found: any(one["key"] == "last" for one in found))
    for account in ACCOUNTS:
        turns = sorted((version, done) for writer in writers for who, version, done in writer.did if who == account)
        assert is_whole(history_of(account, found), [done for _, done in turns])
    positions = {(change["position"], change["sequence"]) for change in found}
    assert len(positions) == len(found)


def test_a_connector_that_was_replaced_writes_nothing_more(capture: Capture, database: Any) -> None:
    first = capture.start()
    wait_for(lambda: streams(database))
    first.send_signal(signal.SIGSTOP)
    database.execute("INSERT INTO transactions (account, amount) VALUES ('ann', 1)")
    second = capture.start()
    try:
        found = changes(capture.bootstrap, capture.topic, lambda found: len(found) == 1)
        first.send_signal(signal.SIGCONT)
        database.execute("INSERT INTO transactions (account, amount) VALUES ('ann', 2)")
        assert first.wait(60) == 1
        found = changes(capture.bootstrap, capture.topic, lambda found: len(found) == 2)
    finally:
        with contextlib.suppress(ProcessLookupError):
            first.kill()
        first.wait()
        second.kill()
        second.wait()
    assert [(change["op"], change["after"]["amount"]) for change in found] == [("insert", 1), ("insert", 2)]


def test_lost_changes_are_told_and_not_passed_over(capture: Capture, database: Any) -> None:
    with capture.running():
        wait_for(lambda: streams(database))
    wait_for(lambda: not active_slots(database))
    database.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
    assert capture.start().wait(60) == 1
    assert "is gone, but changes were captured up to" in capture.log.read_text()


def test_a_table_that_does_not_tell_its_rows_before_a_change_is_refused(capture: Capture, database: Any) -> None:
    database.execute("ALTER TABLE transactions REPLICA IDENTITY DEFAULT")
    assert capture.start().wait(60) == 1
    assert "ALTER TABLE transactions REPLICA IDENTITY FULL" in capture.log.read_text()
