"""Spark, Ottla and Apache Kafka for the tests of `ottla.spark`: one of each for all of them, since each takes seconds.

`target` is a broker of one kind and then of the other; a test that takes it runs on both. Spark's own Kafka connector
is in the session, too: the same topic read by both has to give the same rows.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import start_broker
from tests.peers.paths import NEWER_PYSPARK, REPOSITORY, SPARK_CONNECTOR_LIBS, SPARK_VERSION, PeerMissing, require_libs
from tests.peers.process import ServerProcess

from ottla import Admin
from ottla.client.admin import NewTopic

PROPERTIES = {
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "log.cleaner.backoff.ms": "100",
}

_topic_numbers = itertools.count(1)

# Spark's JVM keeps the environment that it was started with, whichever test was first to start it.
WORKERS_PYTHONPATH = os.pathsep.join(
    [str(REPOSITORY / "src"), str(REPOSITORY)] + ([str(NEWER_PYSPARK)] if str(NEWER_PYSPARK) in sys.path else [])
)
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

# What every session of a test has. Its JVM lives too briefly for the compiler and the collector that pay only later.
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": QUICK_JVM,
    "spark.executor.extraJavaOptions": QUICK_JVM,
    "spark.executorEnv.PYTHONPATH": WORKERS_PYTHONPATH,
    "spark.sql.shuffle.partitions": "1",
}


@dataclass(frozen=True)
class Target:
    """A broker of one kind or the other, and what tests ask of it."""

    kind: str
    server: ServerProcess
    admin: Admin

    @property
    def bootstrap(self) -> str:
        return self.server.bootstrap

    def topic(self, partitions: int = 1, **configs: str) -> str:
        """A new topic of a name that no other has; `cleanup_policy="compact"` sets `cleanup.policy`."""
        name = f"spark-{next(_topic_numbers)}"
        dotted = {key.replace("_", "."): value for key, value in configs.items()}
        self.admin.create_topics([NewTopic(name, partitions, configs=dotted)]).raise_for_errors()
        return name


def require_connector(name: str) -> None:
    """Skip a test that uses the format `kafka`, where this Spark has no connector of its own."""
    import pyspark

    if name == "kafka" and pyspark.__version__ != SPARK_VERSION:
        pytest.skip(f"Spark's own connector is not published for {pyspark.__version__}")


def workers_environment() -> dict[str, str]:
    """For a driver in a process of its own: this interpreter, and the sources of this tree, for it and its workers."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))},
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": WORKERS_PYTHONPATH,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def run_script(script: str, job: Mapping[str, Any], environment: Mapping[str, str], directory: Path) -> str:
    """A driver in a process of its own, which must end well; `job` is its argument, as JSON. What it printed."""
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps(job)],
        env=environment,
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


class _Session:
    """The one session of this process, made again where a test elsewhere has stopped it."""

    def __init__(self, jars: list[str], warehouse: str) -> None:
        self._settings = {
            **SETTINGS,
            **({"spark.jars": ",".join(jars)} if jars else {}),
            "spark.driver.memory": "1g",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.warehouse.dir": warehouse,
        }
        self._spark: Any = None

    def alive(self) -> Any:
        from pyspark.sql import SparkSession

        from ottla.spark import register

        if self._spark is None or self._spark.sparkContext._jsc is None:
            builder = SparkSession.builder.master("local[2]").appName("ottla-spark")
            for name, value in self._settings.items():
                builder = builder.config(name, value)
            with pytest.MonkeyPatch.context() as patch:
                # Spark's own look for data sources goes by the environment of its JVM.
                patch.setenv("PYTHONPATH", WORKERS_PYTHONPATH)
                self._spark = builder.getOrCreate()
            self._spark.sparkContext.setLogLevel("OFF")
            register(self._spark)
        return self._spark

    def stop(self) -> None:
        if self._spark is not None and self._spark.sparkContext._jsc is not None:
            self._spark.stop()


@pytest.fixture(scope="session")
def spark_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One whose Python processes start fast; the session is started with it, or with the one that is set already."""
    pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    from ottla.spark.home import quick_spark_home

    return quick_spark_home(tmp_path_factory.mktemp("spark-home"))


@pytest.fixture(scope="session")
def _session(spark_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Session]:
    import pyspark

    jars: list[str] = []
    if pyspark.__version__ == SPARK_VERSION:
        try:
            jars = sorted(map(str, require_libs(SPARK_CONNECTOR_LIBS, "spark-connector").glob("*.jar")))
        except PeerMissing as missing:
            pytest.skip(str(missing))
    os.environ.setdefault("SPARK_HOME", str(spark_home))
    session = _Session(jars, str(tmp_path_factory.mktemp("warehouse")))
    yield session
    session.stop()


@pytest.fixture
def spark(_session: _Session) -> Any:
    """A session with `format("ottla")` registered, and with Spark's Kafka connector (`require_connector`)."""
    return _session.alive()


def _started(kind: str, factory: pytest.TempPathFactory) -> Iterator[Target]:
    try:
        server = start_broker(kind, factory.mktemp(f"spark-{kind}"), properties=PROPERTIES)
    except PeerMissing as missing:
        pytest.skip(str(missing))
    with Admin(server.bootstrap) as admin:
        yield Target(kind, server, admin)
    server.stop()


@pytest.fixture(scope="session")
def ottla_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    yield from _started("ottla", tmp_path_factory)


@pytest.fixture(scope="session")
def kafka_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    yield from _started("kafka", tmp_path_factory)


@pytest.fixture(params=["ottla", "kafka"])
def target(request: pytest.FixtureRequest) -> Target:
    """Either broker; started when the first test needs it."""
    found: Target = request.getfixturevalue(f"{request.param}_target")
    return found
