"""A broker's membership in the cluster: it joins, it may be the controller, it leaves in order.

    start     layout -> metadata -> registration (ephemeral) -> runs for controller -> a controller admits it
    shutdown  marks itself as leaving -> leaderships move to others -> leaves office -> deregisters

When the session expires, the broker is out: its node is gone and others lead what it led. It opens another session
and joins again, under a new epoch.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace

from ottla.cluster import paths, registry
from ottla.cluster.controller import Controller
from ottla.cluster.image import BrokerRegistration, ClusterImage, Endpoint
from ottla.cluster.layout import ensure_layout
from ottla.cluster.metadata import MetadataCache
from ottla.coordination.store import ConnectionLost, NodeExists, Store, StoreError, Watch
from ottla.runtime import IdSource

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 0.5


class BrokerIdInUse(Exception):
    """Another broker is registered under this id."""


class BrokerLifecycle:
    """Owns the registration, and starts and stops the metadata cache and the controller it is handed."""

    def __init__(
        self,
        store: Store,
        metadata: MetadataCache,
        controller: Controller,
        *,
        node_id: int,
        endpoints: tuple[Endpoint, ...],
        ids: IdSource,
        rack: str | None = None,
        registration_timeout_seconds: float = 30.0,
    ) -> None:
        self._store = store
        self._metadata = metadata
        self._controller = controller
        self._ids = ids
        self._registration_timeout_seconds = registration_timeout_seconds
        self._registration = BrokerRegistration(
            node_id=node_id,
            endpoints=endpoints,
            rack=rack,
            epoch=-1,
            incarnation_id=ids.uuid(),
        )
        self._expiry: Watch | None = None
        self._rejoining: asyncio.Task[None] | None = None

    @property
    def registration(self) -> BrokerRegistration:
        """This broker as it is registered; its epoch is -1 before `start`."""
        return self._registration

    async def start(self) -> ClusterImage:
        """Join the cluster; returns the first image in which a controller has admitted this broker."""
        await ensure_layout(self._store, self._ids)
        await self._metadata.start()
        try:
            self._expiry = self._store.on_session_expired(self._session_expired)
            await self._register()
            await self._controller.start()
            return await self._metadata.wait_for(self._is_admitted)
        except BaseException:
            await self._stop_parts()
            raise

    async def report_offline(self, partitions: Mapping[bytes, tuple[int, ...]]) -> None:
        """Tell the cluster which replicas on this broker are out of use, by topic id, if that is news."""
        if partitions == self._registration.offline_partitions:
            return
        changed = replace(self._registration, offline_partitions=dict(partitions))
        await self._store.set(paths.broker(changed.node_id), registry.encode_broker(changed))
        self._registration = replace(self._registration, offline_partitions=dict(partitions))

    async def shutdown(self, timeout_seconds: float = 30.0) -> None:
        """Leave in order, waiting at most that long for others to take over what this broker leads."""
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._hand_over()
        except (StoreError, TimeoutError) as error:
            logger.warning("leaderships could not be handed over before the shutdown: %r", error)
        await self._stop_parts()
        try:
            await self._store.delete(paths.broker(self._registration.node_id))
        except StoreError as error:
            logger.info("deregistering failed, the session's end will do it: %s", error)

    async def _stop_parts(self) -> None:
        if self._expiry is not None:
            self._expiry.close()
        if self._rejoining is not None:
            self._rejoining.cancel()
            await asyncio.gather(self._rejoining, return_exceptions=True)
        await self._controller.close()
        await self._metadata.close()

    def _is_admitted(self, image: ClusterImage) -> bool:
        return image.admitted.get(self._registration.node_id) == self._registration.epoch

    async def _register(self) -> None:
        """Create this broker's node, or find that it was created; wait for a node of an earlier life to go."""
        node_id = self._registration.node_id
        try:
            async with asyncio.timeout(self._registration_timeout_seconds):
                while not await self._try_to_register():
                    await self._metadata.wait_for(lambda image: node_id not in image.brokers)
        except TimeoutError:
            message = f"another broker is registered as {node_id}; give each broker a node.id of its own"
            raise BrokerIdInUse(message) from None
        logger.info("broker %d is registered, epoch %d", node_id, self._registration.epoch)

    async def _try_to_register(self) -> bool:
        path = paths.broker(self._registration.node_id)
        try:
            await self._store.create(path, registry.encode_broker(self._registration), is_ephemeral=True)
        except (NodeExists, ConnectionLost) as error:
            logger.info("is broker %d registered already? %s", self._registration.node_id, error)
        image = await self._metadata.refresh([path])
        found = image.brokers.get(self._registration.node_id)
        if found is None or found.incarnation_id != self._registration.incarnation_id:
            return False
        self._registration = found
        return True

    async def _hand_over(self) -> None:
        node_id = self._registration.node_id
        if not self._can_hand_over(self._metadata.image):
            return
        leaving = replace(self._registration, is_shutting_down=True)
        await self._store.set(paths.broker(node_id), registry.encode_broker(leaving))
        await self._metadata.wait_for(lambda image: not self._can_hand_over(image))

    def _can_hand_over(self, image: ClusterImage) -> bool:
        """Whether this broker leads a partition that another could lead."""
        node_id = self._registration.node_id
        others = {broker.node_id for broker in image.active_brokers() if broker.node_id != node_id}
        return bool(others) and any(
            partition.leader == node_id and not others.isdisjoint(partition.isr)
            for topic in image.topics.values()
            for partition in topic.partitions
        )

    def _session_expired(self) -> None:
        logger.warning(
            "the session with the coordination store expired; broker %d joins again", self.registration.node_id
        )
        self._controller.session_expired()
        self._rejoining = asyncio.create_task(self._rejoin(), name="rejoin")

    async def _rejoin(self) -> None:
        while True:
            try:
                await self._store.reopen()
                await self._metadata.reload()
                # A registration of the session before must not pass for this one's.
                self._registration = replace(self._registration, incarnation_id=self._ids.uuid())
                await self._register()
                return
            except (StoreError, BrokerIdInUse) as error:
                logger.warning("joining again failed and will be tried again: %s", error)
                await asyncio.sleep(_RETRY_SECONDS)
