"""A bank on this machine: a SQLite database in which made-up people do what they do, and capture of it.

Whoever opens the database and changes a limit there, or pays, sees it in the pipeline's answers.
"""

import contextlib
import logging
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from ottla.pipelines.bank import database
from ottla.pipelines.bank.events import CHANGES, TABLES, THRESHOLDS, Write, writes
from ottla.pipelines.frame.place import Place

_LOCK_SECONDS = 60.0

_logger = logging.getLogger(__name__)


def run_bank(place: Place, stop: threading.Event, seed: int, start_ms: int, rate: float) -> Iterator[Write]:
    """What was written, until it is told to stop. The database stays; called again, capture goes on where it was."""
    path = Path(place.data) / "bank.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=_LOCK_SECONDS)) as connection:
        for statement in database.SCHEMA:
            connection.execute(statement)
        # Limits are set anew by the made-up people of each run.
        connection.execute(f"DELETE FROM {THRESHOLDS}")
        capturing = threading.Thread(
            target=_capture, args=(path, place.brokers, stop), name="bank-capture", daemon=True
        )
        capturing.start()
        began = time.monotonic()
        for change in writes(seed, start_ms, rate):
            if stop.wait(max(0.0, began + (change.time_ms - start_ms) / 1000 - time.monotonic())):
                break
            database.write(connection, change)
            yield change
        capturing.join()


def _capture(path: Path, brokers: Mapping[str, object], stop: threading.Event) -> None:
    from ottla.capture.connector import Connector
    from ottla.capture.sqlite import SqliteSource

    source = SqliteSource(path, [table.name for table in TABLES])
    Connector("mybank", source, CHANGES, TABLES, brokers).run(_logger.warning, stop)
