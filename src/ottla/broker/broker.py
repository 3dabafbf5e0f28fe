"""One broker: its parts, put together, started and stopped in order.

start     lock the directories -> open the store -> load the logs -> bind the ports -> register, elect
          -> apply the image -> accept connections
shutdown  stop accepting -> let owed answers leave -> deregister -> close the logs cleanly -> close the store
crash     give back sockets, threads, store and locks, and nothing else: what a killed process leaves behind
"""

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ottla.broker import api
from ottla.broker.config import BrokerConfig
from ottla.broker.config_dynamic import DynamicConfig
from ottla.broker.coordinators import Coordinators
from ottla.broker.directories import DirectoryRegister, expect_store, join_cluster, open_first, open_others
from ottla.broker.dispatch import Dispatcher, registered_handlers
from ottla.broker.due_answers import DueAnswers
from ottla.broker.fetch_sessions import FetchSessions
from ottla.broker.markers import EndTransaction
from ottla.broker.producer_ids import ProducerIds
from ottla.broker.quotas.broker_quotas import BrokerQuotas
from ottla.broker.quotas.enforcement import Enforcement
from ottla.broker.server import Server
from ottla.cluster.broker_lifecycle import BrokerIdInUse, BrokerLifecycle
from ottla.cluster.controller import Controller, ControllerSettings
from ottla.cluster.image import ClusterImage, Endpoint
from ottla.cluster.layout import ensure_layout
from ottla.cluster.metadata import MetadataCache
from ottla.cluster.registry import CorruptNode
from ottla.cluster.requests import Charge, free_of_charge
from ottla.coordination.embedded import EmbeddedStore
from ottla.coordination.store import Store, StoreError
from ottla.groups.coordinator import GroupCoordinator
from ottla.log.cleaner import LogCleaner
from ottla.log.directory import LogDirectory
from ottla.log.manager import LogManager
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.replication.manager import ReplicaManager
from ottla.runtime import Clock, Disk, Executor, IdSource, Workbench
from ottla.runtime.helper import HelperWorkbench
from ottla.runtime.real import SystemClock, SystemIds, ThreadExecutor, usual_open_files
from ottla.runtime.real_disk import RealDisk
from ottla.runtime.workbench import LocalWorkbench
from ottla.transactions import TransactionCoordinator

if TYPE_CHECKING:
    from ottla.broker.http_pages import Watching

logger = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
STORE_FILE = "ottla-store.sqlite3"
# Compaction takes what requests leave of the processor: about a tenth of a thread's share where both want all of it.
CLEANER_NICENESS = 10

assert api.__all__, "importing the package registers the handlers"


class StartError(Exception):
    """The broker cannot start; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Leader:
    """Where the leader of a partition is, through one listener."""

    node_id: int
    leader_epoch: int
    host: str
    port: int
    rack: str | None


class Broker:
    """Everything that runs in one broker process, on one event loop.

    `start` and `shutdown` (or `crash`) are called once each, on the same loop; what is listed below exists from
    `start` on. One that need not be durable, for tests, starts faster, and a power cut may damage its store.
    `busy_with` says what keeps clients from being served: starting or ending; empty while they are. An executor that is
    handed in belongs to whoever did; `open_store` is given the path of the store's file.
    """

    controller: Controller
    replicas: ReplicaManager
    producer_ids: ProducerIds
    coordinators: Coordinators

    def __init__(
        self,
        config: BrokerConfig,
        *,
        disk: Disk | None = None,
        clock: Clock | None = None,
        ids: IdSource | None = None,
        executor: Executor | None = None,
        open_store: Callable[[str], Awaitable[Store]] | None = None,
        is_durable: bool = True,
    ) -> None:
        self.config = config
        self._has_own_store = open_store is None
        self._open_store = open_store or (lambda path: EmbeddedStore.open(path, is_durable=is_durable))
        self.settings = DynamicConfig(config)
        self.endpoints: tuple[Endpoint, ...] = ()
        self.http_endpoints: tuple[Endpoint, ...] = ()
        self.busy_with = "starting"
        self._watching = _watching(self)
        handlers = registered_handlers()
        self.dispatcher = Dispatcher(self, self._watching.watched(handlers) if self._watching else handlers)
        self.clock = clock or SystemClock()
        self._ids = ids or SystemIds()
        self._disk = disk or RealDisk()
        self._disk.open_files.limit = config.max_open_files or usual_open_files()
        # Neither has a thread or a process before its first use. Both end with the broker.
        self._helpers = (ThreadExecutor(), HelperWorkbench(CLEANER_NICENESS))
        self._executor = executor or self._helpers[0]
        self._workbench: Workbench = LocalWorkbench(self._executor, self._disk)
        if disk is None and executor is None and sys.executable:
            self._workbench = self._helpers[1]
        self.due_answers = DueAnswers()
        self.fetch_sessions = FetchSessions(config.fetch_session_slots, self.clock, self._ids)
        self.quotas = BrokerQuotas(self.clock, config.quota_windows, config.controller_quota_windows)
        self._stack = contextlib.AsyncExitStack()
        self._stack_of_crash = contextlib.AsyncExitStack()
        self._applying = asyncio.Lock()
        self._image_changed = asyncio.Event()
        self.all_directories_failed = asyncio.Event()
        self.cleaner: LogCleaner | None = None
        self.transaction_enders: dict[str, EndTransaction] = {}

    # What handlers ask

    @property
    def logs(self) -> LogManager:
        return self._logs

    @property
    def groups(self) -> GroupCoordinator:
        return self.coordinators.groups

    @property
    def transactions(self) -> TransactionCoordinator:
        return self.coordinators.transactions

    @property
    def image(self) -> ClusterImage:
        """The cluster as this broker knows it."""
        return self._metadata.image

    def leader_of(self, topic: str | None, index: int, listener: str) -> Leader | None:
        """Where the leader of a partition can be reached through a listener."""
        partition = None if topic is None else self.image.partition(topic, index)
        registration = None if partition is None else self.image.brokers.get(partition.leader)
        endpoint = None if registration is None else registration.endpoint(listener)
        if partition is None or registration is None or endpoint is None:
            return None
        return Leader(partition.leader, partition.leader_epoch, endpoint.host, endpoint.port, registration.rack)

    async def create_missing_topics(self, names: Sequence[str], charge: Charge = free_of_charge) -> None:
        """Create topics that were asked for; one that cannot be created stays unknown to whoever asked."""
        results = await self.controller.create_topics(list(map(self.coordinators.new_topic, names)), charge=charge)
        for result in results:
            if result.error not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                logger.warning("topic %s was asked for and cannot be created: %s", result.name, result.message)
        await self.image_applied()

    async def image_applied(self) -> None:
        """Return once this broker holds what the image of this moment gives it."""
        wanted = self.image.version
        async with self._applying:
            if self.replicas.applied_version < wanted:
                self._apply_settings()
                await self._enforcement.apply(self.image.quotas)
                await self.replicas.apply(self.image)
                self.coordinators.follow(self.image)

    def _apply_settings(self) -> None:
        """Go by the settings that were changed while the broker runs; those of topics follow with their logs."""
        if self.settings.update(self.image.configs):
            config = self.settings.config
            self._server.update_connection_limits(config.limits)
            if self.cleaner is not None and config.cleaner is not None:
                self.cleaner.settings = config.cleaner
            self._logs.settings = replace(
                self._logs.settings, producer_id_expiration_ms=config.interval_ms("producer.id.expiration.ms")
            )

    # Starting

    async def start(self) -> None:
        """Get everything ready for clients, or raise `StartError` with nothing left behind."""
        try:
            await self._start()
        except (OSError, StoreError, KafkaError, BrokerIdInUse, CorruptNode) as error:
            await self._stack.aclose()
            of_store = isinstance(error, StoreError | CorruptNode) and STORE_FILE not in str(error)
            place = f"{os.path.join(self.config.log_directories[0], STORE_FILE)}: " if of_store else ""
            raise StartError(f"{place}{error}") from error
        except BaseException:
            await self._stack.aclose()
            raise

    async def _start(self) -> None:
        for each in self._helpers:
            self._stack.callback(each.shutdown)
            self._stack_of_crash.callback(each.shutdown)
        if self._watching is not None:
            self._stack.push_async_callback(self._watching.close)
            self._stack_of_crash.push_async_callback(self._watching.close)
            self.http_endpoints = await self._watching.start(asyncio.get_running_loop())
        store_path = os.path.join(self.config.log_directories[0], STORE_FILE)
        if self._has_own_store:
            expect_store(self._disk, store_path, self.config.log_directories)
        first = open_first(self._disk, self.config.log_directories[0], self.config.node_id, self._ids)
        self._close_at_end(first)
        store = await self._open_store(store_path)
        self._stack.push_async_callback(store.close)
        self._stack_of_crash.push_async_callback(store.close)
        cluster_id = await ensure_layout(store, self._ids, first.cluster_id or None)
        join_cluster([first], cluster_id)
        directories = await self._open_others(store, first)
        self._metadata = MetadataCache(store)
        server = self._server = Server(self.dispatcher.dispatch, self.config.limits, self._executor, self.due_answers)
        self._enforcement = Enforcement(self.quotas, self.dispatcher, server)
        self._stack_of_crash.callback(lambda: self.coordinators.stop())
        self._stack.push_async_callback(server.shutdown)
        self._stack_of_crash.push_async_callback(server.shutdown, 0.0)
        self.endpoints = self.config.told_to_clients(server.bind(self.config.listeners))
        self.busy_with = "loading the logs"
        await self._load_logs(directories)
        self.busy_with = "joining the cluster"
        lifecycle = self._join_cluster(store)
        if self._watching is not None:
            self._watching.attach(server, self._logs, self._executor)
        self.coordinators = Coordinators(self, self._ids, self._executor)
        self.producer_ids = ProducerIds(self.controller.next_producer_id_block)
        await lifecycle.start()
        self._stack.push_async_callback(lifecycle.shutdown)
        self._stack.push_async_callback(self._stop_serving, server)
        self._metadata.subscribe(lambda old, new: self._image_changed.set())
        await self.image_applied()
        for log in self._logs.all_logs():
            if log.topic_partition.topic not in self.image.topics:
                logger.warning("%s is no partition of any topic, and is not served", log.path)
        await self._forget_missing()
        self._image_changed.set()
        self._in_background(self._follow_image(lifecycle), "image")
        self._in_background(self._logs.run(), "logs")
        self._in_background(self.transactions.run(), "transactions")
        self._start_cleaner()
        server.start()
        self.busy_with = ""

    def _start_cleaner(self) -> None:
        settings = self.settings.config.cleaner
        if settings is not None:
            self.cleaner = LogCleaner(
                self._logs,
                disk=self._disk,
                clock=self.clock,
                executor=self._executor,
                workbench=self._workbench,
                ids=self._ids,
                settings=settings,
            )
            self._in_background(self.cleaner.run(), "cleaner")

    async def _open_others(self, store: Store, first: LogDirectory) -> list[LogDirectory]:
        self._register = await DirectoryRegister.read(store, first)
        paths = self.config.log_directories[1:]
        others = open_others(self._disk, paths, first, self._register.known, self._ids, self._close_at_end)
        directories = [first, *others]
        join_cluster(directories, first.cluster_id)
        await self._register.update(directories)
        return directories

    async def _forget_missing(self) -> None:
        """Nothing that should be here is missing, so nothing was in the directories that are."""
        if self._register.missing and not self.replicas.offline_count:
            await self._register.forget_missing()
            self._logs.is_missing_some = False

    def _close_at_end(self, directory: LogDirectory) -> None:
        self._stack.callback(directory.close)
        self._stack_of_crash.callback(directory.close)

    def _directory_failed(self, directory: LogDirectory) -> None:
        """Called in the middle of whatever noticed it, so the consequences wait for the next turn of the loop."""
        logger.error("log directory %s failed and is out of use: %s", directory.path, directory.failure)

        def take_offline() -> None:
            self.replicas.take_offline(directory)
            self._image_changed.set()
            if all(each.failure is not None for each in self._logs.directories):
                logger.critical("every log directory has failed")
                self.all_directories_failed.set()

        asyncio.get_running_loop().call_soon(take_offline)

    async def _load_logs(self, directories: list[LogDirectory]) -> None:
        self._logs = LogManager(
            directories,
            disk=self._disk,
            clock=self.clock,
            executor=self._executor,
            ids=self._ids,
            settings=self.config.log_manager_settings(),
            is_missing_some=bool(self._register.missing),
        )
        await self._logs.load(lambda topic: self.settings.topic_config({}))
        self._stack.push_async_callback(self._logs.shutdown)
        if all(directory.failure is not None for directory in directories):
            raise StartError(f"no log directory can be used: {directories[0].failure}")
        for directory in directories:
            if directory.failure is not None:
                logger.error("log directory %s cannot be used: %s", directory.path, directory.failure)
            directory.on_failure = self._directory_failed
        self.replicas = ReplicaManager(
            self.config.node_id, self._logs, self.clock, self._executor, self.settings.topic_config
        )

    def _join_cluster(self, store: Store) -> BrokerLifecycle:
        config = self.config
        self.controller = Controller(
            store,
            self._metadata,
            node_id=config.node_id,
            ids=self._ids,
            settings=ControllerSettings(
                num_partitions=config.num_partitions,
                default_replication_factor=config.default_replication_factor,
                delete_topic_enable=config.delete_topics,
                unclean_leader_election_enable=self.settings.topic_config({}).unclean_leader_election_enable,
            ),
            rules=self.settings.rules(),
        )
        return BrokerLifecycle(
            store,
            self._metadata,
            self.controller,
            node_id=config.node_id,
            endpoints=self.endpoints,
            ids=self._ids,
            rack=config.rack,
        )

    def _in_background(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)

        async def stop() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        self._stack.push_async_callback(stop)
        self._stack_of_crash.push_async_callback(stop)

    async def _follow_image(self, lifecycle: BrokerLifecycle) -> None:
        """Hold what the image gives this broker, and tell the cluster what it cannot hold."""
        is_done = True
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if is_done else RETRY_SECONDS):
                    await self._image_changed.wait()
            self._image_changed.clear()
            is_done = False
            try:
                await self.image_applied()
                async with self._applying:
                    await self.replicas.open_missing()
                    self.coordinators.follow(self.image)
                await lifecycle.report_offline(self.replicas.offline_partitions())
                is_done = not self.replicas.has_missing
            except (KafkaError, OSError, StoreError) as error:
                logger.error("the cluster's image could not be applied; it will be tried again: %s", error)

    # Stopping

    async def _stop_serving(self, server: Server) -> None:
        """Hear no more, answer what is owed, then close."""
        server.stop_reading()
        self.replicas.release_waits()
        self.coordinators.stop()
        await server.shutdown()
        await self.dispatcher.finish()
        await self.replicas.stop()

    async def shutdown(self) -> None:
        """Stop in good order; the next start needs no recovery."""
        self.busy_with = "shutting down"
        await self._stack.aclose()

    async def crash(self) -> None:
        """End as a killed process ends: nothing is answered, flushed or checkpointed any more; a start recovers.

        Files stay open: whoever owns the disk closes them.
        """
        self._stack.pop_all()
        await self._stack_of_crash.aclose()


def _watching(broker: Broker) -> "Watching | None":
    """What watches a broker is loaded only where somebody does: it would take time from every start."""
    if not broker.config.http_listeners:
        return None
    from ottla.broker.http_pages import Watching

    return Watching(broker)
