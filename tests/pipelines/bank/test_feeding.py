"""The bank that is run on this machine, with the capture of its database."""

from __future__ import annotations

import threading
from collections import deque
from pathlib import Path

import pytest
from tests.capture.capturing import wait_for
from tests.peers.process import ServerProcess
from tests.pipelines.driving import records, renew_topics

from ottla import Admin
from ottla.capture.changes import CaptureError
from ottla.pipelines.bank.events import CHANGES
from ottla.pipelines.bank.feeding import run_bank
from ottla.pipelines.bank.job import PIPELINE
from ottla.pipelines.frame.place import Place

START_MS = 1_767_225_600_000


def test_what_is_written_is_captured_until_it_is_told_to_stop(broker: ServerProcess, tmp_path: Path) -> None:
    renew_topics(PIPELINE, broker.bootstrap)
    with Admin(broker.bootstrap) as admin:
        admin.delete_topics([f"{CHANGES}.positions"])
    stop = threading.Event()
    written = run_bank(Place(broker.bootstrap, tmp_path), stop, 1, START_MS, 1000.0)
    first = next(written)
    wait_for(lambda: first.after in [change["after"] for change in records(broker.bootstrap, CHANGES)])
    stop.set()
    deque(written, 0)


def test_a_capture_that_fails_is_not_passed_over(broker: ServerProcess, tmp_path: Path) -> None:
    with Admin(broker.bootstrap) as admin:
        admin.delete_topics([CHANGES])
    with pytest.raises(CaptureError, match=f"topic {CHANGES} does not exist"):
        deque(run_bank(Place(broker.bootstrap, tmp_path), threading.Event(), 1, START_MS, 20.0), 0)
