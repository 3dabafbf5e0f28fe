"""Clusters for tests: a tree of nodes for pure decisions, and brokers on one real store."""

import random
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from ottla.cluster import paths, registry
from ottla.cluster.broker_lifecycle import BrokerLifecycle
from ottla.cluster.config_changes import ConfigRules
from ottla.cluster.controller import Controller
from ottla.cluster.image import BrokerRegistration, ClusterImage, Endpoint
from ottla.cluster.image_builder import ImageBuilder
from ottla.cluster.metadata import MetadataCache
from ottla.cluster.requests import ControllerSettings
from ottla.coordination.embedded import EmbeddedStore
from ottla.coordination.store import (
    ANY_VERSION,
    Check,
    Create,
    Delete,
    Node,
    Operation,
    Set,
)


class SeededIds:
    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def uuid(self) -> bytes:
        return b"\x01" + self._random.randbytes(15)

    def below(self, limit: int) -> int:
        return self._random.randrange(limit)


def registration_of(node_id: int, rack: str | None = None, is_shutting_down: bool = False) -> BrokerRegistration:
    return BrokerRegistration(
        node_id=node_id,
        endpoints=(Endpoint("PLAINTEXT", f"host{node_id}", 9092),),
        rack=rack,
        epoch=-1,
        incarnation_id=bytes([node_id + 1]) * 16,
        is_shutting_down=is_shutting_down,
    )


class Tree:
    """Nodes in memory and the image that follows from them; every operation must hold."""

    def __init__(self, brokers: Sequence[int] = (), racks: dict[int, str] | None = None) -> None:
        self.nodes: dict[str, Node] = {}
        self.builder = ImageBuilder()
        self._last_id = 0
        for node_id in brokers:
            self.register(node_id, None if racks is None else racks[node_id])
        self.admit()

    @property
    def image(self) -> ClusterImage:
        return self.builder.image

    def apply(self, operations: Iterable[Operation]) -> ClusterImage:
        self._last_id += 1
        touched = []
        for operation in operations:
            path = operation.path
            touched.append(path)
            if isinstance(operation, Create):
                assert path not in self.nodes, f"{path} exists"
                self.nodes[path] = Node(path, operation.data, 0, self._last_id, self._last_id, operation.is_ephemeral)
                continue
            node = self.nodes[path]
            assert operation.version in (ANY_VERSION, node.version), f"{operation} met version {node.version}"
            if isinstance(operation, Set):
                version = node.version + 1
                self.nodes[path] = node._replace(data=operation.data, version=version, modified_id=self._last_id)
            elif isinstance(operation, Delete):
                assert not any(other.startswith(path + "/") for other in self.nodes), f"{path} has children"
                del self.nodes[path]
            else:
                assert isinstance(operation, Check)
        return self.builder.apply((path, self.nodes.get(path)) for path in touched)

    def put(self, path: str, data: bytes) -> ClusterImage:
        return self.apply([Set(path, data) if path in self.nodes else Create(path, data)])

    def register(self, node_id: int, rack: str | None = None) -> ClusterImage:
        return self.put(paths.broker(node_id), registry.encode_broker(registration_of(node_id, rack)))

    def deregister(self, node_id: int) -> ClusterImage:
        return self.apply([Delete(paths.broker(node_id))])

    def admit(self) -> ClusterImage:
        admitted = {node_id: registration.epoch for node_id, registration in self.image.brokers.items()}
        return self.put(paths.ADMITTED_BROKERS, registry.encode_admitted(admitted))


@dataclass
class RunningBroker:
    """The cluster's side of one broker: no sockets, no logs."""

    node_id: int
    session: EmbeddedStore
    metadata: MetadataCache
    controller: Controller
    lifecycle: BrokerLifecycle
    is_running: bool = True

    @property
    def image(self) -> ClusterImage:
        return self.metadata.image

    async def shutdown(self) -> None:
        self.is_running = False
        await self.lifecycle.shutdown()
        await self.session.close()

    async def kill(self) -> None:
        """Vanish: the session ends, and nothing is handed over."""
        self.is_running = False
        await self.session.close()
        await self.controller.close()
        await self.metadata.close()


class RunningCluster:
    """Brokers in one process, each with a session of its own on one file."""

    def __init__(self, store: EmbeddedStore, settings: ControllerSettings | None, rules: ConfigRules | None) -> None:
        self.store = store
        self.brokers: dict[int, RunningBroker] = {}
        self._settings = settings
        self._rules = rules
        self._seed = 0

    async def start(self, node_id: int, rack: str | None = None) -> RunningBroker:
        self._seed += 1
        ids = SeededIds(self._seed)
        session = await self.store.new_session()
        metadata = MetadataCache(session)
        controller = Controller(session, metadata, node_id=node_id, ids=ids, settings=self._settings, rules=self._rules)
        endpoints = (Endpoint("PLAINTEXT", "localhost", 9092 + node_id),)
        lifecycle = BrokerLifecycle(
            session, metadata, controller, node_id=node_id, endpoints=endpoints, ids=ids, rack=rack
        )
        broker = RunningBroker(node_id, session, metadata, controller, lifecycle)
        await lifecycle.start()
        self.brokers[node_id] = broker
        return broker

    async def close(self) -> None:
        for broker in self.brokers.values():
            if broker.is_running:
                await broker.shutdown()
        await self.store.close()


@asynccontextmanager
async def running_cluster(
    directory: Path, settings: ControllerSettings | None = None, rules: ConfigRules | None = None
) -> AsyncIterator[RunningCluster]:
    cluster = RunningCluster(await EmbeddedStore.open(str(directory / "store.sqlite3")), settings, rules)
    try:
        yield cluster
    finally:
        await cluster.close()


def check_partitions(image: ClusterImage) -> None:
    """What must hold of every partition in every image."""
    for topic in image.topics.values():
        assert image.topics_by_id[topic.topic_id] is topic
        for index, partition in enumerate(topic.partitions):
            assert partition.index == index
            assert len(set(partition.replicas)) == len(partition.replicas) > 0
            assert set(partition.isr) <= set(partition.replicas)
            assert partition.isr, "the ISR is never empty"
            assert partition.leader == -1 or partition.leader in partition.isr
            assert partition.partition_epoch >= partition.leader_epoch >= 0
            live = {node_id for node_id, broker in image.brokers.items() if not broker.is_fenced}
            assert set(partition.offline_replicas) == set(partition.replicas) - live
    assert len(image.topics) == len(image.topics_by_id)
