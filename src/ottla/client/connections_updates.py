"""When to ask for metadata, for which topics, and who waits for the answer.

    nothing to do --(age, request_update)--> all watched topics --> answer --> nothing to do
         |                                        ^      |
         +--(a new topic is watched)--> that topic       +--(no answer, or an incomplete one)--> back off, again

What must stay true:
- One question at a time. What is wanted while it is under way is asked after it.
- Every answer makes a newer cluster, also one that says nothing new, so that whoever waits looks again.
- An answer that is incomplete (a leader is being elected, a topic created) is asked for again by itself.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from ottla.client.cluster import Cluster, Node
from ottla.client.config import ClientConfig
from ottla.client.connections_link import Backoff
from ottla.client.connections_metadata import Known, learned, with_leader, without_topics
from ottla.client.errors import (
    AuthenticationFailed,
    BrokerUnavailable,
    ClientClosed,
    ConfigError,
    OttlaError,
)
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

logger = logging.getLogger(__name__)

Changed = Callable[[Cluster, Cluster], None]

_FINAL = (AuthenticationFailed, ConfigError)


class AskForMetadata(Protocol):
    def __call__(self, request: MetadataRequest, *, from_bootstrap: bool) -> Awaitable[MetadataResponse]: ...


class Updates:
    """`replaced` is called with the old and the new cluster before everybody else is."""

    def __init__(self, config: ClientConfig, retry: Backoff, ask: AskForMetadata, replaced: Changed) -> None:
        self.known = Known()
        self._config = config
        self._retry = retry
        self._ask = ask
        self._listeners: list[Changed] = [replaced]
        self._watched: dict[str, int] = {}
        self._missing: set[str] = set()
        self._fresh: dict[str, None] = {}
        self._wants_all_topics = False
        self._is_due = True
        self._rebootstraps = False
        self._need = asyncio.Event()
        self._waiters: list[asyncio.Future[None]] = []
        self._last_error: OttlaError | None = None
        self._last_asked = float("-inf")
        self._last_answer = float("-inf")
        self._failing_since = float("inf")
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    # What is wanted

    def listen(self, changed: Changed) -> None:
        self._listeners.append(changed)

    def watch(self, names: Iterable[str]) -> None:
        new = []
        for name in names:
            watchers = self._watched.get(name, 0)
            self._watched[name] = watchers + 1
            if not watchers:
                new.append(name)
        if new and not self._wants_all_topics:
            self._fresh.update(dict.fromkeys(new))
            self._wake()

    def unwatch(self, names: Iterable[str]) -> None:
        gone = []
        for name in names:
            watchers = self._watched.get(name, 0)
            if watchers > 1:
                self._watched[name] = watchers - 1
            elif watchers:
                gone.append(name)
                del self._watched[name]
                self._fresh.pop(name, None)
        if not self._wants_all_topics:
            self._replace(without_topics(self.known, gone))

    def watch_all(self, wanted: bool) -> None:
        if wanted == self._wants_all_topics:
            return
        self._wants_all_topics = wanted
        if wanted:
            self.request()
        else:
            self._replace(without_topics(self.known, [n for n in self.known.cluster.topics if n not in self._watched]))

    def request(self) -> None:
        self._is_due = True
        self._wake()

    def learn_leader(
        self, topic: str, partition: int, leader: int, leader_epoch: int, endpoints: Iterable[Node]
    ) -> None:
        self._replace(with_leader(self.known, topic, partition, leader, leader_epoch, endpoints))

    async def newer(self, than: Cluster, timeout_seconds: float) -> Cluster:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_seconds
        self.start()
        while self.known.cluster.version <= than.version:
            if self._is_closed:
                raise ClientClosed("the client was closed: make a new one")
            waiter: asyncio.Future[None] = loop.create_future()
            self._waiters.append(waiter)
            try:
                async with asyncio.timeout_at(deadline):
                    await waiter
            except TimeoutError:
                raise BrokerUnavailable(self._why_nothing_came(timeout_seconds)) from self._last_error
            finally:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
        return self.known.cluster

    def failed_to_ask(self, error: OttlaError) -> None:
        """One of the brokers that might be asked could not be reached: for the text of what may come of it."""
        self._last_error = error

    def _why_nothing_came(self, timeout_seconds: float) -> str:
        servers = ", ".join(self._config.bootstrap_servers)
        text = f"nothing was learned about the cluster at {servers} within {timeout_seconds:.1f} s"
        return f"{text}: {self._last_error}" if self._last_error is not None else text

    # The task

    def start(self) -> None:
        if self._task is None and not self._is_closed:
            self._task = asyncio.get_running_loop().create_task(self._keep_up())

    async def close(self) -> None:
        self._is_closed = True
        task, self._task = self._task, None
        self._listeners.clear()
        self._tell_waiters(ClientClosed("the client was closed: make a new one"))
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    def _wake(self) -> None:
        self._need.set()

    async def _keep_up(self) -> None:
        attempt = 0
        while True:
            await self._until_needed()
            try:
                await self._update()
            except OttlaError as error:
                attempt += 1
                self._is_due = True
                self._failed(error, attempt)
            else:
                attempt = attempt + 1 if self.known.is_incomplete else 0
                self._is_due |= self.known.is_incomplete
            if attempt:
                await self._until(asyncio.get_running_loop().time() + self._retry.seconds(attempt - 1))

    async def _until_needed(self) -> None:
        """Until something is wanted that may be asked for now, or what is known is too old."""
        old_at = self._last_answer + self._config.metadata_max_age_ms / 1000
        while not self._is_due and not self._fresh:
            self._need.clear()
            try:
                async with asyncio.timeout_at(old_at):
                    await self._need.wait()
            except TimeoutError:
                self._is_due = True
        await self._until(self._last_asked + self._config.retry_backoff_ms / 1000)

    async def _until(self, time: float) -> None:
        """Wait, unless somebody wants a topic that nothing was asked about yet."""
        while not self._fresh:
            self._need.clear()
            try:
                async with asyncio.timeout_at(time):
                    await self._need.wait()
            except TimeoutError:
                return

    async def _update(self) -> None:
        loop = asyncio.get_running_loop()
        only_fresh = not self._is_due and not self._wants_all_topics
        names = sorted(self._fresh if only_fresh else self._watched)
        self._is_due = False
        self._fresh.clear()
        self._last_asked = loop.time()
        wanted = None if self._wants_all_topics else [MetadataRequestTopic(name=name) for name in names]
        creates = self._config.creates_topics and wanted is not None
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=creates)
        answer = await self._ask(request, from_bootstrap=self._must_rebootstrap())
        if answer.error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
            self._rebootstraps = True
            raise BrokerUnavailable("the broker asks to begin again with bootstrap.servers")
        if not answer.brokers:
            raise BrokerUnavailable("the broker knows of no brokers yet")
        known = learned(self.known, answer, only_some_topics=only_fresh)
        self._note_missing(known)
        self._rebootstraps = False
        self._last_answer = loop.time()
        self._failing_since = float("inf")
        self._last_error = None
        told = () if self._wants_all_topics else (*known.cluster.topics, *known.errors)
        forgotten = [name for name in told if name not in self._watched]
        self._replace(without_topics(known, forgotten))
        self._tell_waiters(None)

    def _note_missing(self, known: Known) -> None:
        """Say once of a topic that it is not there, and when it came."""
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        missing = {name for name in self._watched if known.errors.get(name) == code}
        for name in sorted(missing - self._missing):
            logger.info("topic %s does not exist: it is asked for again until it does", name)
        for name in sorted(name for name in self._missing - missing if name in known.cluster.topics):
            logger.info("topic %s exists now", name)
        self._missing = missing

    def _must_rebootstrap(self) -> bool:
        if self._config.metadata_recovery_strategy != "rebootstrap":
            return False
        failing_for = asyncio.get_running_loop().time() - self._failing_since
        return self._rebootstraps or failing_for > self._config.metadata_recovery_rebootstrap_trigger_ms / 1000

    def _failed(self, error: OttlaError, attempt: int) -> None:
        logger.log(logging.WARNING if attempt == 1 else logging.DEBUG, "no metadata: %s", error)
        self._last_error = error
        self._failing_since = min(self._failing_since, asyncio.get_running_loop().time())
        if isinstance(error, _FINAL):
            self._tell_waiters(error)

    def _replace(self, known: Known) -> None:
        old, self.known = self.known, known
        if old.cluster is known.cluster:
            return
        for listener in list(self._listeners):
            try:
                listener(old.cluster, known.cluster)
            except Exception:
                logger.exception("a listener failed; the cluster is the new one all the same")

    def _tell_waiters(self, error: OttlaError | None) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(type(error)(*error.args))
