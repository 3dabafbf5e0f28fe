"""One Apache Kafka broker (KRaft, broker and controller in one process) on loopback."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.peers.paths import KAFKA_LIBS, require_libs
from tests.peers.ports import LOOPBACK, brokers_known, free_port
from tests.peers.process import ServerFailed, ServerProcess

_NODE_ID = "1"
_CLUSTER_ID = "b3R0bGEtcGVlcnMta2Fma2"

# A broker that was killed is let in again once its old session is over: 9 s unless told otherwise. Only one that comes
# back is told so, since a broker that is slow for as long as its session is taken for dead.
_COMES_BACK = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "200"}

_LOG4J = """\
log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


class KafkaBroker(ServerProcess):
    """Apache Kafka from `.cache/peers`; `heap` is both -Xms and -Xmx, as the server is run for benchmarks.

    `short_lived` leaves out the compiler and the collector that pay only later: a broker of a test starts in half the
    processor time.
    """

    name = "kafka"

    def __init__(
        self,
        directory: Path,
        port: int | None = None,
        heap: str = "1g",
        properties: dict[str, str] | None = None,
        short_lived: bool = False,
    ) -> None:
        super().__init__(directory, port, properties)
        self.heap = heap
        lasting = ["-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]
        self._machine = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"] if short_lived else lasting
        self._controller_port: int | None = None
        self._libs = require_libs(KAFKA_LIBS, "kafka")

    @property
    def _properties_path(self) -> Path:
        return self.directory / "server.properties"

    def prepare(self) -> None:
        """Write the properties; format the data directory on the first start only."""
        self.port = self.port or free_port()
        self._controller_port = self._controller_port or free_port()
        node_id = self.properties.get("node.id", _NODE_ID)
        comes_back = self._properties_path.exists()
        settings = {
            "process.roles": "broker,controller",
            "node.id": node_id,
            "controller.quorum.voters": f"{node_id}@{LOOPBACK}:{self._controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{LOOPBACK}:{self.port},CONTROLLER://{LOOPBACK}:{self._controller_port}",
            "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{self.port}",
            "log.dirs": str(self.data_directory),
            "log.retention.ms": "-1",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "4",
            "group.initial.rebalance.delay.ms": "0",
        }
        settings |= (_COMES_BACK if comes_back else {}) | self.properties
        lines = [f"{key}={value}\n" for key, value in settings.items()]
        self._properties_path.write_text("".join(lines))
        (self.directory / "log4j.properties").write_text(_LOG4J)
        if not (self.data_directory / "meta.properties").exists():
            self._format()

    def command(self) -> list[str]:
        memory = [f"-Xmx{self.heap}", f"-Xms{self.heap}"]
        return self._java([*memory, *self._machine, "kafka.Kafka", str(self._properties_path)])

    def is_ready(self) -> bool:
        return self.port is not None and brokers_known(self.port) > 0

    def _format(self) -> None:
        arguments = ["kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(self._properties_path)]
        arguments += self._format_arguments()
        done = subprocess.run(self._java(["-XX:TieredStopAtLevel=1", *arguments]), capture_output=True, check=False)
        if done.returncode != 0:
            raise ServerFailed(f"formatting {self.data_directory} failed: {(done.stdout + done.stderr).decode()}")

    def _format_arguments(self) -> list[str]:
        """What else is written into a new data directory."""
        return []

    def _java(self, arguments: list[str]) -> list[str]:
        log4j = f"-Dlog4j.configuration=file:{self.directory / 'log4j.properties'}"
        return ["java", "-cp", f"{self._libs}/*", log4j, *arguments]
