"""The offline load: killed in the middle, it goes on where it was, and does no range twice.

`OTTLA_SOAK=1` loads ten million records.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.pipelines.ingestion import reference
from tests.pipelines.ingestion.filling import brokers, fill
from tests.spark.conftest import Target, workers_environment

from ottla.pipelines.ingestion.lake import Lake
from ottla.pipelines.ingestion.loading import offsets_of, plan, run_tasks

_IS_SOAK = bool(os.environ.get("OTTLA_SOAK"))
_RECORDS = 10_000_000 if _IS_SOAK else 24_000
_RECORDS_A_TASK = 500_000 if _IS_SOAK else 1000
_KILLED_AFTER_TASKS = 8 if _IS_SOAK else 3
_PATIENCE_SECONDS = 120.0


@pytest.mark.timeout(1800 if _IS_SOAK else 240)
def test_a_load_that_was_killed_goes_on_where_it_was(pipeline_spark: Any, ottla_target: Target, tmp_path: Path) -> None:
    topic = ottla_target.topic(3)
    fill(ottla_target, topic, _RECORDS)
    lake = Lake(tmp_path / "lake")
    tasks = len(list(plan(brokers(ottla_target), [topic], lake.state(), _RECORDS_A_TASK)))
    _load_and_die(ottla_target, topic, lake, tmp_path / "load.log")
    done = lake.state()
    assert _KILLED_AFTER_TASKS <= done.version < tasks
    # A Python process of Spark's may outlive its driver by the range that it was at.
    left = list(plan(brokers(ottla_target), [topic], lake.state(), _RECORDS_A_TASK))
    assert 0 < len(left) <= tasks - done.version
    told: list[int] = []
    assert run_tasks(pipeline_spark, brokers(ottla_target), left, lake, told.append) == []
    assert sum(told) == offsets_of(left)
    assert done.files.items() <= lake.state().files.items()
    assert reference.has_many(ottla_target.bootstrap, topic, lake)
    assert not list(plan(brokers(ottla_target), [topic], lake.state()))


def _load_and_die(target: Target, topic: str, lake: Lake, log_path: Path) -> None:
    """A load in a process of its own, killed with its JVM after some tasks."""
    script = Path(__file__).with_name("loading_process.py")
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, str(script), target.bootstrap, topic, str(lake.directory), str(_RECORDS_A_TASK)],
            env=workers_environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        ends_at = time.monotonic() + _PATIENCE_SECONDS
        while lake.state().version < _KILLED_AFTER_TASKS:
            assert process.poll() is None, log_path.read_text()
            assert time.monotonic() < ends_at
            time.sleep(0.02)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
