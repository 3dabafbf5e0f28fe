"""The offline load of a large topic: killed when half of it is in the lake and started again, as a user would; and
beside Spark's connector, both in a warm session."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.peers.paths import CACHE, REPOSITORY
from tests.peers.process import ServerProcess

from bench.job import Figures, job_environment, run_job
from bench.peers import fresh_topic
from bench.plan import Bench, Step
from bench.rows import CONNECTOR, OFFLINE_LOAD, OTTLA
from bench.sections.libraries import fill
from bench.wire import RefusedError
from ottla.pipelines.ingestion.lake import Lake
from ottla.pipelines.ingestion.state import LakeState

PARTITIONS = 4
_MASTER = "local[2]"
_TOPIC, _SMALL_TOPIC = "offline-load", "offline-load-warm"
_SMALL_SHARE = 20
_PATIENCE_SECONDS = 300.0
_LOOK_SECONDS = 0.05


def steps(bench: Bench) -> list[Step]:
    return [Step("offline load of a large topic", "offline load", partial(measure, bench))]


def measure(bench: Bench) -> None:
    broker, records = bench.peers.get(OTTLA), bench.settings.lake_records
    with fresh_topic(broker, _TOPIC, PARTITIONS), fresh_topic(broker, _SMALL_TOPIC, PARTITIONS):
        topics = {_SMALL_TOPIC: records // _SMALL_SHARE, _TOPIC: records}
        for topic, count in topics.items():
            for partition in range(PARTITIONS):
                fill(broker.bootstrap, topic, count // PARTITIONS, "none", partition)
        killed = killed_load(broker, records)
        beside = run_job("lake", {"bootstrap": broker.bootstrap, "topics": topics})
    for part in ("before", "after"):
        bench.results.keep(f"pipelines.load.{part}", OTTLA, killed)
        bench.results.add(f"pipelines.load.{part}", OTTLA, killed[f"seconds_{part}"])
    for side, name in (("connector", CONNECTOR), ("load", OFFLINE_LOAD)):
        bench.results.keep("pipelines.load", name, beside[side])
        bench.results.add("pipelines.load", name, beside[side]["rate"])


def killed_load(broker: ServerProcess, records: int) -> Figures:
    """Seconds of both lives, each with the start of Spark; what the first one left is there still, and counted once."""
    with tempfile.TemporaryDirectory(prefix="bench-lake-", dir=CACHE, ignore_cleanup_errors=True) as directory:
        lake = Lake(Path(directory) / "lake")
        started = time.perf_counter()
        first = _start(broker, lake)
        try:
            _wait_for(lambda: _records_in(lake.state()) >= records // 2, first)
        finally:
            _kill(first)
        seconds_before, at_kill = time.perf_counter() - started, lake.state()
        started = time.perf_counter()
        second = _start(broker, lake)
        try:
            _wait_for(lambda: second.poll() is not None, second)
        finally:
            _kill(second)
        seconds_after, at_end = time.perf_counter() - started, lake.state()
        _check(lake, at_kill, at_end, records)
    return {
        "seconds_before": seconds_before,
        "seconds_after": seconds_after,
        "records_before": _records_in(at_kill),
        "records_after": records - _records_in(at_kill),
        "files": len(at_end.files),
        "bytes": sum(file.size for file in at_end.files.values()),
    }


def _start(broker: ServerProcess, lake: Lake) -> subprocess.Popen[bytes]:
    """With a session of its own: Spark's processes are killed with it."""
    command = [sys.executable, "-m", "ottla", "lake", "load", str(lake.directory), _TOPIC, "--master", _MASTER]
    return subprocess.Popen(
        [*command, "--bootstrap-server", broker.bootstrap],
        cwd=REPOSITORY,
        env=job_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _kill(process: subprocess.Popen[bytes]) -> None:
    """With everything that it has started. Spark's Python workers are in process groups of their own, and would finish
    the range that they are at."""
    process.kill()
    process.wait()
    while members := _session_members(process.pid):
        for member in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)
        time.sleep(_LOOK_SECONDS)


def _session_members(session: int) -> list[int]:
    """Those that still run."""
    found = []
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            state, _, _, its_session, *_ = Path(f"/proc/{int(entry)}/stat").read_text().rpartition(")")[2].split()
            if int(its_session) == session and state not in "ZX":
                found.append(int(entry))
    return found


def _wait_for(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    ends_at = time.monotonic() + _PATIENCE_SECONDS
    while not condition():
        if process.poll() is not None and process.returncode != 0:
            raise RefusedError(f"the load ended with code {process.returncode}")
        if time.monotonic() > ends_at:
            raise RefusedError(f"the load was not done after {_PATIENCE_SECONDS:.0f} s")
        time.sleep(_LOOK_SECONDS)


def _records_in(state: LakeState) -> int:
    return sum(file.rows for file in state.files.values())


def _check(lake: Lake, at_kill: LakeState, at_end: LakeState, records: int) -> None:
    """Every record is there once, and the second life wrote nothing that the first had published."""
    import numpy
    import pyarrow.parquet as pq

    if not at_kill.files.items() <= at_end.files.items():
        raise RefusedError("what was published before the kill was replaced after it")
    columns = ["partition", "offset"]
    tables = [pq.read_table(lake.directory / path, columns=columns, partitioning=None) for path in at_end.files]
    places = [(table["partition"].to_numpy().astype("int64") << 40) + table["offset"].to_numpy() for table in tables]
    found = numpy.concatenate(places)
    if len(found) != records or len(numpy.unique(found)) != records:
        raise RefusedError(f"expected {records} records once, the lake has {len(found)}")
