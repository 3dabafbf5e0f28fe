"""The broker's metrics, under the names that Kafka's have behind the usual JMX exporter.

Nothing is kept here: the numbers are attributes of the parts that they belong to, and are read when somebody asks. A
broker of 10,000 partitions has some 50,000 series, which take far longer to write than the loop may be held, so
`render` writes them in slices of `SLICE_SECONDS` and lets the loop turn in between. A scrape is therefore no snapshot:
each number is the one of its moment.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from ottla.broker import (
    metrics_groups,
    metrics_process,
    metrics_quotas,
    metrics_requests,
    metrics_storage,
    metrics_transactions,
)
from ottla.broker.metrics_process import LoopLag, ProcessNumbers, process_lines, read_process
from ottla.broker.metrics_requests import RequestMetrics
from ottla.broker.metrics_storage import cleaner_lines, damage_lines
from ottla.broker.metrics_text import COUNTER, GAUGE, SUMMARY, Family, labelled
from ottla.broker.server import Server
from ottla.cluster.image import NO_LEADER
from ottla.log.manager import LogManager
from ottla.replication.partition import Partition
from ottla.replication.traffic import Traffic
from ottla.runtime import Executor
from ottla.version import __version__

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

SLICE_SECONDS = 0.002


def _traffic(name: str, text: str) -> Family:
    return Family(f"kafka_server_brokertopicmetrics_{name}_total", COUNTER, text, ("topic",))


def _partition(name: str, text: str) -> Family:
    return Family(f"kafka_log_log_{name}", GAUGE, text, ("topic", "partition"))


def _replicas(name: str, text: str) -> Family:
    return Family(f"kafka_server_replicamanager_{name}", GAUGE, text)


def _controller(name: str, text: str) -> Family:
    return Family(f"kafka_controller_kafkacontroller_{name}", GAUGE, text)


TRAFFIC: tuple[tuple[Family, Callable[[Traffic], int]], ...] = (
    (_traffic("messagesin", "Records that producers sent."), attrgetter("messages_in")),
    (_traffic("bytesin", "Bytes of batches that producers sent."), attrgetter("bytes_in")),
    (_traffic("bytesout", "Bytes of batches that consumers were given."), attrgetter("bytes_out")),
    (_traffic("totalproducerequests", "Partitions that were produced to."), attrgetter("produce_requests")),
    (_traffic("totalfetchrequests", "Partitions that were read."), attrgetter("fetch_requests")),
    (
        _traffic("failedproducerequests", "Those where producing failed in a way that clients need not expect."),
        attrgetter("failed_produce_requests"),
    ),
    (
        _traffic("failedfetchrequests", "Those where reading failed in a way that clients need not expect."),
        attrgetter("failed_fetch_requests"),
    ),
)
PARTITIONS: tuple[tuple[Family, Callable[[Partition], int]], ...] = (
    (_partition("size", "Bytes of the segments."), attrgetter("log.size_bytes")),
    (_partition("logstartoffset", "The first offset."), attrgetter("log.log_start_offset")),
    (_partition("logendoffset", "The offset of the next record."), attrgetter("log.log_end_offset")),
    (_partition("numlogsegments", "Segments."), lambda partition: len(partition.log.segments)),
)
PARTITION_COUNT = _replicas("partitioncount", "Replicas on this broker.")
LEADER_COUNT = _replicas("leadercount", "Partitions that this broker leads.")
UNDER_REPLICATED = _replicas(
    "underreplicatedpartitions", "Partitions led here that have replicas which are not in sync."
)
UNDER_MIN_ISR = _replicas(
    "underminisrpartitioncount", "Partitions led here with fewer replicas in sync than min.insync.replicas."
)
OFFLINE_REPLICAS = _replicas("offlinereplicacount", "Replicas on this broker whose log directory failed.")
WAITING = Family(
    "kafka_server_delayedoperationpurgatory_purgatorysize",
    GAUGE,
    "Waits of requests for partitions: fetches for bytes, producers for acknowledgement.",
    ("delayedOperation",),
)
SESSIONS = Family("kafka_server_fetchsessioncache_numincrementalfetchsessions", GAUGE, "Fetch sessions that are kept.")
ACTIVE_CONTROLLER = _controller("activecontrollercount", "1 on the active controller, 0 elsewhere.")
TOPICS = _controller("globaltopiccount", "Topics of the cluster, on the active controller.")
ALL_PARTITIONS = _controller("globalpartitioncount", "Partitions of the cluster, on the active controller.")
OFFLINE_PARTITIONS = _controller("offlinepartitionscount", "Partitions without a leader, on the active controller.")
OFFLINE_DIRECTORIES = Family(
    "kafka_log_logmanager_offlinelogdirectorycount", GAUGE, "Log directories that failed and are not used."
)
FLUSHES = Family(
    "kafka_log_logflushstats_logflushrateandtimems", SUMMARY, "Flushes of logs, and their time in milliseconds."
)
LOG_FILES = Family("ottla_log_files_open", GAUGE, "Files of logs that are open.")
LOG_FILES_LIMIT = Family("ottla_log_files_limit", GAUGE, "How many of them may be: ottla.max.open.files.")
LOG_FILES_OPENED = Family("ottla_log_files_opened_total", COUNTER, "Times that such a file was opened.")
LOG_FILES_EVICTED = Family(
    "ottla_log_files_evicted_total", COUNTER, "Times that one was closed to stay within the limit."
)
CONNECTIONS = Family(
    "kafka_server_socket_server_metrics_connection_count", GAUGE, "Connections that are open.", ("listener",)
)
CONNECTIONS_CREATED = Family(
    "kafka_server_socket_server_metrics_connection_creation_total", COUNTER, "Connections accepted.", ("listener",)
)
BUFFERS_LENT = Family("ottla_buffers_lent_bytes", GAUGE, "Memory lent to large requests that are arriving.")
BUFFERS_WAITING = Family("ottla_buffers_waiting_connections", GAUGE, "Connections that wait for such memory.")
IMAGE = Family("ottla_image_version", GAUGE, "The newest image of the cluster that this broker has; starts at 0.")
IMAGE_APPLIED = Family("ottla_image_applied_version", GAUGE, "The image that its replicas have followed.")
BROKER = Family("ottla_broker_info", GAUGE, "This broker; always 1.", ("version", "node_id", "cluster_id"))

FAMILIES = (
    *(family for family, _ in TRAFFIC),
    *(family for family, _ in PARTITIONS),
    PARTITION_COUNT,
    LEADER_COUNT,
    UNDER_REPLICATED,
    UNDER_MIN_ISR,
    OFFLINE_REPLICAS,
    WAITING,
    SESSIONS,
    ACTIVE_CONTROLLER,
    TOPICS,
    ALL_PARTITIONS,
    OFFLINE_PARTITIONS,
    OFFLINE_DIRECTORIES,
    FLUSHES,
    LOG_FILES,
    LOG_FILES_LIMIT,
    LOG_FILES_OPENED,
    LOG_FILES_EVICTED,
    CONNECTIONS,
    CONNECTIONS_CREATED,
    BUFFERS_LENT,
    BUFFERS_WAITING,
    IMAGE,
    IMAGE_APPLIED,
    BROKER,
    *metrics_storage.FAMILIES,
    *metrics_requests.FAMILIES,
    *metrics_quotas.FAMILIES,
    *metrics_groups.FAMILIES,
    *metrics_transactions.FAMILIES,
    *metrics_process.FAMILIES,
)


def _single(family: Family, value: float) -> str:
    return family.head + family.line(value)


@dataclass(slots=True)
class _Roles:
    """What the replicas of this broker are to their partitions."""

    leaders: int = 0
    under_replicated: int = 0
    under_min_isr: int = 0
    waiting_fetches: int = 0
    waiting_producers: int = 0

    def add(self, partition: Partition) -> None:
        self.waiting_fetches += partition.waiting_fetches
        self.waiting_producers += partition.waiting_producers
        if partition.is_leader:
            self.leaders += 1
            in_sync, replicas = len(partition.isr), len(partition.replicas)
            self.under_replicated += in_sync < replicas
            self.under_min_isr += in_sync < min(partition.log.config.min_insync_replicas, replicas)


class BrokerMetrics:
    """Writes the metrics of one broker, whose parts must all be there."""

    def __init__(
        self,
        broker: "Broker",
        server: Server,
        logs: LogManager,
        executor: Executor,
        requests: RequestMetrics,
        lag: LoopLag,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._broker = broker
        self._server = server
        self._logs = logs
        self._executor = executor
        self._requests = requests
        self._lag = lag
        self._clock = clock

    async def render(self) -> bytes:
        """All metrics as text. The loop turns whenever a slice is over."""
        process = await self._executor.run(read_process)
        slices: list[bytes] = []
        pieces: list[str] = []
        clock = self._clock
        end = clock() + SLICE_SECONDS
        for piece in self._pieces(process):
            pieces.append(piece)
            if clock() >= end:
                slices.append("".join(pieces).encode())
                pieces.clear()
                await asyncio.sleep(0)
                end = clock() + SLICE_SECONDS
        slices.append("".join(pieces).encode())
        return b"".join(slices)

    def _pieces(self, process: ProcessNumbers) -> Iterator[str]:
        """Text in small pieces; an empty one where there was work but nothing to say."""
        partitions = list(self._broker.replicas)
        yield from self._traffic_lines(partitions)
        if self._broker.config.metrics_partitions:
            yield from _partition_lines(partitions)
        yield from self._replica_lines(partitions)
        yield from self._controller_lines()
        yield from self._log_lines()
        yield from self._server_lines()
        yield from self._requests.lines()
        yield from metrics_quotas.quota_lines(self._broker.quotas)
        yield from metrics_groups.group_lines(self._broker.groups)
        yield from metrics_transactions.transaction_lines(self._broker.transactions)
        yield from self._lag.lines()
        yield from process_lines(process)

    def _traffic_lines(self, partitions: list[Partition]) -> Iterator[str]:
        total = Traffic()
        total.add(self._broker.replicas.departed)
        topics: dict[str, Traffic] = {}
        for partition in partitions:
            traffic = topics.get(partition.topic)
            if traffic is None:
                traffic = topics[partition.topic] = Traffic()
            traffic.add(partition.traffic)
            total.add(partition.traffic)
            yield ""
        for family, count_of in TRAFFIC:
            yield family.head + family.line(count_of(total))
            for topic, traffic in topics.items():
                yield family.line(count_of(traffic), topic)

    def _replica_lines(self, partitions: list[Partition]) -> Iterator[str]:
        roles = _Roles()
        for partition in partitions:
            roles.add(partition)
            yield ""
        yield _single(PARTITION_COUNT, len(partitions))
        yield _single(LEADER_COUNT, roles.leaders)
        yield _single(UNDER_REPLICATED, roles.under_replicated)
        yield _single(UNDER_MIN_ISR, roles.under_min_isr)
        yield _single(OFFLINE_REPLICAS, self._broker.replicas.offline_count)
        yield WAITING.head
        yield WAITING.line(roles.waiting_fetches, "Fetch")
        yield WAITING.line(roles.waiting_producers, "Produce")
        yield _single(SESSIONS, len(self._broker.fetch_sessions))

    def _controller_lines(self) -> Iterator[str]:
        """The counts of the whole cluster are told by one broker, so that a sum over brokers is right."""
        image = self._broker.image
        is_active = self._broker.controller.is_active
        count = offline = 0
        for topic in image.topics.values() if is_active else ():
            count += len(topic.partitions)
            offline += sum(partition.leader == NO_LEADER for partition in topic.partitions)
            yield ""
        yield _single(ACTIVE_CONTROLLER, int(is_active))
        yield _single(TOPICS, len(image.topics) if is_active else 0)
        yield _single(ALL_PARTITIONS, count)
        yield _single(OFFLINE_PARTITIONS, offline)
        yield _single(IMAGE, image.version)
        yield _single(IMAGE_APPLIED, self._broker.replicas.applied_version)
        yield BROKER.head + BROKER.line(1, __version__, self._broker.config.node_id, image.cluster_id)

    def _log_lines(self) -> Iterator[str]:
        directories = self._logs.directories
        yield _single(OFFLINE_DIRECTORIES, sum(directory.failure is not None for directory in directories))
        yield FLUSHES.head
        yield f"{FLUSHES.name}_sum {sum(directory.flush_seconds for directory in directories) * 1000}\n"
        yield f"{FLUSHES.name}_count {sum(directory.flushes for directory in directories)}\n"
        open_files = self._logs.open_files
        yield _single(LOG_FILES, len(open_files))
        yield _single(LOG_FILES_LIMIT, open_files.limit)
        yield _single(LOG_FILES_OPENED, open_files.opened)
        yield _single(LOG_FILES_EVICTED, open_files.evicted)
        yield from damage_lines(directories)
        if self._broker.cleaner is not None:
            yield from cleaner_lines(self._broker.cleaner, directories, self._broker.clock.monotonic())

    def _server_lines(self) -> Iterator[str]:
        server = self._server
        listeners = [endpoint.name for endpoint in self._broker.endpoints]
        open_now = dict.fromkeys(listeners, 0)
        for connection in list(server.connections.values()):
            open_now[connection.listener] += 1
            yield ""
        yield CONNECTIONS.head
        for listener, count in open_now.items():
            yield CONNECTIONS.line(count, listener)
        yield CONNECTIONS_CREATED.head
        for listener in listeners:
            yield CONNECTIONS_CREATED.line(server.admitted.get(listener, 0), listener)
        yield _single(BUFFERS_LENT, server.buffers.lent_bytes)
        yield _single(BUFFERS_WAITING, server.waiting_for_buffer)


def _partition_lines(partitions: list[Partition]) -> Iterator[str]:
    labels: list[str] = []
    for partition in partitions:
        labels.append(labelled(("topic", "partition"), (partition.topic, partition.index)))
        yield ""
    for family, value_of in PARTITIONS:
        yield family.head
        name = family.name
        for partition, label in zip(partitions, labels, strict=True):
            yield f"{name}{label} {value_of(partition)}\n"
