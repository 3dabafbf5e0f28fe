"""A pipeline as a job of its own: driver, executors and broker may be killed, on Spark clusters of several kinds."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.peers.paths import REPOSITORY
from tests.peers.ports import LOOPBACK, free_port
from tests.peers.process import ServerProcess
from tests.spark.conftest import QUICK_JVM, WORKERS_PYTHONPATH, workers_environment

from ottla.pipelines import submit
from ottla.pipelines.frame.place import Place

PATIENCE_SECONDS = 480.0
_EXECUTOR = b"CoarseGrainedExecutorBackend"
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.host": LOOPBACK,
    "spark.driver.extraJavaOptions": QUICK_JVM,
    "spark.driver.memory": "768m",
    "spark.executor.extraJavaOptions": QUICK_JVM,
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.executorEnv.PYTHONPATH": WORKERS_PYTHONPATH,
    "spark.sql.shuffle.partitions": "2",
}


def submitted(name: str, place: Place, master: str, home: Path, most_per_batch: int) -> list[str]:
    """By `spark-submit`."""
    command = [str(home / "bin" / "spark-submit"), "--master", master, *_settings(), submit.__file__]
    return [*command, name, "--most-per-batch", str(most_per_batch), *_to_the_end(place)]


def run_by_ottla(name: str, place: Place, master: str) -> list[str]:
    """By `ottla pipeline run`."""
    command = [sys.executable, "-m", "ottla", "pipeline", "run", name, "--master", master, "--json"]
    return [*command, *_settings(), *_to_the_end(place)]


def _settings() -> list[str]:
    return [part for setting in _SETTINGS.items() for part in ("--conf", "=".join(setting))]


def _to_the_end(place: Place) -> list[str]:
    return ["--once", "--bootstrap", place.bootstrap, "--data", str(place.data)]


class Job:
    """One life of the driver, to the end of what is there."""

    def __init__(self, name: str, place: Place, command: list[str], log_path: Path, home: Path) -> None:
        self.log_path = log_path
        self._checkpoints = Path(place.data) / "checkpoints" / name
        with log_path.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                cwd=REPOSITORY,
                env={**workers_environment(), "SPARK_HOME": str(home), "PYSPARK_DRIVER_PYTHON": sys.executable},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def commits(self) -> int:
        """Of all queries, also those of earlier lives."""
        return len([path for path in self._checkpoints.glob("*/commits/*") if path.name.isdigit()])

    @property
    def is_over(self) -> bool:
        return self._process.poll() is not None

    def wait_for_commits(self, count: int) -> None:
        ends_at = time.monotonic() + PATIENCE_SECONDS
        while self.commits < count and not self.is_over:
            assert time.monotonic() < ends_at, self.story()
            time.sleep(0.02)

    def wait(self) -> int:
        try:
            return self._process.wait(PATIENCE_SECONDS)
        finally:
            self.kill()

    def kill(self) -> None:
        """The driver, and with it all that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def kill_executor(self, choices: random.Random) -> None:
        """One of those that were started by this driver; none where it has none of its own."""
        executors = [pid for pid in _processes() if _is_executor(pid, self._process.pid)]
        if executors:
            with contextlib.suppress(ProcessLookupError):
                os.kill(choices.choice(sorted(executors)), signal.SIGKILL)

    def story(self) -> str:
        return self.log_path.read_text(errors="replace")[-6000:]


def _processes() -> Iterator[int]:
    return (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())


def _is_executor(pid: int, session: int) -> bool:
    try:
        return os.getsid(pid) == session and _EXECUTOR in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


class SparkMaster(ServerProcess):
    """The master of a standalone cluster."""

    name = "spark-master"

    def __init__(self, directory: Path, home: Path) -> None:
        super().__init__(directory, free_port())
        self._home = home

    @property
    def url(self) -> str:
        return f"spark://{self.bootstrap}"

    def prepare(self) -> None:
        """There is nothing to write down for it."""

    def is_ready(self) -> bool:
        return "New state: ALIVE" in self.log_tail()

    def command(self) -> list[str]:
        place = ["--host", LOOPBACK, "--port", str(self.port), "--webui-port", "0"]
        return [str(self._home / "bin" / "spark-class"), "org.apache.spark.deploy.master.Master", *place]

    def environment(self) -> dict[str, str]:
        return {**workers_environment(), "SPARK_HOME": str(self._home)}


class SparkWorker(SparkMaster):
    """One of its workers, with one core."""

    name = "spark-worker"

    def __init__(self, directory: Path, home: Path, master: SparkMaster) -> None:
        super().__init__(directory, home)
        self._master = master

    def is_ready(self) -> bool:
        return "Successfully registered with master" in self.log_tail()

    def command(self) -> list[str]:
        place = ["--host", LOOPBACK, "--port", str(self.port), "--webui-port", "0", "--cores", "1", "--memory", "768m"]
        work = ["--work-dir", str(self.directory / "work"), self._master.url]
        return [str(self._home / "bin" / "spark-class"), "org.apache.spark.deploy.worker.Worker", *place, *work]


@contextlib.contextmanager
def standalone_cluster(directory: Path, home: Path) -> Iterator[str]:
    """A master and two workers; the URL of the master."""
    with contextlib.ExitStack() as stack:
        master = SparkMaster(directory / "master", home).start()
        stack.callback(master.stop)
        for number in range(2):
            worker = SparkWorker(directory / f"worker-{number}", home, master).start()
            stack.callback(worker.stop)
        yield master.url
