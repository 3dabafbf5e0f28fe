"""The same requests to Apache Kafka and to Ottla: what Kafka's metrics say of them is what ours say."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.broker_thread import BrokerThread
from tests.peers.kafka import KafkaBroker
from tests.peers.paths import PeerMissing
from tests.peers.ports import LOOPBACK, free_port
from tests.unit.broker.api.questions import (
    FETCH_BY_NAME,
    batch,
    create_topic,
    fetch,
    fetch_request,
    new_producer_id,
    produce,
)
from tests.unit.broker.test_broker_metrics import difference, scrape, traffic
from tests.wire_client import WireClient

from ottla.protocol.messages.fetch import FetchResponse

TOPIC = "counted"
NAMES = {
    "messagesin": "MessagesIn",
    "bytesin": "BytesIn",
    "bytesout": "BytesOut",
    "totalproducerequests": "TotalProduceRequests",
    "failedproducerequests": "FailedProduceRequests",
    "totalfetchrequests": "TotalFetchRequests",
    "failedfetchrequests": "FailedFetchRequests",
}
TIMEOUT_SECONDS = 60.0


class WatchedKafka(KafkaBroker):
    """Apache Kafka with its JMX port open on loopback."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, heap="512m")
        self._jmx_port = free_port()

    def command(self) -> list[str]:
        options = {
            "com.sun.management.jmxremote.port": str(self._jmx_port),
            "com.sun.management.jmxremote.rmi.port": str(self._jmx_port),
            "com.sun.management.jmxremote.authenticate": "false",
            "com.sun.management.jmxremote.ssl": "false",
            "java.rmi.server.hostname": LOOPBACK,
        }
        program, *arguments = super().command()
        return [program, *(f"-D{name}={value}" for name, value in options.items()), *arguments]

    def counts(self) -> dict[str, float]:
        """Kafka makes a metric when it first counts something, so one that is not there is 0."""
        address = f"service:jmx:rmi:///jndi/rmi://{LOOPBACK}:{self._jmx_port}/jmxrmi"
        query = f"kafka.server:type=BrokerTopicMetrics,name=*,topic={TOPIC}"
        arguments = ["--one-time", "--report-format", "properties", "--attributes", "Count", "--jmx-url", address]
        done = subprocess.run(
            self._java(
                ["-XX:TieredStopAtLevel=1", "org.apache.kafka.tools.JmxTool", *arguments, "--object-name", query]
            ),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=True,
        )
        read = dict(line.rpartition("=")[::2] for line in done.stdout.splitlines() if ":Count=" in line)
        assert read, done.stdout + done.stderr
        return {
            ours: float(read.get(f"kafka.server:type=BrokerTopicMetrics,name={theirs}PerSec,topic={TOPIC}:Count", 0))
            for ours, theirs in NAMES.items()
        }


def ask(client: WireClient) -> None:
    """Good and bad requests, a duplicate and a wait among them."""
    produce(client, TOPIC, batch(b"a"))
    produce(client, TOPIC, batch(b"b", b"c", b"d"))
    fetch(client, TOPIC, 0)
    producer_id = new_producer_id(client)
    first = batch(b"x", producer_id=producer_id, producer_epoch=0, base_sequence=0)
    torn = bytearray(batch(b"y"))
    torn[-1] ^= 1
    late = batch(b"z", producer_id=producer_id, producer_epoch=0, base_sequence=7)
    for records in (first, first, bytes(torn), late):
        produce(client, TOPIC, records)
    produce(client, TOPIC, batch(b"a"), partition=5)
    fetch(client, TOPIC, 99)
    waits = fetch_request(TOPIC, 0, max_wait_ms=1, min_bytes=1 << 20)
    client.ask(waits, FetchResponse, FETCH_BY_NAME)


def counted(port: int, counts: Callable[[], dict[str, float]]) -> dict[str, float]:
    """What the questions add. Those that wait for the leader are as many as the broker needs."""
    with WireClient(port) as client:
        create_topic(client, TOPIC)
        before = counts()
        ask(client)
    return difference(counts(), before)


def test_both_count_the_same(tmp_path: Path) -> None:
    (tmp_path / "kafka").mkdir()
    try:
        peer = WatchedKafka(tmp_path / "kafka")
    except PeerMissing as missing:
        pytest.skip(str(missing))
    with peer as kafka:
        assert kafka.port is not None
        expected = counted(kafka.port, kafka.counts)
    with BrokerThread(tmp_path / "ottla", {"ottla.http.listeners": f"http://{LOOPBACK}:0"}) as ottla:
        assert counted(ottla.port, lambda: traffic(scrape(ottla.broker), topic=TOPIC)) == expected
    assert expected["messagesin"] == 6
    assert expected["failedproducerequests"] == 1
