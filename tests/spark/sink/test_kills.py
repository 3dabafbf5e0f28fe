"""Every input exactly once: a streaming job from topic to topic whose driver, executors and broker are killed.

Two kills, on Ottla; `OTTLA_SOAK=1` makes it twenty, on a Spark cluster with speculation, and on Apache Kafka too.
`OTTLA_SEED` repeats the choices of an earlier run.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import secrets
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import start_broker
from tests.peers.paths import REPOSITORY, PeerMissing
from tests.peers.process import ServerProcess
from tests.spark.conftest import PROPERTIES, SETTINGS, WORKERS_PYTHONPATH, Target
from tests.spark.sink.mortal import DRIVER_STEPS
from tests.spark.sink.writing import values

from ottla import Admin, Producer
from ottla.spark.home import quick_spark_home

pytest.importorskip("pyspark.sql", reason="pyspark is not installed")

_IS_SOAK = bool(os.environ.get("OTTLA_SOAK"))
_KILLS = 20 if _IS_SOAK else 2
_PARTITIONS = 3
_ROWS_PER_BATCH = 60
_BATCHES_PER_KILL = 3 if _IS_SOAK else 2
_RUN_SECONDS = 180.0

# The first ones; the rest of a long run is chosen at random.
_FIRST_VICTIMS = ("between two ends", "broker")
_VICTIMS = (*DRIVER_STEPS, "task", "executor", "broker", "driver at any time")
_STAGED = ("between two ends", "after the last end", "at the end", "task", "executor")
_CLUSTER = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.4",
}


class Job:
    """One life of the driver."""

    def __init__(self, directory: Path, spark_home: Path, description: dict[str, Any]) -> None:
        self.directory = directory
        self.log_path = directory / "driver.log"
        places = {"SPARK_HOME": str(spark_home), "PYTHONPATH": WORKERS_PYTHONPATH, "PYSPARK_PYTHON": sys.executable}
        with self.log_path.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.spark.sink.mortal", json.dumps(description)],
                cwd=REPOSITORY,
                env={**os.environ, **places},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def commits(self) -> int:
        return len(list(self.directory.glob("commit-*")))

    @property
    def died(self) -> bool:
        return (self.directory / "died").exists()

    def wait_for_commits(self, count: int) -> bool:
        """Whether it came that far before it ended."""
        ends_at = time.monotonic() + _RUN_SECONDS
        while self.commits < count and self._process.poll() is None:
            assert time.monotonic() < ends_at, self.story()
            time.sleep(0.02)
        return self.commits >= count

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def wait(self) -> int:
        try:
            return self._process.wait(_RUN_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            pytest.fail(self.story())

    def story(self) -> str:
        return self.log_path.read_text(errors="replace")[-6000:]


class Lives:
    """The job from its first driver to the last, with the same checkpoint and ever another number of tasks."""

    def __init__(self, target: Target, directory: Path, choices: random.Random) -> None:
        self.target = target
        self.choices = choices
        self.source, self.sink = target.topic(_PARTITIONS), target.topic(_PARTITIONS)
        self._directory = directory
        self._home = quick_spark_home(directory / "spark")
        self._count = 0

    def start(self, step: str = "") -> Job:
        self._count += 1
        directory = self._directory / f"life-{self._count}"
        directory.mkdir()
        description = {
            "master": "local-cluster[2,1,1024]" if _IS_SOAK else "local[2,4]",
            "spark": {
                **SETTINGS,
                "spark.driver.memory": "512m",
                "spark.executor.memory": "512m",
                **(_CLUSTER if _IS_SOAK else {}),
            },
            "bootstrap": self.target.bootstrap,
            "source": self.source,
            "sink": self.sink,
            "checkpoint": str(self._directory / "checkpoint"),
            "rows_per_batch": _ROWS_PER_BATCH,
            "tasks": _PARTITIONS + self._count % 3,
            # Most steps are those of tasks that stage their rows; else either way, in turns.
            "hand_over_bytes": 0 if step in _STAGED else 65_536 * (self._count % 2),
            "fate": {"step": step, "commits": self.choices.randint(1, 2), "directory": str(directory)},
        }
        return Job(directory, self._home, description)

    def suffer(self, victim: str, server: ServerProcess) -> bool:
        """One life that ends by a kill, or goes on after one: whether it survived, and came to the end of the input."""
        job = self.start(victim)
        try:
            if victim in DRIVER_STEPS:
                assert job.wait() != 0, job.story()
                assert job.died, job.story()
                return False
            assert job.wait_for_commits(1), job.story()
            if victim == "driver at any time":
                time.sleep(self.choices.uniform(0.0, 1.0))
                return False
            if victim == "broker":
                server.kill()
                server.start()
                return job.wait() == 0
            code = job.wait()
            assert job.died, job.story()
            return code == 0
        finally:
            job.kill()

    def finish(self) -> None:
        job = self.start()
        assert job.wait() == 0, job.story()


@pytest.fixture(params=["ottla", "kafka"] if _IS_SOAK else ["ottla"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServerProcess]:
    """A broker that may be killed."""
    try:
        server = start_broker(request.param, tmp_path / "broker", properties=PROPERTIES)
    except PeerMissing as missing:
        pytest.skip(str(missing))
    yield server
    server.stop()


@pytest.mark.timeout(300 + 120 * _KILLS)
def test_every_input_comes_out_once(server: ServerProcess, tmp_path: Path) -> None:
    seed = int(os.environ.get("OTTLA_SEED") or secrets.randbelow(1 << 32))
    sys.stdout.write(f"OTTLA_SEED={seed}\n")
    choices = random.Random(f"{seed} {server.name}")
    victims = [*_FIRST_VICTIMS, *choices.choices(_VICTIMS, k=_KILLS)][:_KILLS]
    with Admin(server.bootstrap) as admin:
        lives = Lives(Target(server.name, server, admin), tmp_path, choices)
        count = 0
        is_done = False
        for victim in victims:
            count += feed(lives, count)
            is_done = lives.suffer(victim, server)
        if not is_done:
            lives.finish()
        found = Counter(values(lives.target, lives.sink, _PARTITIONS))
        expected = {b"%06d" % number for number in range(count)}
        assert {value: times for value, times in found.items() if times > 1} == {}
        assert set(found) == expected


def feed(lives: Lives, first: int) -> int:
    """Enough for some batches more; how many."""
    count = _ROWS_PER_BATCH * _BATCHES_PER_KILL
    with Producer(lives.target.bootstrap) as producer:
        for number in range(first, first + count):
            producer.send(lives.source, b"%06d" % number, key=b"%d" % (number % 50))
    return count
