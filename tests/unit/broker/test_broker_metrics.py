"""A broker that is watched: what happens to it is what its metrics say, to the last byte."""

import asyncio
import http.client
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from tests.broker_thread import BrokerThread
from tests.unit.broker.api.questions import (
    FETCH_BY_NAME,
    PATIENCE_MS,
    PRODUCE_BY_NAME,
    batch,
    create_topic,
    fetch,
    fetch_request,
    new_producer_id,
    only_partition,
    produce,
    values,
)
from tests.unit.broker.exposition import Exposition
from tests.unit.broker.serving import until
from tests.wire_client import WireClient

from ottla.broker.broker import Broker
from ottla.broker.config import BrokerConfig
from ottla.broker.metrics import FAMILIES, PARTITIONS, BrokerMetrics
from ottla.cluster.image import BrokerRegistration, ClusterImage
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from ottla.protocol.messages.fetch import FetchResponse
from ottla.runtime.real_disk import RealDisk

HTTP = {"ottla.http.listeners": "http://127.0.0.1:0"}
TIMEOUT_SECONDS = 60.0
TRAFFIC = ("messagesin", "bytesin", "bytesout", "totalproducerequests", "totalfetchrequests")


def get(broker: Broker, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", broker.http_endpoints[0].port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def scrape(broker: Broker) -> Exposition:
    status, text = get(broker, "/metrics")
    assert status == 200, text
    return Exposition(text)


def scrape_until(broker: Broker, condition: Callable[[Exposition], bool]) -> Exposition:
    for _ in range(10_000):
        shown = scrape(broker)
        if condition(shown):
            return shown
    raise AssertionError("the metrics never came to show it")


def traffic(shown: Exposition, **labels: str) -> dict[str, float]:
    names = (*TRAFFIC, "failedproducerequests", "failedfetchrequests")
    return {name: shown.value(f"kafka_server_brokertopicmetrics_{name}_total", **labels) for name in names}


def difference(after: dict[str, float], before: dict[str, float]) -> dict[str, float]:
    return {name: after[name] - before[name] for name in after}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with BrokerThread(tmp_path_factory.mktemp("watched"), HTTP) as thread:
        yield thread.broker


@pytest.fixture
def client(running: Broker) -> Iterator[WireClient]:
    with WireClient(running.endpoints[0].port) as connected:
        yield connected


def test_what_is_produced_and_fetched_is_counted_exactly(running: Broker, client: WireClient, topic: str) -> None:
    create_topic(client, topic, 2)
    before = scrape(running)
    one, three = batch(b"a"), batch(b"b", b"c", b"d")
    produce(client, topic, one)
    produce(client, topic, three, partition=1)
    produce(client, topic, three, partition=1, acks=1)
    assert values(fetch(client, topic, 0, partition=1)) == [b"b", b"c", b"d"] * 2
    after = scrape(running)
    expected = {
        "messagesin": 7,
        "bytesin": len(one) + 2 * len(three),
        "bytesout": 2 * len(three),
        "totalproducerequests": 3,
        "totalfetchrequests": 1,
        "failedproducerequests": 0,
        "failedfetchrequests": 0,
    }
    assert difference(traffic(after, topic=topic), traffic(before, topic=topic)) == expected
    assert difference(traffic(after), traffic(before)) == expected

    def place(name: str, partition: int) -> float:
        return after.value(f"kafka_log_log_{name}", topic=topic, partition=str(partition))

    assert [place("logendoffset", index) for index in range(2)] == [1, 6]
    assert [place("logstartoffset", index) for index in range(2)] == [0, 0]
    assert [place("size", index) for index in range(2)] == [len(one), 2 * len(three)]
    assert [place("numlogsegments", index) for index in range(2)] == [1, 1]


def test_requests_are_counted_by_version_and_timed(running: Broker, client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    before = scrape(running)
    for version in (PRODUCE_BY_NAME, PRODUCE_BY_NAME, 9):
        produce(client, topic, batch(b"x"), version=version)
    after = scrape(running)

    def moved(name: str, **labels: str) -> float:
        full = f"kafka_network_requestmetrics_{name}"
        return after.value(full, **labels) - before.value(full, **labels)

    assert moved("requests_total", request="Produce", version=str(PRODUCE_BY_NAME)) == 2
    assert moved("requests_total", request="Produce", version="9") == 1
    assert moved("requests_total", request="Fetch", version=str(FETCH_BY_NAME)) == 0
    assert moved("totaltimems_count", request="Produce") == 3
    assert moved("totaltimems_sum", request="Produce") > 0


def test_errors_are_counted_and_only_unexpected_ones_are_failures(
    running: Broker, client: WireClient, topic: str
) -> None:
    create_topic(client, topic)
    producer_id = new_producer_id(client)
    before = scrape(running)
    torn = bytearray(batch(b"x"))
    torn[-1] ^= 1
    gap = batch(b"x", producer_id=producer_id, producer_epoch=0, base_sequence=0)
    assert produce(client, topic, bytes(torn)).error_code == ErrorCode.CORRUPT_MESSAGE
    assert produce(client, topic, gap).error_code == ErrorCode.NONE
    late = batch(b"x", producer_id=producer_id, producer_epoch=0, base_sequence=7)
    assert produce(client, topic, late).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(client, "unknown", batch(b"x")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert fetch(client, topic, 99).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    after = scrape(running)
    moved = difference(traffic(after), traffic(before))
    assert (moved["totalproducerequests"], moved["failedproducerequests"], moved["messagesin"]) == (3, 1, 1)
    assert (moved["totalfetchrequests"], moved["failedfetchrequests"]) == (1, 0)
    for request, error in (
        ("Produce", "CORRUPT_MESSAGE"),
        ("Produce", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        ("Produce", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("Fetch", "OFFSET_OUT_OF_RANGE"),
    ):
        name = "kafka_network_requestmetrics_errors_total"
        assert after.value(name, request=request, error=error) == 1 + before.value(name, request=request, error=error)


def test_a_fetch_that_waits_is_seen_and_its_bytes_count_once(running: Broker, client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    first, second = batch(b"1"), batch(b"2")
    produce(client, topic, first)
    before = traffic(scrape(running), topic=topic)["totalfetchrequests"]
    waiting = fetch_request(topic, 0, max_wait_ms=PATIENCE_MS, min_bytes=len(first) + 1)
    purgatory = "kafka_server_delayedoperationpurgatory_purgatorysize"
    with WireClient(running.endpoints[0].port) as consumer:
        consumer.send(waiting, FETCH_BY_NAME)
        scrape_until(running, lambda shown: shown.value(purgatory, delayedOperation="Fetch") == 1)
        assert traffic(scrape(running), topic=topic)["bytesout"] == 0
        produce(client, topic, second)
        answer = only_partition(consumer.receive(waiting, FetchResponse, FETCH_BY_NAME))
        assert values(answer) == [b"1", b"2"]
    after = scrape(running)
    assert after.value(purgatory, delayedOperation="Fetch") == 0
    assert traffic(after, topic=topic)["bytesout"] == len(first) + len(second)
    assert traffic(after, topic=topic)["totalfetchrequests"] == before + 1


def test_batches_that_wait_for_a_roll_count_as_well(running: Broker, client: WireClient, topic: str) -> None:
    create_topic(client, topic, configs={"segment.bytes": "1048576"})
    large = batch(b"x" * 700_000)
    for _ in range(3):
        assert produce(client, topic, large).error_code == ErrorCode.NONE
    after = scrape(running)
    assert after.value("kafka_log_log_numlogsegments", topic=topic, partition="0") == 3
    counted = traffic(after, topic=topic)
    assert (counted["messagesin"], counted["bytesin"], counted["totalproducerequests"]) == (3, 3 * len(large), 3)


def test_a_deleted_topic_leaves_but_the_sums_stay(running: Broker, client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    produce(client, topic, batch(b"x", b"y"))
    before = scrape(running)
    gone = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=PATIENCE_MS)
    (result,) = client.ask(gone, DeleteTopicsResponse).responses
    assert result.error_code == ErrorCode.NONE
    name = "kafka_server_brokertopicmetrics_messagesin_total"
    after = scrape_until(running, lambda shown: (("topic", topic),) not in shown.labels(name))
    assert after.value(name) == before.value(name)
    assert not any(("topic", topic) in labels for labels in after.labels("kafka_log_log_size"))


def test_flushes_are_counted_and_timed(running: Broker, client: WireClient, topic: str) -> None:
    create_topic(client, topic, configs={"flush.messages": "1"})
    name = "kafka_log_logflushstats_logflushrateandtimems"
    before = scrape(running)
    for value in (b"1", b"2"):
        produce(client, topic, batch(value))
    after = scrape(running)
    assert after.value(f"{name}_count") >= before.value(f"{name}_count") + 2
    assert after.value(f"{name}_sum") > before.value(f"{name}_sum")


def test_connections_and_roles(running: Broker, client: WireClient, topic: str) -> None:
    create_topic(client, topic, 3)
    before = scrape(running)
    opened = "kafka_server_socket_server_metrics_connection_creation_total"
    with WireClient(running.endpoints[0].port) as second:
        fetch(second, topic, 0)
        after = scrape(running)
    assert after.value(opened, listener="PLAINTEXT") == 1 + before.value(opened, listener="PLAINTEXT")
    assert after.value("kafka_server_socket_server_metrics_connection_count", listener="PLAINTEXT") >= 2
    partitions = after.value("kafka_server_replicamanager_partitioncount")
    assert partitions >= 3
    assert after.value("kafka_server_replicamanager_leadercount") == partitions
    assert after.value("kafka_server_replicamanager_underreplicatedpartitions") == 0
    assert after.value("kafka_server_replicamanager_underminisrpartitioncount") == 0
    assert after.value("kafka_server_replicamanager_offlinereplicacount") == 0
    assert after.value("kafka_controller_kafkacontroller_activecontrollercount") == 1
    assert after.value("kafka_controller_kafkacontroller_globalpartitioncount") == partitions
    assert after.value("kafka_controller_kafkacontroller_offlinepartitionscount") == 0
    assert after.value("ottla_image_applied_version") == after.value("ottla_image_version")


def test_the_process_is_described(running: Broker) -> None:
    shown = scrape(running)
    assert shown.value("process_cpu_seconds_total") > 0
    assert shown.value("process_resident_memory_bytes") > 1_000_000
    assert shown.value("process_open_fds") > 3
    assert shown.value("process_start_time_seconds") > 1_600_000_000
    assert {dict(labels)["generation"] for labels in shown.labels("python_gc_collections_total")} == {"0", "1", "2"}


def test_every_metric_is_there_with_the_labels_it_declares(running: Broker, client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    shown = scrape(running)
    assert {name: series.kind for name, series in shown.families.items()} == {
        family.name: family.kind for family in FAMILIES
    }
    for family in FAMILIES:
        for labels in shown.labels(family.name):
            names = {name for name, _ in labels} - {"le"}
            assert names in (set(family.labels), set()), family.name


def test_series_of_partitions_can_be_turned_off(tmp_path: Path, topic: str) -> None:
    with BrokerThread(tmp_path, {**HTTP, "ottla.metrics.partitions": "false"}) as thread:
        with WireClient(thread.port) as client:
            create_topic(client, topic, 5)
            produce(client, topic, batch(b"x"))
        shown = scrape(thread.broker)
        assert {family.name for family, _ in PARTITIONS}.isdisjoint(shown.families)
        assert traffic(shown, topic=topic)["messagesin"] == 1
        for series in shown.families.values():
            assert not any("partition" in dict(labels) for _, labels in series.samples)


def test_a_broker_that_serves_is_healthy_and_ready(running: Broker) -> None:
    assert get(running, "/healthz") == (200, "ok\n")
    assert get(running, "/readyz") == (200, "ready\n")
    assert get(running, "/")[0] == 404


def test_a_broker_without_a_usable_directory_is_not_ready(tmp_path: Path, topic: str) -> None:
    with BrokerThread(tmp_path, HTTP) as thread:
        with WireClient(thread.port) as client:
            create_topic(client, topic, 2)
        (directory,) = thread.broker._logs.directories
        thread.call(directory.fail, OSError("the device does not answer"))
        assert get(thread.broker, "/readyz") == (503, "not ready: every log directory has failed\n")
        assert get(thread.broker, "/healthz")[0] == 200
        shown = scrape(thread.broker)
        assert shown.value("kafka_log_logmanager_offlinelogdirectorycount") == 1
        assert shown.value("kafka_server_replicamanager_offlinereplicacount") == 2


@pytest.mark.parametrize(
    ("brokers", "reason"),
    [
        ({}, "not registered in the cluster"),
        ({1: BrokerRegistration(1, (), None, 5, b"", is_fenced=True)}, "the controller has not admitted this broker"),
    ],
)
def test_a_broker_that_is_out_of_its_cluster_is_not_ready(
    running: Broker, monkeypatch: pytest.MonkeyPatch, brokers: dict[int, BrokerRegistration], reason: str
) -> None:
    monkeypatch.setattr(Broker, "image", ClusterImage(brokers=brokers))
    assert get(running, "/readyz") == (503, f"not ready: {reason}\n")


class HoldingDisk(RealDisk):
    """Reads no checkpoints, and so loads no logs, until it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_load = threading.Event()

    def read(self, path: str) -> bytes:
        assert "checkpoint" not in path or self.may_load.wait(TIMEOUT_SECONDS)
        return super().read(path)


def settings(directory: Path, **more: str) -> BrokerConfig:
    return BrokerConfig.from_properties(
        {"log.dirs": str(directory), "listeners": "PLAINTEXT://127.0.0.1:0", **HTTP, **more}
    )


def test_a_broker_that_loads_or_ends_says_so(tmp_path: Path) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        disk = HoldingDisk()
        broker = Broker(settings(tmp_path), disk=disk)
        starting = asyncio.create_task(broker.start())
        await until(lambda: bool(broker.http_endpoints) and broker.busy_with == "loading the logs")
        assert await loop.run_in_executor(None, get, broker, "/readyz") == (503, "not ready: loading the logs\n")
        assert await loop.run_in_executor(None, get, broker, "/metrics") == (503, "no metrics yet: loading the logs\n")
        assert (await loop.run_in_executor(None, get, broker, "/healthz"))[0] == 200
        disk.may_load.set()
        await starting
        assert (await loop.run_in_executor(None, get, broker, "/readyz"))[0] == 200
        broker.busy_with = "shutting down"
        assert await loop.run_in_executor(None, get, broker, "/readyz") == (503, "not ready: shutting down\n")
        await broker.shutdown()
        with pytest.raises(ConnectionRefusedError):
            await loop.run_in_executor(None, get, broker, "/healthz")

    asyncio.run(scenario())


def test_the_loop_turns_while_a_scrape_is_written(tmp_path: Path) -> None:
    """With a clock by which every piece of text takes half a millisecond."""

    async def scenario() -> None:
        broker = Broker(settings(tmp_path, **{"num.partitions": "200"}))
        await broker.start()
        await broker.create_missing_topics(["many"])
        metrics = broker._watching._metrics if broker._watching is not None else None
        assert isinstance(metrics, BrokerMetrics)
        now = 0.0
        turns: list[float] = []

        def tick() -> float:
            nonlocal now
            now += 0.0005
            return now

        def turn() -> None:
            turns.append(now)
            if not rendering.done():
                asyncio.get_running_loop().call_soon(turn)

        metrics._clock = tick
        rendering = asyncio.create_task(metrics.render())
        asyncio.get_running_loop().call_soon(turn)
        shown = Exposition((await rendering).decode())
        assert len(shown.labels("kafka_log_log_size")) == 200
        longest = max(later - earlier for earlier, later in pairwise(turns))
        assert longest < 0.01
        await broker.shutdown()

    asyncio.run(scenario())


def test_a_port_that_is_taken_stops_the_start(tmp_path: Path) -> None:
    with BrokerThread(tmp_path / "first", HTTP) as first:
        taken = first.broker.http_endpoints[0].port
        second = BrokerThread(tmp_path / "second", {"ottla.http.listeners": f"http://127.0.0.1:{taken}"})
        with pytest.raises(Exception, match=r"ottla\.http\.listeners"):
            second.start()


def test_nothing_is_loaded_where_nobody_watches(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys\n"
        "from ottla.broker.broker import Broker\n"
        "from ottla.broker.config import BrokerConfig\n"
        "async def main():\n"
        f"    given = {{'log.dirs': {str(tmp_path)!r}, 'listeners': 'PLAINTEXT://127.0.0.1:0'}}\n"
        "    broker = Broker(BrokerConfig.from_properties(given))\n"
        "    await broker.start()\n"
        "    await broker.shutdown()\n"
        "asyncio.run(main())\n"
        "watching = ('ottla.broker.http', 'ottla.broker.metrics', 'http')\n"
        "print([name for name in sys.modules if name.startswith(watching)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=True
    )
    assert done.stdout == "[]\n"
