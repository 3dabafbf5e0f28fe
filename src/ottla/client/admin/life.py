"""The life of an admin client: its settings, its connections, and their end."""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Self

from ottla.client.admin.base import AdminPart
from ottla.client.closing import Closing
from ottla.client.cluster import Cluster
from ottla.client.config import AdminConfig, resolve
from ottla.client.errors import ClientClosed
from ottla.client.network import Network
from ottla.runtime import IdSource


class AdminLife(AdminPart):
    """What makes a client of the themes that it is put together with."""

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
        self._closing = Closing()
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
        """Close the connections, in so many seconds at most. What is still waited for fails; a second call
        waits for the first."""
        self._is_closed = True
        await self._closing.once(lambda: self._close(timeout), timeout)

    async def _close(self, timeout: float | None) -> None:
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
