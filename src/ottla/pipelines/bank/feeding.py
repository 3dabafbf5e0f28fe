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
from types import TracebackType
from typing import Self

from ottla.pipelines.bank import database
from ottla.pipelines.bank.events import CHANGES, TABLES, THRESHOLDS, Write, writes
from ottla.pipelines.frame.place import Place

_CONNECTOR = "mybank"
_LOCK_SECONDS = 60.0

_logger = logging.getLogger(__name__)


def run_bank(place: Place, stop: threading.Event, seed: int, start_ms: int, rate: float) -> Iterator[Write]:
    """What was written, until it is told to stop. The database stays; called again, capture goes on where it was.

    Where capture ends by an error, so does this, with the same one."""
    path = Path(place.data) / "bank.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=_LOCK_SECONDS)) as connection:
        for statement in database.SCHEMA:
            connection.execute(statement)
        # Limits are set anew by the made-up people of each run.
        connection.execute(f"DELETE FROM {THRESHOLDS}")
        with _Capturing(path, place.brokers) as capturing:
            began = time.monotonic()
            for change in writes(seed, start_ms, rate):
                if stop.wait(max(0.0, began + (change.time_ms - start_ms) / 1000 - time.monotonic())):
                    break
                if capturing.failure is not None:
                    break
                database.write(connection, change)
                yield change


class _Capturing:
    """Capture of the bank's database, in a thread. Leaving the block ends it, and raises what went wrong there."""

    def __init__(self, path: Path, brokers: Mapping[str, object]) -> None:
        self.failure: Exception | None = None
        self._path = path
        self._brokers = brokers
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bank-capture", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        if self.failure is not None and error is None:
            raise self.failure

    def _run(self) -> None:
        from ottla.capture.connector import Connector
        from ottla.capture.sqlite import SqliteSource

        try:
            source = SqliteSource(self._path, _CONNECTOR, [table.name for table in TABLES])
            Connector(_CONNECTOR, source, CHANGES, TABLES, self._brokers).run(_logger.warning, self._stop)
        except Exception as failure:
            self.failure = failure
