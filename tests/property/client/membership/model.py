"""A coordinator of one group, small enough to be right, and the way to it, which can fail.

It is a model, not Ottla's own: it holds no more than what the protocols promise, so that a member that relies on more
than that is found out. What it has in common for both protocols: members that stay silent are thrown out, requests may
be carried out and their answers lost, and the coordinator may be elsewhere for a while.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import Any, cast

from ottla.client.cluster import Cluster, Node, PartitionInfo, TopicInfo
from ottla.client.errors import BrokerUnavailable
from ottla.client.network import Answer, CoordinatorKind
from ottla.protocol.message import Request, Response
from ottla.runtime.promise import Promise

NODE = 1
LATENCY_SECONDS = 0.002


def topic_id_of(name: str) -> bytes:
    return name.encode().ljust(16, b".")


def cluster_of(counts: dict[str, int], version: int) -> Cluster:
    topics = {
        name: TopicInfo(
            name, topic_id_of(name), tuple(PartitionInfo(number, NODE, 0, (NODE,), (NODE,)) for number in range(count))
        )
        for name, count in sorted(counts.items())
    }
    names_by_id = {info.topic_id: info.name for info in topics.values()}
    return Cluster("model", NODE, {NODE: Node(NODE, "model", 1)}, topics, MappingProxyType(names_by_id), version)


class Coordinator(ABC):
    """`counts` are the partitions of the topics. `is_away` answers NOT_COORDINATOR to everybody."""

    def __init__(self, counts: dict[str, int]) -> None:
        self.counts = counts
        self.is_away = False
        self.answers_to_lose = 0
        self.networks: list[ModelNetwork] = []

    @abstractmethod
    async def handle(self, request: Request) -> Response: ...

    @abstractmethod
    def knows(self, member_id: str) -> bool: ...

    def grow(self, topic: str, count: int) -> None:
        self.counts[topic] = max(self.counts[topic], count)
        for network in list(self.networks):
            network.refresh()


class ModelNetwork:
    """`Network` of one member. A dead one answers nobody."""

    def __init__(self, coordinator: Coordinator) -> None:
        self.coordinator_model = coordinator
        self.cluster = cluster_of(coordinator.counts, 1)
        self.is_dead = False
        self._listeners: list[Callable[[Cluster, Cluster], None]] = []
        coordinator.networks.append(self)

    def refresh(self) -> None:
        old = self.cluster
        self.cluster = cluster_of(self.coordinator_model.counts, old.version + 1)
        for listener in self._listeners:
            if not self.is_dead:
                listener(old, self.cluster)

    def on_cluster(self, changed: Callable[[Cluster, Cluster], None]) -> None:
        self._listeners.append(changed)

    def watch_topics(self, names: Iterable[str]) -> None: ...

    def unwatch_topics(self, names: Iterable[str]) -> None: ...

    def watch_all_topics(self, wanted: bool) -> None: ...

    def request_update(self) -> None:
        asyncio.get_running_loop().call_later(LATENCY_SECONDS, self.refresh)

    async def updated(self, than: Cluster, timeout_seconds: float) -> Cluster:
        if self.cluster.version <= than.version:
            await asyncio.sleep(LATENCY_SECONDS)
            self.refresh()
        return self.cluster

    def learn_leader(
        self, topic: str, partition: int, leader: int, leader_epoch: int, endpoints: Iterable[Node] = ()
    ) -> None: ...

    def topic_error(self, name: str) -> int:
        return 0 if name in self.cluster.topics else 3

    def feature_level(self, name: str) -> int:
        return 0

    async def ask(
        self,
        node_id: int,
        request: Request,
        answer: type[Answer],
        *,
        timeout_seconds: float | None = None,
        max_version: int | None = None,
    ) -> Answer:
        try:
            async with asyncio.timeout(timeout_seconds):
                await asyncio.sleep(LATENCY_SECONDS)
                if self.is_dead:
                    await asyncio.get_running_loop().create_future()
                found = await self.coordinator_model.handle(over_the_wire(request))
                await asyncio.sleep(LATENCY_SECONDS)
        except TimeoutError:
            raise BrokerUnavailable("no answer in time") from None
        if self.coordinator_model.answers_to_lose:
            self.coordinator_model.answers_to_lose -= 1
            raise BrokerUnavailable("the connection broke")
        return cast(Answer, found)

    async def ask_beside(self, node_id: int, request: Request, answer: type[Answer]) -> Answer:
        return await self.ask(node_id, request, answer)

    def ask_now(self, node_id: int, request: Request, *, max_version: int | None = None) -> Promise[Any] | None:
        return None

    def is_open(self, node_id: int) -> bool:
        return False

    async def reach(self, node_id: int) -> None: ...

    def tell(self, node_id: int, request: Request, *, max_version: int | None = None) -> "asyncio.Future[None] | None":
        return None

    async def ask_any(
        self,
        request: Request,
        answer: type[Answer],
        *,
        timeout_seconds: float | None = None,
        max_version: int | None = None,
    ) -> Answer:
        raise BrokerUnavailable("the model knows every topic")

    ask_controller = ask_any

    def version_of(self, node_id: int, request: type[Request]) -> int | None:
        return request.MAX_VERSION

    async def coordinator(self, kind: CoordinatorKind, key: str) -> int:
        return NODE

    def forget_coordinator(self, kind: CoordinatorKind, key: str) -> None: ...

    def is_throttled(self, node_id: int) -> bool:
        return False

    async def backoff(self, attempt: int) -> None:
        await asyncio.sleep(min(0.1 * 2**attempt, 1.0))

    async def close(self) -> None: ...


def over_the_wire(request: Request) -> Request:
    """What arrives is a copy: it went over the wire, which also shows that it can be encoded."""
    version = type(request).MAX_VERSION
    return type(request).decode(request.encode(version), version)
