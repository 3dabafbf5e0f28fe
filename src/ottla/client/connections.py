"""The real network of a client: a connection to each broker that is used, and what is known of them all.

| module                     | holds                                                                                |
|----------------------------|--------------------------------------------------------------------------------------|
| `connections`              | `Connections`: whom to ask, and the answers                                          |
| `connections_updates`      | when to ask for metadata, and who waits for it                                       |
| `connections_metadata`     | what an answer about metadata changes; sans-IO                                       |
| `connections_coordinators` | which broker coordinates what                                                        |
| `connections_link`         | the way to one broker: connect, back off, connect again                              |
| `connections_opening`      | from a name to a connection: addresses, TLS, versions, SASL                          |
| `connections_wire`         | one socket: frames out and in                                                        |
| `connections_parting`      | closing a socket without losing what has no answer                                   |
| `connections_waiting`      | requests without an answer yet                                                       |
| `connections_answers`      | from the bytes of a frame to an answer                                               |
| `connections_frames`       | from bytes to frames                                                                 |
| `connections_memory`       | memory for large answers                                                             |
| `connections_versions`     | the version of a request that both sides have                                        |

Sockets are this package's own, read and written when the loop says that they are ready: a loop without `add_reader`
(the proactor of Windows) cannot run a client.

Brokers have the numbers of the cluster. Bootstrap servers, whose numbers are not known, have -1, -2 ...; the
coordinator of a group has a connection of its own, and so have questions that must not wait behind a fetch. Each has a
number for it (`broker_of` in `network` tells the broker's).
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, cast

from ottla.client.cluster import Cluster, Node
from ottla.client.config import ClientConfig, parse_address
from ottla.client.connections_answers import copy_of
from ottla.client.connections_coordinators import Coordinators
from ottla.client.connections_link import Backoff, Link
from ottla.client.connections_opening import Opening
from ottla.client.connections_updates import Updates
from ottla.client.connections_wire import Connection
from ottla.client.errors import BrokerUnavailable, ClientClosed, InvalidAnswer
from ottla.client.network import Answer, CoordinatorKind, broker_of, question_link
from ottla.client.security.guard import Guard
from ottla.protocol.message import Request
from ottla.protocol.messages.api_versions import ApiVersionsResponse
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse
from ottla.runtime import Clock, IdSource
from ottla.runtime.promise import Promise
from ottla.runtime.real import SystemClock, SystemIds

_LONGEST_SWEEP_SECONDS = 30.0


class Connections:
    """Implements `Network`. Belongs to one event loop; `start` begins to learn about the cluster.

    connections = Connections(resolve(ProducerConfig, "localhost:9092"))
    connections.start()
    cluster = await connections.updated(Cluster(), 10.0)
    """

    def __init__(
        self,
        config: ClientConfig,
        *,
        clock: Clock | None = None,
        ids: IdSource | None = None,
        has_long_polls: bool = False,
    ) -> None:
        """`has_long_polls`: what is in flight may be a fetch that waits for records, and questions go beside it."""
        self.config = config
        self._has_long_polls = has_long_polls
        self._ids = ids or SystemIds()
        self._request_timeout = config.request_timeout_ms / 1000
        self._retry = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms, self._ids)
        self._opening = Opening(config, Guard(config, clock or SystemClock(), self._ids), self._learned_versions)
        self._bootstrap = {-1 - index: parse_address(server) for index, server in enumerate(config.bootstrap_servers)}
        self._links: dict[int, Link] = {}
        self._retired: list[Link] = []
        self._located: dict[int, tuple[str, int]] = {}
        self._features_epoch = -1
        self._features: dict[str, int] = {}
        self._updates = Updates(config, self._retry, self._ask_for_metadata, self._cluster_replaced)
        self._coordinators = Coordinators(self.ask_any, self.backoff, self._locate)
        self._sweep_timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    def start(self) -> None:
        """Begin to learn about the cluster; without it, that begins with the first question about it."""
        self._updates.start()
        if self._sweep_timer is None:
            self._sweep()

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        self._coordinators.close(ClientClosed("the client was closed: make a new one"))
        await self._updates.close()
        links = [*self._links.values(), *self._retired]
        for link in links:
            link.close()
        for link in links:
            await link.closed()

    # The cluster

    @property
    def cluster(self) -> Cluster:
        return self._updates.known.cluster

    def on_cluster(self, changed: Callable[[Cluster, Cluster], None]) -> None:
        self._updates.listen(changed)

    def watch_topics(self, names: Iterable[str]) -> None:
        self._updates.watch(names)

    def unwatch_topics(self, names: Iterable[str]) -> None:
        self._updates.unwatch(names)

    def watch_all_topics(self, wanted: bool) -> None:
        self._updates.watch_all(wanted)

    def request_update(self) -> None:
        self._updates.request()

    def learn_leader(
        self, topic: str, partition: int, leader: int, leader_epoch: int, endpoints: Iterable[Node] = ()
    ) -> None:
        self._updates.learn_leader(topic, partition, leader, leader_epoch, endpoints)

    async def updated(self, than: Cluster, timeout_seconds: float) -> Cluster:
        self._check_open()
        return await self._updates.newer(than, timeout_seconds)

    def topic_error(self, name: str) -> int:
        return self._updates.known.errors.get(name, 0)

    def feature_level(self, name: str) -> int:
        return self._features.get(name, 0)

    # Questions

    async def ask(
        self,
        node_id: int,
        request: Request,
        answer: type[Answer],
        *,
        timeout_seconds: float | None = None,
        max_version: int | None = None,
    ) -> Answer:
        link = self._links.get(node_id) or self._link_to(node_id)
        connection = link.open_connection
        if connection is None:
            return cast(Answer, await link.ask(request, timeout_seconds, max_version))
        return cast(Answer, await connection.ask(request, timeout_seconds, max_version))

    async def ask_beside(self, node_id: int, request: Request, answer: type[Answer]) -> Answer:
        link = self._links.get(node_id) or self._link_to(node_id)
        beside = self._beside(node_id) if link.in_flight else link
        return cast(Answer, await beside.ask(request, None, None))

    def ask_now(self, node_id: int, request: Request, *, max_version: int | None = None) -> Promise[Any] | None:
        link = self._links.get(node_id)
        connection = None if link is None else link.open_connection
        return None if connection is None else connection.ask_prompt(request, max_version)

    def is_open(self, node_id: int) -> bool:
        link = self._links.get(node_id)
        return link is not None and link.open_connection is not None

    async def reach(self, node_id: int) -> None:
        link = self._links.get(node_id) or self._link_to(node_id)
        await link.reached(self.config.request_timeout_ms / 1000)

    def tell(self, node_id: int, request: Request, *, max_version: int | None = None) -> "asyncio.Future[None] | None":
        link = self._links.get(node_id)
        connection = None if link is None else link.open_connection
        return None if connection is None else connection.tell(request, max_version)

    async def ask_any(
        self,
        request: Request,
        answer: type[Answer],
        *,
        timeout_seconds: float | None = None,
        max_version: int | None = None,
    ) -> Answer:
        return await self._ask_one_of(self._everybody, request, answer, timeout_seconds, max_version)

    async def ask_controller(
        self,
        request: Request,
        answer: type[Answer],
        *,
        timeout_seconds: float | None = None,
        max_version: int | None = None,
    ) -> Answer:
        controller = self.cluster.controller_id
        if controller in self.cluster.nodes:
            return await self.ask(controller, request, answer, timeout_seconds=timeout_seconds, max_version=max_version)
        return await self.ask_any(request, answer, timeout_seconds=timeout_seconds, max_version=max_version)

    def version_of(self, node_id: int, request: type[Request]) -> int | None:
        link = self._links.get(node_id)
        return None if link is None or link.versions is None else link.versions.highest(request)

    async def coordinator(self, kind: CoordinatorKind, key: str) -> int:
        self._check_open()
        return await self._coordinators.find(kind, key, self.config.default_api_timeout_ms / 1000)

    def forget_coordinator(self, kind: CoordinatorKind, key: str) -> None:
        self._coordinators.forget(kind, key)

    def is_throttled(self, node_id: int) -> bool:
        link = self._links.get(node_id)
        connection = None if link is None else link.connection
        return connection is not None and connection.throttled_until > asyncio.get_running_loop().time()

    async def backoff(self, attempt: int) -> None:
        await asyncio.sleep(self._retry.seconds(attempt))

    # Choosing

    async def _ask_one_of(
        self,
        candidates: Callable[[], list[Link]],
        request: Request,
        answer: type[Answer],
        timeout_seconds: float | None,
        max_version: int | None,
    ) -> Answer:
        """To the best candidate that a connection can be made to. What was sent is not sent again."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (self._request_timeout if timeout_seconds is None else timeout_seconds)
        while True:
            self._check_open()
            link = self._least_loaded(candidates())
            try:
                connection = await self._usable(link, deadline)
            except (BrokerUnavailable, InvalidAnswer) as error:
                self._updates.failed_to_ask(link.last_error or error)
                if loop.time() >= deadline:
                    raise
                continue
            left = None if timeout_seconds is None else max(deadline - loop.time(), 0.0)
            return cast(Answer, await connection.ask(request, left, max_version))

    def _ask_for_metadata(
        self, request: MetadataRequest, *, from_bootstrap: bool
    ) -> "asyncio.Future[MetadataResponse]":
        candidates = self._bootstrap_links if from_bootstrap else self._everybody
        return asyncio.ensure_future(self._ask_one_of(candidates, request, MetadataResponse, None, None))

    def _everybody(self) -> list[Link]:
        """The brokers of the cluster; the bootstrap servers too while none of those is known or can be reached. The
        connections to coordinators count as well: they are idle while the others wait for records."""
        links = [self._link_to(node_id) for node_id in self.cluster.nodes]
        can_begin_again = self.config.metadata_recovery_strategy == "rebootstrap" or not links
        if can_begin_again and all(link.connection is None and link.failures for link in links):
            links += self._bootstrap_links()
        links += [link for number, link in self._links.items() if link.connection and broker_of(number) != number]
        if not self._has_long_polls or not any(link.in_flight for link in links):
            return links
        free = [link for link in links if not link.in_flight and (link.connection or not link.failures)]
        # Before the first metadata came no broker is known that could have another connection.
        return free or [self._beside(node_id) for node_id in self.cluster.nodes] or links

    def _beside(self, node_id: int) -> Link:
        """The other connection to a broker; the usual one where no other can be made."""
        beside = self._link_to(question_link(node_id))
        return self._link_to(node_id) if beside.failures else beside

    def _bootstrap_links(self) -> list[Link]:
        return [self._link_to(node_id) for node_id in self._bootstrap]

    def _least_loaded(self, links: list[Link]) -> Link:
        now = asyncio.get_running_loop().time()
        start = self._ids.below(len(links))

        def cost(link: Link) -> tuple[int, float, int]:
            connection = link.connection
            if connection is not None:
                return (0 if connection.throttled_until <= now else 1, connection.in_flight, 0)
            if link.retry_at <= now or link.is_connecting:
                return (2, 0.0, link.failures)
            return (3, link.retry_at, 0)

        return min(links[start:] + links[:start], key=cost)

    # Links

    async def _usable(self, link: Link, deadline: float) -> Connection:
        """A connection that may be used now."""
        loop = asyncio.get_running_loop()
        while True:
            self._check_open()
            connection = link.connection or await link.connected(max(deadline - loop.time(), 0.0))
            wait, left = connection.throttled_until - loop.time(), deadline - loop.time()
            if connection.ended_by is not None:
                if left <= 0:
                    raise copy_of(connection.ended_by)
                wait = 0.0
            elif wait <= 0:
                return connection
            if wait > left:
                raise BrokerUnavailable(
                    f"{link.name} asks for {wait:.1f} s of patience, a quota is used up: raise the quota, or send less"
                )
            await asyncio.sleep(wait)

    def _link_to(self, node_id: int) -> Link:
        self._check_open()
        link = self._links.get(node_id)
        if link is not None:
            return link
        address = self._bootstrap.get(node_id) or self._address_of(broker_of(node_id))
        if address is None:
            self.request_update()
            raise BrokerUnavailable(f"there is no broker {node_id} in the cluster any more")
        link = self._links[node_id] = Link(*address, self._opening, self.config, self._ids)
        return link

    def _address_of(self, node_id: int) -> tuple[str, int] | None:
        node = self.cluster.nodes.get(node_id)
        return self._located.get(node_id) if node is None else (node.host, node.port)

    def _locate(self, node_id: int, host: str, port: int) -> None:
        """A coordinator was found there: it may be a broker that the metadata do not tell about yet."""
        if node_id not in self.cluster.nodes:
            self._located[node_id] = (host, port)
            self.request_update()

    def _cluster_replaced(self, old: Cluster, new: Cluster) -> None:
        """Links to brokers that moved are given up; the connection of a bootstrap server becomes that of its broker."""
        if new.nodes == old.nodes:
            return
        self._located.clear()
        for number, link in list(self._links.items()):
            node = new.nodes.get(broker_of(number))
            if number not in self._bootstrap and (node is None or (node.host, node.port) != (link.host, link.port)):
                self._retire(number)
        by_address: dict[tuple[str, int], list[int]] = {}
        for node in new.nodes.values():
            by_address.setdefault((node.host, node.port), []).append(node.node_id)
        for number, address in self._bootstrap.items():
            nodes = by_address.get(address, [])
            if len(nodes) == 1 and nodes[0] not in self._links and number in self._links:
                self._links[nodes[0]] = self._links.pop(number)

    def _retire(self, number: int) -> None:
        link = self._links.pop(number)
        if link.in_flight:
            self._retired.append(link)
        else:
            link.close()

    def _sweep(self) -> None:
        """Close what was not used for `connections.max.idle.ms`, and links to brokers that are gone."""
        loop = asyncio.get_running_loop()
        idle_ms = self.config.connections_max_idle_ms
        idle = idle_ms / 1000 if idle_ms >= 0 else float("inf")
        for link in list(self._links.values()):
            link.close_idle(loop.time() - idle)
        for link in [link for link in self._retired if not link.in_flight]:
            link.close()
            self._retired.remove(link)
        self._sweep_timer = loop.call_later(min(max(idle / 2, 0.01), _LONGEST_SWEEP_SECONDS), self._sweep)

    def _learned_versions(self, answer: ApiVersionsResponse) -> None:
        if answer.finalized_features_epoch >= self._features_epoch:
            self._features_epoch = answer.finalized_features_epoch
            self._features = {one.name: one.max_version_level for one in answer.finalized_features}

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClientClosed("the client was closed: make a new one")
