"""The admin client: everything that is asked or changed about a cluster."""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Self

from ottla.client.admin.cluster import ClusterAdmin
from ottla.client.admin.configs import ConfigsAdmin
from ottla.client.admin.group_offsets import GroupOffsetsAdmin
from ottla.client.admin.groups import GroupsAdmin
from ottla.client.admin.log_dirs import LogDirsAdmin
from ottla.client.admin.offsets import OffsetsAdmin
from ottla.client.admin.partitions import PartitionsAdmin
from ottla.client.admin.producers import ProducersAdmin
from ottla.client.admin.quotas import QuotasAdmin
from ottla.client.admin.scram import ScramAdmin
from ottla.client.admin.topics import TopicsAdmin
from ottla.client.cluster import Cluster
from ottla.client.config import AdminConfig, resolve
from ottla.client.errors import ClientClosed
from ottla.client.network import Network
from ottla.runtime import IdSource


class AsyncAdmin(
    TopicsAdmin,
    PartitionsAdmin,
    ConfigsAdmin,
    GroupsAdmin,
    GroupOffsetsAdmin,
    OffsetsAdmin,
    LogDirsAdmin,
    ClusterAdmin,
    ProducersAdmin,
    QuotasAdmin,
    ScramAdmin,
):
    """Ask and change what a cluster has, of Ottla or of Apache Kafka.

        import asyncio
        from ottla import AsyncAdmin
        from ottla.client.admin import NewTopic

        async def main():
            async with AsyncAdmin("localhost:9092") as admin:
                results = await admin.create_topics([NewTopic("orders", partitions=3)])
                results.raise_for_errors()
                for topic in await admin.list_topics():
                    print(topic.name, topic.partitions)

        asyncio.run(main())

    Calls about many things give `Results`: one value or error for each. The right broker is asked for each of them, and
    asked again when it turns out not to be the right one any more, for `timeout` seconds (`default.api.timeout.ms`
    where none are given). A change whose answer was lost may be sent twice; the second one then meets what the first
    did, such as TOPIC_ALREADY_EXISTS.

    Settings are Kafka's, as keywords or under their dotted names in `config`. Not safe to call from other threads than
    the loop's.
    """

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str] | None = None,
        *,
        config: Mapping[str, object] | None = None,
        network: Network | None = None,
        ids: IdSource | None = None,
        **settings: object,
    ) -> None:
        self.config = resolve(AdminConfig, bootstrap_servers, config, settings)
        self._default_timeout_seconds = self.config.default_api_timeout_ms / 1000
        self._request_timeout_seconds = self.config.request_timeout_ms / 1000
        self._network = network
        self._is_closed = False
        if ids is None:
            from ottla.runtime.real import SystemIds

            ids = SystemIds()
        self._ids = ids

    async def start(self) -> None:
        """Connect to the cluster; raises when no broker can be reached."""
        if self._is_closed:
            raise ClientClosed("this admin client was closed: make a new one")
        if self._network is None:
            from ottla.client.connections import Connections

            connections = Connections(self.config)
            connections.start()
            try:
                await connections.updated(Cluster(), self._default_timeout_seconds)
            except BaseException:
                await connections.close()
                raise
            self._network = connections

    async def close(self, timeout: float | None = None) -> None:
        """Close the connections, in so many seconds at most. What is still waited for fails; a second call does
        nothing."""
        self._is_closed = True
        network, self._network = self._network, None
        if network is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await network.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
