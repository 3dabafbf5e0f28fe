"""MyBank: alerts and limits are those of a plain computation, over a restart, from events and from a real database."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import time
from typing import Any

import pytest
from tests.capture.capturing import Capture, wait_for
from tests.peers.paths import PeerMissing
from tests.peers.postgres import PostgresServer
from tests.pipelines.bank import reference
from tests.pipelines.driving import START_MS, Drive, Run, renew_topics, some_events, start

from ottla import Admin
from ottla.capture.changes import Operation, Row
from ottla.pipelines.bank import database
from ottla.pipelines.bank.events import CHANGES, THRESHOLDS, TRANSACTIONS, Write, writes
from ottla.pipelines.bank.job import ALERTS, PIPELINE

TABLES = ("transactions=account@event_time", "thresholds=account")
HISTORY = 60


@pytest.mark.timeout(240)
def test_the_answers_are_those_of_a_plain_computation(drive: Drive) -> None:
    events = some_events(PIPELINE, 1500)
    reference.verify(drive.interrupted(PIPELINE, events), events)


def test_the_same_seed_gives_the_same_events() -> None:
    first, again, other = (list(itertools.islice(PIPELINE.generate(seed, START_MS, 5.0), 500)) for seed in (1, 1, 2))
    assert first == again != other
    assert [event.timestamp_ms for event in first] == sorted(event.timestamp_ms for event in first)


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[tuple[Any, str, str]]:
    """A database with the bank's tables: a connection that commits each statement, its address, its parameter mark.
    It is PostgreSQL, or SQLite where that is not installed."""
    try:
        server = PostgresServer(tmp_path / "postgres")
    except PeerMissing:
        path = tmp_path / "bank.db"
        with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=60)) as connection:
            for statement in database.SCHEMA:
                connection.execute(statement)
            yield connection, f"sqlite:{path}", "?"
        return
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
    server.start()
    with psycopg.connect(server.address, autocommit=True) as connection:
        for statement in (*database.SCHEMA, *database.IDENTITIES):
            connection.execute(statement)
        yield connection, server.address, "%s"
    server.remove()


@pytest.mark.timeout(240)
def test_a_database_that_changes_while_its_connector_is_killed_is_told_of_once(
    bank: tuple[Any, str, str], drive: Drive, pipeline_spark: Any, tmp_path: Path
) -> None:
    connection, address, mark = bank
    done = list(itertools.islice(writes(11, int(time() * 1000), 20.0), 300))
    last = [*_limit_and_payments("zoe"), *_limit_and_payments("zoe", number=2, raised=True)]
    place = drive.place()
    renew_topics(PIPELINE, place.bootstrap)
    _forget_positions(place.bootstrap)
    capture = Capture(place.bootstrap, address, CHANGES, TABLES, tmp_path / "capture.log")

    def write(changes: Sequence[Write]) -> None:
        for change in changes:
            database.write(connection, change, mark)

    write(done[:HISTORY])
    run = Run(PIPELINE, place)
    with capture.running():
        wait_for(lambda: len(run.letters(CHANGES)) > 0)
        queries = start(pipeline_spark, PIPELINE, place)
        write(done[HISTORY:140])
    write(done[140:220])
    with capture.running():
        write(done[220:260])
        for query in queries:
            query.stop()
    with capture.running():
        queries = start(pipeline_spark, PIPELINE, place)
        write(done[260:])
        write(last)
        wait_for(lambda: any(alert["event_id"] == "zoe-2-large" for alert in run.letters(ALERTS)))
        for query in queries:
            query.processAllAvailable()
            query.stop()
    expected = reference.answers_to_writes([*done, *last], HISTORY)
    reference.verify_answers(run, expected)
    assert [alert[0] for alert in expected.alerts if alert[1] == "zoe"] == ["zoe-1-small", "zoe-1-large", "zoe-2-large"]
    assert run.letters(PIPELINE.dead_letters.name)
    assert run.letters(PIPELINE.late.name)


def _limit_and_payments(account: str, number: int = 1, raised: bool = False) -> list[Write]:
    """A limit, a payment that reaches the first limit only, and one that reaches both."""
    now = int(time() * 1000)
    old: Row = {"account": account, "limit_cents": 50_00}
    limit = (
        Write(now, THRESHOLDS, Operation.UPDATE, old, {**old, "limit_cents": 100_00})
        if raised
        else Write(now, THRESHOLDS, Operation.INSERT, None, old)
    )
    payments: list[Row] = [
        {
            "id": 1_000_000 + 2 * number + place,
            "account": account,
            "event_id": f"{account}-{number}-{size}",
            "amount_cents": cents,
            "event_time": now,
        }
        for place, (size, cents) in enumerate((("small", 60_00), ("large", 200_00)))
    ]
    return [limit, *(Write(now, TRANSACTIONS, Operation.INSERT, None, payment) for payment in payments)]


def _forget_positions(bootstrap: str) -> None:
    with Admin(bootstrap) as admin:
        admin.delete_topics([f"{CHANGES}.positions"])
