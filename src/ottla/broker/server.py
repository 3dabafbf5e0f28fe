"""The listeners: the only place of the broker that opens sockets.

Sockets are the broker's own, non-blocking, watched with `add_reader` and `add_writer`: receiving into our own
buffer and `sendfile` from the page cache need them, and transports offer neither.
"""

import asyncio
import contextlib
import errno
import logging
import socket
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from ottla.broker.buffers import BufferPool
from ottla.broker.connection import SHARED_BUFFER_BYTES, Connection, Reply
from ottla.broker.due_answers import DueAnswers
from ottla.broker.muting import Timer
from ottla.broker.quotas.addresses import NO_LIMIT, AddressQuota
from ottla.broker.quotas.rates import SECOND_MS, SampledSum, Windows
from ottla.broker.vigil import Vigil
from ottla.cluster.image import Endpoint
from ottla.runtime import Executor

logger = logging.getLogger(__name__)

ACCEPTS_PER_TURN = 64
ACCEPT_PAUSE_SECONDS = 1.0
SWEEP_SECONDS = 1.0
SLOW_SECONDS = 10.0
MOST_TURNED_AWAY = 1000
OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

Dispatch = Callable[[Connection, memoryview], Reply]


@dataclass(frozen=True, slots=True)
class ServerLimits:
    request_bytes: int = 104_857_600
    queued_request_bytes: int = 536_870_912
    connections: int = 2_147_483_647
    connections_per_address: int = 2_147_483_647
    connections_per_address_overrides: dict[str, int] = field(default_factory=dict)
    connections_per_second: int = NO_LIMIT
    connection_windows: Windows = field(default_factory=Windows)
    idle_ms: int = 600_000
    backlog: int = 50
    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1
    busy_poll_us: int = 0


class Server:
    """Accepts connections, holds them to their limits and closes them in good order."""

    def __init__(self, dispatch: Dispatch, limits: ServerLimits, executor: Executor, due_answers: DueAnswers) -> None:
        self.loop = asyncio.get_running_loop()
        self.executor = executor
        self.limits = limits
        self.buffers = BufferPool(limits.queued_request_bytes)
        self.due_answers = due_answers
        self.shared_buffer = memoryview(bytearray(SHARED_BUFFER_BYTES))
        self.request_limit_bytes = limits.request_bytes
        self.vigil = Vigil(self.loop, limits.busy_poll_us / 1e6)
        self.dispatch = dispatch
        self.connections: dict[int, Connection] = {}
        self.admitted: dict[str, int] = {}
        self._per_address: dict[str, int] = {}
        self._listening: list[tuple[socket.socket, str]] = []
        self._accepting = False
        self._waiting_for_buffer: deque[Callable[[], None]] = deque()
        self._sweeper: asyncio.Task[None] | None = None
        self._accept_timer: Timer | None = None
        self._creations = SampledSum(limits.connection_windows)
        self._at_the_door: socket.socket | None = None
        self.address_quota: AddressQuota | None = None
        self._turned_away: dict[socket.socket, Timer] = {}
        self._nobody_left = asyncio.Event()
        self._is_short = False
        self._stopping = False

    # Listening

    def bind(self, endpoints: Sequence[Endpoint]) -> list[Endpoint]:
        """Bind all listeners and give back where they are, with the ports that were picked.

        Clients can connect from now on, but nobody is answered before `start`.
        """
        bound: list[Endpoint] = []
        for endpoint in endpoints:
            sock = self._bind(endpoint)
            port = sock.getsockname()[1]
            bound.append(Endpoint(endpoint.name, endpoint.host, port, endpoint.security_protocol))
            self._listening.append((sock, endpoint.name))
        return bound

    def _bind(self, endpoint: Endpoint) -> socket.socket:
        family = socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET
        if not endpoint.host and socket.has_dualstack_ipv6():
            family = socket.AF_INET6
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if not endpoint.host else 1)
            if self.limits.receive_buffer_bytes > 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.limits.receive_buffer_bytes)
            sock.bind((endpoint.host, endpoint.port))
            sock.listen(self.limits.backlog)
            sock.setblocking(False)
        except OSError as error:
            sock.close()
            raise OSError(
                error.errno,
                f"cannot listen on {endpoint.name}://{endpoint.host}:{endpoint.port}: {error.strerror or error}; "
                "set another port with --port or change `listeners`",
            ) from error
        return sock

    def start(self) -> None:
        self._start_accepting()
        self._sweeper = self.loop.create_task(self._close_idle())

    def update_connection_limits(self, limits: ServerLimits) -> None:
        """Hold new connections to other limits; those that are there stay."""
        self.limits = replace(
            self.limits,
            connections=limits.connections,
            connections_per_address=limits.connections_per_address,
            connections_per_address_overrides=limits.connections_per_address_overrides,
            connections_per_second=limits.connections_per_second,
        )
        is_started = self._sweeper is not None
        if is_started and not self._accepting and self._accept_timer is None and not self._stopping:
            self._start_accepting()

    def _start_accepting(self) -> None:
        self._accept_timer = None
        if not self._accepting:
            self._accepting = True
            for sock, listener in self._listening:
                self.loop.add_reader(sock.fileno(), self._accept, sock, listener)

    def _stop_accepting(self) -> None:
        if self._accepting:
            self._accepting = False
            for sock, _ in self._listening:
                self.loop.remove_reader(sock.fileno())

    def _accept(self, listening: socket.socket, listener: str) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            if len(self.connections) >= self.limits.connections:
                self._stop_accepting()
                return
            try:
                sock, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                if self._is_short:
                    self._is_short = False
                    logger.info("everyone who waited to be accepted is")
                return
            except OSError as error:
                if error.errno not in OUT_OF_DESCRIPTORS:
                    raise
                if not self._is_short:
                    logger.error("cannot accept connections for now: %s; raise the limit of open files", error)
                self._is_short = True
                self._stop_accepting()
                self._accept_timer = self.later(ACCEPT_PAUSE_SECONDS, self._start_accepting)
                return
            admit = partial(self._admit, sock, str(address[0]), int(address[1]), listener)
            wait_ms = self._creation_wait_ms()
            if wait_ms > 0:
                self._keep_at_the_door(sock, admit, wait_ms)
                return
            admit()

    def _creation_wait_ms(self) -> int:
        """How long the connection that has just come is too early."""
        limit = self.limits.connections_per_second
        if limit == NO_LIMIT:
            return 0
        now_ms = int(self.loop.time() * SECOND_MS)
        self._creations.record(1.0, now_ms)
        return min(self._creations.wait_ms(limit, now_ms), self.limits.connection_windows.window_ms)

    def _keep_at_the_door(self, sock: socket.socket, admit: Callable[[], None], wait_ms: int) -> None:
        """Let it in later, and nobody else before it."""

        def let_in() -> None:
            self._at_the_door = None
            admit()
            self._start_accepting()

        self._stop_accepting()
        self._at_the_door = sock
        self._accept_timer = self.later(wait_ms / SECOND_MS, let_in)

    def _admit(self, sock: socket.socket, host: str, port: int, listener: str) -> None:
        host = host.removeprefix("::ffff:")
        if self.address_quota is not None:
            wait_ms = self.address_quota.connected(host)
            if wait_ms > 0:
                if self.limits.connections_per_second != NO_LIMIT:
                    self._creations.record(-1.0, int(self.loop.time() * SECOND_MS))
                self._turn_away(sock, wait_ms)
                return
        used = self._per_address.get(host, 0)
        allowed = self.limits.connections_per_address_overrides.get(host, self.limits.connections_per_address)
        if used >= allowed:
            logger.warning("refused a connection from %s: max.connections.per.ip allows %d", host, allowed)
            sock.close()
            return
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if self.limits.send_buffer_bytes > 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.limits.send_buffer_bytes)
        except OSError:
            sock.close()
            return
        self._per_address[host] = used + 1
        self.admitted[listener] = self.admitted.get(listener, 0) + 1
        connection = Connection(self, sock, host, port, listener)
        self.connections[connection.descriptor] = connection
        connection.start()

    def _turn_away(self, sock: socket.socket, wait_ms: int) -> None:
        """Close it later, so that a client that connects anew at once does so at a bearable rate."""
        if len(self._turned_away) >= MOST_TURNED_AWAY:
            sock.close()
            return

        def close() -> None:
            del self._turned_away[sock]
            sock.close()

        self._turned_away[sock] = self.later(wait_ms / 1000, close)

    # What connections ask of their server

    def later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        return self.loop.call_later(seconds, callback)

    def connection_closed(self, connection: Connection) -> None:
        del self.connections[connection.descriptor]
        left = self._per_address[connection.peer_host] - 1
        if left:
            self._per_address[connection.peer_host] = left
        else:
            del self._per_address[connection.peer_host]
        if not self.connections:
            self._nobody_left.set()
        if self._accept_timer is not None:
            # Its descriptor is free now, so whoever waits need not wait longer.
            self._accept_timer.cancel()
            self._accept_timer = None
        if not self._accepting and self._accept_timer is None and not self._stopping:
            self._start_accepting()

    @property
    def waiting_for_buffer(self) -> int:
        return len(self._waiting_for_buffer)

    def wait_for_buffer(self, resume: Callable[[], None]) -> None:
        self._waiting_for_buffer.append(resume)

    def buffer_returned(self) -> None:
        if self._waiting_for_buffer:
            self.loop.call_soon(self._waiting_for_buffer.popleft())

    # Closing

    async def _close_idle(self) -> None:
        idle_seconds = self.limits.idle_ms / 1000
        while True:
            await asyncio.sleep(min(max(idle_seconds / 4, 0.05), SWEEP_SECONDS))
            now = self.loop.time()
            for connection in list(self.connections.values()):
                if now - connection.last_active > idle_seconds:
                    logger.info("closed the idle connection from %s:%d", connection.peer_host, connection.peer_port)
                    connection.close()
                elif self._waiting_for_buffer and now - connection.large_since > SLOW_SECONDS:
                    logger.warning(
                        "closed the connection from %s:%d: its large request is slow, and others wait for memory",
                        connection.peer_host,
                        connection.peer_port,
                    )
                    connection.close()

    def stop_reading(self) -> None:
        """Take no more connections and no more requests; what was asked is still answered."""
        self._stopping = True
        self._stop_accepting()
        for connection in list(self.connections.values()):
            connection.close_when_sent()

    async def shutdown(self, grace_seconds: float = 5.0) -> None:
        """Stop accepting, let owed answers leave for `grace_seconds` at most, then close everything."""
        self._nobody_left.clear()
        self.stop_reading()
        if self._accept_timer is not None:
            self._accept_timer.cancel()
        if self._sweeper is not None:
            self._sweeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sweeper
            self._sweeper = None
        for sock, _ in self._listening:
            sock.close()
        self._listening.clear()
        for sock, timer in self._turned_away.items():
            timer.cancel()
            sock.close()
        self._turned_away.clear()
        if self._at_the_door is not None:
            self._at_the_door.close()
            self._at_the_door = None
        if self.connections:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._nobody_left.wait(), grace_seconds)
        for connection in list(self.connections.values()):
            connection.close()
