"""Pipelines wherever they run, and whatever is killed: the answers stay those of the references.

Each form once here, with some pipeline; `OTTLA_SOAK=1` has all pipelines in all forms, and kills ten times for each.
`OTTLA_SEED` repeats the choices of an earlier run.
"""

from __future__ import annotations

import os
import random
import secrets
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import start_broker
from tests.peers.process import ServerProcess
from tests.pipelines.cases import Case, case
from tests.pipelines.driving import Drive, Run, renew_topics, send_all, some_events
from tests.pipelines.lives import Job, run_by_ottla, standalone_cluster, submitted
from tests.spark.conftest import PROPERTIES, Target

from ottla.pipelines.frame import catalogue
from ottla.pipelines.frame.place import Place
from ottla.spark.home import quick_spark_home

pytest.importorskip("pyspark.sql", reason="pyspark is not installed")

_IS_SOAK = bool(os.environ.get("OTTLA_SOAK"))
_EVENTS = 3000 if _IS_SOAK else 1200
_EVENTS_A_SECOND = 2.0 if _IS_SOAK else 0.5
_BATCHES = 6 if _IS_SOAK else 2
_KILLS = 10 if _IS_SOAK else 2
_BESIDE_THE_DRIVER = ("executor", "broker")
_MOST_LIVES = 3

_LOCAL_CLUSTER = "local-cluster[2,1,1024]"


def _victims(choices: random.Random) -> list[str]:
    """The driver at least once; of the others each, where there is room for both."""
    others = choices.sample(_BESIDE_THE_DRIVER, k=2)
    victims = ["driver", *others, *choices.choices(["driver", *others], k=_KILLS)][:_KILLS]
    choices.shuffle(victims)
    return victims


def _names(one: str) -> list[str]:
    return catalogue.names() if _IS_SOAK else [one]


class Lives:
    """A pipeline from its first driver to the last, on one broker."""

    def __init__(self, one: Case, server: ServerProcess, directory: Path) -> None:
        self._case = one
        self._server = server
        self._home = quick_spark_home(directory / "spark")
        self._directory = directory
        self._place = Place(server.bootstrap, directory / "data")
        self._events = some_events(one.pipeline, _EVENTS, rate=_EVENTS_A_SECOND)
        self._count = 0
        renew_topics(one.pipeline, server.bootstrap)
        send_all(self._events, server.bootstrap)

    def start(self) -> Job:
        """On executors of its own."""
        name, most_per_batch = self._case.pipeline.name, len(self._events) // _BATCHES
        return self._start(submitted(name, self._place, _LOCAL_CLUSTER, self._home, most_per_batch))

    def _start(self, command: list[str]) -> Job:
        self._count += 1
        log = self._directory / f"life-{self._count}.log"
        return Job(self._case.pipeline.name, self._place, command, log, self._home)

    def suffer(self, victims: list[str], choices: random.Random) -> None:
        """Kill one after the other, some commits and a random while apart, so that each query has its share; a driver
        that dies has a successor."""
        pace = max(len(self._case.pipeline.queries) * _BATCHES // len(victims), 1)
        job = self.start()
        try:
            for victim in victims:
                if job.is_over:
                    job = self.start()
                job.wait_for_commits(job.commits + choices.randint(1, 2 * pace - 1))
                time.sleep(choices.uniform(0.0, 1.0))
                if victim == "executor":
                    job.kill_executor(choices)
                elif victim == "broker":
                    self._server.kill()
                    self._server.start()
                else:
                    job.kill()
        finally:
            job.kill()

    def finish(self) -> None:
        """To the end; a driver may give up for what was killed before it."""
        for _ in range(_MOST_LIVES):
            job = self.start()
            if job.wait() == 0:
                break
        else:
            pytest.fail(job.story())
        self._verify()

    def run_on(self, master: str) -> None:
        job = self._start(run_by_ottla(self._case.pipeline.name, self._place, master))
        assert job.wait() == 0, job.story()
        self._verify()

    def _verify(self) -> None:
        self._case.verify(Run(self._case.pipeline, self._place), self._events)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A broker that may be killed."""
    server = start_broker("ottla", tmp_path / "broker", properties=PROPERTIES)
    yield server
    server.stop()


@pytest.mark.parametrize("name", _names("campaign"))
@pytest.mark.timeout(300 + 120 * _KILLS)
def test_driver_executors_and_broker_are_killed(name: str, server: ServerProcess, tmp_path: Path) -> None:
    seed = int(os.environ.get("OTTLA_SEED") or secrets.randbelow(1 << 32))
    sys.stdout.write(f"OTTLA_SEED={seed}\n")
    choices = random.Random(f"{seed} {name}")
    lives = Lives(case(name), server, tmp_path)
    lives.suffer(_victims(choices), choices)
    lives.finish()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The master of a standalone cluster of two workers."""
    home = quick_spark_home(tmp_path_factory.mktemp("cluster-home"))
    with standalone_cluster(tmp_path_factory.mktemp("cluster"), home) as master:
        yield master


@pytest.mark.parametrize("name", _names("ingestion"))
@pytest.mark.timeout(420)
def test_on_a_standalone_cluster_of_two_workers(name: str, cluster: str, server: ServerProcess, tmp_path: Path) -> None:
    Lives(case(name), server, tmp_path).run_on(cluster)


_BOTH = (("kafka", "ottla"), ("ottla", "kafka"), ("kafka", "kafka"))
# In short: one with Spark's own source here, and one on Apache Kafka in `test_secured`.
_SOURCES = [("mybank", "ottla", "kafka")]
if _IS_SOAK:
    _SOURCES = [(name, *both) for name in catalogue.names() for both in _BOTH]


@pytest.mark.parametrize(("name", "broker", "source"), _SOURCES)
@pytest.mark.timeout(300)
def test_on_apache_kafka_and_with_spark_s_own_source(
    name: str, broker: str, source: str, pipeline_spark: Any, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    target: Target = request.getfixturevalue(f"{broker}_target")
    one = case(name)
    events = some_events(one.pipeline, _EVENTS, rate=_EVENTS_A_SECOND)
    drive = Drive(pipeline_spark, target.bootstrap, tmp_path, source=source)
    one.verify(drive.at_once(one.pipeline, events), events)
