"""Spark's own servers on loopback, from the installed PySpark: a standalone cluster of one master and one worker with
one core, and a Spark Connect server.

All are started by Spark's own `spark-class`, which puts Java in its own place: the process that is started here is the
server itself. Executors are processes of the worker's, and end with it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.peers.ports import LOOPBACK, free_port
from tests.peers.process import ServerProcess

_PACKAGE = "org.apache.spark.deploy"


class _Node(ServerProcess):
    """`ready` is what it prints when it can be used."""

    ready: str
    memory = "256m"

    def __init__(self, directory: Path, spark_home: Path, environment: Mapping[str, str]) -> None:
        super().__init__(directory, free_port())
        self._spark_home = spark_home
        self._environment = dict(environment)

    def prepare(self) -> None:
        self.data_directory.mkdir(exist_ok=True)

    def is_ready(self) -> bool:
        return self.ready in self.log_since_start()

    def environment(self) -> dict[str, str]:
        quick = {
            "SPARK_DAEMON_MEMORY": self.memory,
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }
        return {**self._environment, "SPARK_HOME": str(self._spark_home), **quick}

    def _spark_class(self, name: str, *arguments: str) -> list[str]:
        place = ("--host", LOOPBACK, "--port", str(self.port), "--webui-port", "0")
        return [str(self._spark_home / "bin" / "spark-class"), f"{_PACKAGE}.{name}", *place, *arguments]


class Master(_Node):
    name = "spark-master"
    ready = "New state: ALIVE"

    @property
    def url(self) -> str:
        return f"spark://{LOOPBACK}:{self.port}"

    def command(self) -> list[str]:
        return self._spark_class("master.Master")


class Worker(_Node):
    name = "spark-worker"
    ready = "Successfully registered with master"

    def __init__(self, directory: Path, spark_home: Path, environment: Mapping[str, str], master: Master) -> None:
        super().__init__(directory, spark_home, environment)
        self._master = master

    def command(self) -> list[str]:
        size = ("--cores", "1", "--memory", "1g", "--work-dir", str(self.data_directory))
        return self._spark_class("worker.Worker", *size, self._master.url)


class ConnectServer(_Node):
    """It is a driver, too: a session of its own, with `settings`."""

    name = "spark-connect"
    ready = "Spark Connect server started"
    memory = "512m"

    def __init__(
        self, directory: Path, spark_home: Path, environment: Mapping[str, str], settings: Mapping[str, str]
    ) -> None:
        super().__init__(directory, spark_home, environment)
        self._settings = dict(settings)

    @property
    def url(self) -> str:
        return f"sc://{LOOPBACK}:{self.port}"

    def command(self) -> list[str]:
        place = {"spark.connect.grpc.binding.address": LOOPBACK, "spark.connect.grpc.binding.port": str(self.port)}
        settings = [f"--conf={name}={value}" for name, value in (self._settings | place).items()]
        server = "org.apache.spark.sql.connect.service.SparkConnectServer"
        submit = [str(self._spark_home / "bin" / "spark-class"), f"{_PACKAGE}.SparkSubmit", "--master", "local[2]"]
        return [*submit, *settings, "--class", server, "spark-internal"]


@contextlib.contextmanager
def spark_cluster(directory: Path, spark_home: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """The URL of a cluster that runs as long as the block does."""
    with (
        Master(directory / "master", spark_home, environment) as master,
        Worker(directory / "worker", spark_home, environment, master),
    ):
        yield master.url
