"""The way to one broker: a connection while there is one, and when to try again while there is none.

    ask -> connection is there, nobody waits, no quota is used up -> sent now
             otherwise -> behind all that wait -> sent in this order once the connection is ready

A failed attempt makes the next one wait: `reconnect.backoff.ms`, doubled each time up to `reconnect.backoff.max.ms`,
with a fifth of jitter; the time that connecting may take grows in the same way. Those who want the connection meanwhile
share one attempt, and its error.

Requests leave in the order in which they were asked, also those that had to wait: an idempotent producer depends on it.
"""

import asyncio
import logging
import os
from collections import deque
from typing import Any

from ottla.client.config import ClientConfig
from ottla.client.connections_answers import copy_of
from ottla.client.connections_opening import Opening
from ottla.client.connections_parting import kept_open, part
from ottla.client.connections_versions import Versions
from ottla.client.connections_wire import Connection
from ottla.client.errors import AuthenticationFailed, BrokerUnavailable, ClientClosed, InvalidAnswer, OttlaError
from ottla.protocol.message import Request
from ottla.runtime import IdSource

logger = logging.getLogger(__name__)

NEVER = float("inf")
_DICE = 1_000_000


def doubled(first_ms: int, longest_ms: int, attempt: int) -> float:
    """Seconds that double with every attempt, from the first to the longest."""
    return min(first_ms * float(2 ** min(attempt, 32)), max(longest_ms, first_ms)) / 1000


class Backoff:
    """Waits that double up to a limit, with a fifth of jitter to either side."""

    def __init__(self, first_ms: int, longest_ms: int, ids: IdSource) -> None:
        self._first_ms = first_ms
        self._longest_ms = longest_ms
        self._ids = ids

    def seconds(self, attempt: int) -> float:
        """How long to wait before attempt number `attempt` + 1; the first has number 0."""
        return doubled(self._first_ms, self._longest_ms, attempt) * (0.8 + 0.4 * self._ids.below(_DICE) / _DICE)


class _Pending:
    """A request that waits for its connection. `deadline` is None where its time begins when it is sent."""

    __slots__ = ("deadline", "future", "max_version", "request", "timer")

    def __init__(self, request: Request, deadline: float | None, max_version: int | None) -> None:
        self.request = request
        self.deadline = deadline
        self.max_version = max_version
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.timer: asyncio.TimerHandle | None = None

    def send(self, connection: Connection, now: float) -> None:
        try:
            left = None if self.deadline is None else max(self.deadline - now, 0.0)
            connection.ask(self.request, left, self.max_version, self.future)
        except OttlaError as error:
            self.fail(error)

    def fail(self, error: OttlaError) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if not self.future.done():
            self.future.set_exception(copy_of(error))


class Link:
    """`connection` is None while there is none. `failures` counts the attempts that failed since the last success."""

    def __init__(self, host: str, port: int, opening: Opening, config: ClientConfig, ids: IdSource) -> None:
        self.host = host
        self.port = port
        self.connection: Connection | None = None
        self.failures = 0
        self.retry_at = 0.0
        self.last_error: OttlaError | None = None
        self._opening = opening
        self._backoff = Backoff(config.reconnect_backoff_ms, config.reconnect_backoff_max_ms, ids)
        self._setup_ms = config.socket_connection_setup_timeout_ms
        self._setup_max_ms = config.socket_connection_setup_timeout_max_ms
        self._request_timeout = config.request_timeout_ms / 1000
        self._attempt: asyncio.Task[Connection] | None = None
        self._pending: deque[_Pending] = deque()
        self._patience: asyncio.TimerHandle | None = None
        self._renewal: asyncio.TimerHandle | None = None
        self._versions: Versions | None = None
        self._parting: asyncio.Task[None] | None = None
        self._process = os.getpid()
        self._is_closed = False

    @property
    def name(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def in_flight(self) -> int:
        """What waits for an answer, or to be sent."""
        return len(self._pending) + (0 if self.connection is None else self.connection.in_flight)

    @property
    def versions(self) -> Versions | None:
        """What the broker told of itself on its last connection."""
        return self._versions

    @property
    def is_connecting(self) -> bool:
        return self._attempt is not None

    # Asking

    @property
    def open_connection(self) -> Connection | None:
        """The connection, where what is sent on it now overtakes nobody and breaks no quota."""
        connection = self.connection
        return None if connection is None or connection.throttled_until or self._pending else connection

    def ask(self, request: Request, timeout_seconds: float | None, max_version: int | None) -> "asyncio.Future[Any]":
        """Send it now, or as soon as all that came before it are sent."""
        if self._is_closed:
            raise ClientClosed("the client was closed: make a new one")
        loop = asyncio.get_running_loop()
        deadline = None if timeout_seconds is None else loop.time() + timeout_seconds
        pending = _Pending(request, deadline, max_version)
        patience = self._request_timeout if timeout_seconds is None else timeout_seconds
        pending.timer = loop.call_later(patience, self._expire, pending)
        self._pending.append(pending)
        self._advance()
        return pending.future

    def _advance(self) -> None:
        """Send what waits; or see to it that it can be sent."""
        connection = self.connection
        if connection is None:
            self._begin_attempt()
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        if connection.throttled_until > now:
            if self._patience is None:
                self._patience = loop.call_at(connection.throttled_until, self._patience_over)
            return
        connection.throttled_until = 0.0
        while self._pending and self.connection is connection:
            pending = self._pending.popleft()
            if pending.timer is not None:
                pending.timer.cancel()
            if not pending.future.done():
                pending.send(connection, now)

    def _patience_over(self) -> None:
        self._patience = None
        if self._pending:
            self._advance()

    def _expire(self, pending: _Pending) -> None:
        self._pending.remove(pending)
        connection = self.connection
        if connection is not None and connection.throttled_until:
            text = f"{self.name} asks for patience, a quota is used up: raise the quota, or send less"
        else:
            text = self._no_connection()
        pending.fail(BrokerUnavailable(text))

    def _no_connection(self) -> str:
        reason = f": {self.last_error}" if self.last_error is not None else ""
        return f"there was no connection to {self.name} in time{reason}"

    def _fail_pending(self, error: OttlaError) -> None:
        pending, self._pending = self._pending, deque()
        for one in pending:
            one.fail(error)

    # Connecting

    async def connected(self, timeout_seconds: float) -> Connection:
        """The connection, after one attempt at most; what kept it from being made as an OttlaError."""
        if self._is_closed:
            raise ClientClosed("the client was closed: make a new one")
        if self.connection is not None:
            return self.connection
        try:
            async with asyncio.timeout(timeout_seconds):
                return await asyncio.shield(self._begin_attempt())
        except TimeoutError:
            raise BrokerUnavailable(self._no_connection()) from None
        except asyncio.CancelledError:
            if self._is_closed:
                raise ClientClosed("the client was closed: make a new one") from None
            raise

    async def reached(self, timeout_seconds: float) -> None:
        """Return when what is sent then overtakes nobody and breaks no quota; raises as `connected` does."""
        while self.open_connection is None:
            connection = await self.connected(timeout_seconds)
            wait = connection.throttled_until - asyncio.get_running_loop().time()
            if wait > 0:
                await asyncio.sleep(wait)
            self._advance()

    def _begin_attempt(self) -> "asyncio.Task[Connection]":
        """The one that is under way, or a new one."""
        if self._attempt is None:
            self._attempt = asyncio.get_running_loop().create_task(self._connect())
            self._attempt.add_done_callback(_retrieve)
        return self._attempt

    async def _connect(self) -> Connection:
        loop = asyncio.get_running_loop()
        try:
            wait = self.retry_at - loop.time()
            if wait > 0:
                await asyncio.sleep(wait)
            timeout = doubled(self._setup_ms, self._setup_max_ms, self.failures)
            connection = await self._opening.open(self.host, self.port, timeout, self._lost)
        except OttlaError as error:
            self._failed(error)
            raise
        finally:
            self._attempt = None
        return self._ready(connection)

    def _ready(self, connection: Connection) -> Connection:
        self.connection = connection
        self._versions = connection.versions
        self.failures = 0
        self.last_error = None
        if connection.reauthenticate_at < NEVER:
            self._renewal = asyncio.get_running_loop().call_at(connection.reauthenticate_at, self._begin_renewal)
        self._advance()
        return connection

    def _begin_renewal(self) -> None:
        """What the broker was told of the client holds no longer: tell it anew, before it hangs up.

        What is in flight is answered first; what comes meanwhile waits, as for a connection that is being made.
        """
        connection, self.connection = self.connection, None
        if connection is not None:
            self._attempt = asyncio.get_running_loop().create_task(self._renew(connection))
            self._attempt.add_done_callback(_retrieve)

    async def _renew(self, connection: Connection) -> Connection:
        connection.reauthenticate_at = NEVER
        try:
            await self._opening.authenticate(connection)
        except OttlaError as error:
            connection.end(error)
            self._failed(error)
            raise
        except BaseException:
            connection.end(ClientClosed("the client was closed: make a new one"))
            raise
        finally:
            self._attempt = None
        return self._ready(connection)

    def _failed(self, error: OttlaError) -> None:
        loop = asyncio.get_running_loop()
        level = logging.WARNING if self.failures == 0 else logging.DEBUG
        logger.log(level, "no connection to %s: %s", self.name, error)
        self.retry_at = loop.time() + self._backoff.seconds(self.failures)
        self.failures += 1
        self.last_error = error
        self._fail_pending(error)

    def _lost(self, connection: Connection) -> None:
        """The next attempt waits for the first of the backoffs, also when the broker had been there."""
        if self.connection is not connection:
            return
        self._forget_connection()
        self.retry_at = asyncio.get_running_loop().time() + self._backoff.seconds(0)
        if isinstance(connection.ended_by, BrokerUnavailable | InvalidAnswer | AuthenticationFailed):
            self.last_error = connection.ended_by
            logger.info("lost the connection to %s: %s", self.name, connection.ended_by)
        if self._pending:
            self._advance()

    def close_idle(self, unused_since: float) -> bool:
        """Close a connection that nobody has used since then and that owes nothing; answers whether it did."""
        connection = self.connection
        if connection is None or connection.in_flight or connection.last_used > unused_since:
            return False
        self._forget_connection()
        connection.end(ClientClosed("the connection was idle"))
        return True

    def close(self) -> None:
        self._is_closed = True
        if self._attempt is not None:
            self._attempt.cancel()
        connection = self.connection
        self._forget_connection()
        closed = ClientClosed("the client was closed: make a new one")
        self._fail_pending(closed)
        if connection is None:
            return
        # In a child of the process, the connection is not the child's to part from.
        kept = kept_open(connection) if os.getpid() == self._process else None
        connection.end(closed)
        if kept is not None:
            self._parting = asyncio.get_running_loop().create_task(part(kept))

    def _forget_connection(self) -> None:
        self.connection = None
        for timer in (self._renewal, self._patience):
            if timer is not None:
                timer.cancel()
        self._renewal = self._patience = None

    async def closed(self) -> None:
        """Wait until nothing of a closed link is under way."""
        under_way = {task for task in (self._attempt, self._parting) if task is not None}
        if under_way:
            await asyncio.wait(under_way)


def _retrieve(attempt: "asyncio.Task[Connection]") -> None:
    """Nobody may be waiting for the attempt any more: its error is in `last_error` all the same."""
    if not attempt.cancelled():
        attempt.exception()
