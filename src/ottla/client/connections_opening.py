"""From a host and a port to a connection that can be asked: resolve, connect, TLS, versions, SASL.

    addresses of the name -> first that takes the connection -> TLS -> ApiVersions -> SASL -> ready

All of it has to be done within `socket.connection.setup.timeout.ms` for each address.

What must stay true: a connection that is handed out has not ended, and whatever goes wrong is an OttlaError. A broker
may answer the last step and hang up in the same breath; nobody else would learn of it.
"""

import asyncio
import contextlib
import logging
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator
from typing import Protocol

from ottla.client.config import ClientConfig
from ottla.client.connections_answers import copy_of
from ottla.client.connections_versions import Versions
from ottla.client.connections_wire import Connection
from ottla.client.errors import BrokerUnavailable, ConfigError, InvalidAnswer, OttlaError, error_of
from ottla.client.security.tls import tls_failure
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.version import __version__

logger = logging.getLogger(__name__)

SOFTWARE_NAME = "ottla-client"

Address = tuple[socket.AddressFamily, tuple[object, ...]]


class Security(Protocol):
    """What an opening needs to know of TLS and SASL."""

    def tls_context(self) -> ssl.SSLContext | None:
        """None where connections are plain."""
        ...

    def authenticate(self, connection: Connection) -> Awaitable[None]:
        """Prove who the client is, where SASL is wanted."""
        ...


class Opening:
    """Opens connections for one client. `learned` is called with what a broker told of its versions and features."""

    def __init__(
        self, config: ClientConfig, security: Security, learned: Callable[[ApiVersionsResponse], None]
    ) -> None:
        self._config = config
        self._security = security
        self._learned = learned

    async def open(
        self, host: str, port: int, setup_timeout_seconds: float, lost: Callable[[Connection], None]
    ) -> Connection:
        """A connection that is ready for requests, or an OttlaError that says why there is none."""
        name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        reasons: list[str] = []
        with _nothing_unexpected(name):
            for family, address in await _resolve(host, port, name, setup_timeout_seconds):
                try:
                    async with asyncio.timeout(setup_timeout_seconds):
                        return await self._open_address(family, address, host, name, lost)
                except TimeoutError:
                    reasons.append(f"{address[0]} did not answer within {setup_timeout_seconds:.1f} s")
                except OSError as error:
                    reasons.append(f"{address[0]}: {_reason(error)}")
        raise BrokerUnavailable(
            f"{name} cannot be reached ({'; '.join(reasons)}): is a broker running there, and is it the right port?"
        )

    async def authenticate(self, connection: Connection) -> None:
        """Prove who the client is, where that is wanted: also once more, on a connection that is in use."""
        with _nothing_unexpected(connection.name):
            await self._security.authenticate(connection)
        if connection.ended_by is not None:
            raise copy_of(connection.ended_by)

    async def _open_address(
        self,
        family: socket.AddressFamily,
        address: tuple[object, ...],
        host: str,
        name: str,
        lost: Callable[[Connection], None],
    ) -> Connection:
        sock = await self._connected_socket(family, address, host, name)
        try:
            connection = Connection(
                sock,
                name,
                Versions(self._config.client_id),
                limit_bytes=self._config.receive_message_max_bytes,
                request_timeout_seconds=self._config.request_timeout_ms / 1000,
                lost=lost,
            )
        except NotImplementedError as error:
            sock.close()
            raise ConfigError(
                "this event loop cannot watch sockets: run the client in an asyncio.SelectorEventLoop (on Windows, set "
                "asyncio.WindowsSelectorEventLoopPolicy first)"
            ) from error
        try:
            await self._negotiate(connection)
            await self.authenticate(connection)
        except BaseException as error:
            connection.end(
                error if isinstance(error, OttlaError) else BrokerUnavailable(f"connecting to {name} stopped")
            )
            raise
        return connection

    async def _connected_socket(
        self, family: socket.AddressFamily, address: tuple[object, ...], host: str, name: str
    ) -> socket.socket:
        loop = asyncio.get_running_loop()
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if self._config.send_buffer_bytes > 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._config.send_buffer_bytes)
            if self._config.receive_buffer_bytes > 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._config.receive_buffer_bytes)
            await loop.sock_connect(sock, address)
            context = self._security.tls_context()
            if context is not None:
                sock = context.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
                await _shake_hands(sock, name)
        except BaseException:
            sock.close()
            raise
        return sock

    async def _negotiate(self, connection: Connection) -> None:
        """Ask for the broker's versions; where it does not know ours of that request, in the one it knows."""
        request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=__version__)
        response: ApiVersionsResponse = await connection.ask(request)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            offered = [one for one in response.api_keys if one.api_key == request.API_KEY]
            highest = offered[0].max_version if offered else 0
            response = await connection.ask(request, max_version=highest)
        if response.error_code != ErrorCode.NONE:
            raise error_of(response.error_code, f"{connection.name} does not tell its versions")
        if not response.api_keys:
            raise InvalidAnswer(f"{connection.name} serves no API at all: is it a Kafka broker?")
        connection.versions.learn((one.api_key, one.min_version, one.max_version) for one in response.api_keys)
        self._learned(response)


@contextlib.contextmanager
def _nothing_unexpected(name: str) -> Iterator[None]:
    """What nobody thought of fails one attempt, and not the task that would try again."""
    try:
        yield
    except OttlaError:
        raise
    except Exception as error:
        logger.exception("connecting to %s failed for a reason that was not expected", name)
        raise BrokerUnavailable(f"connecting to {name} failed: {error!r}") from error


def _reason(error: OSError) -> str:
    """The words of the operating system: asyncio has others, which say less."""
    return os.strerror(error.errno) if error.errno is not None and error.errno > 0 else str(error)


async def _resolve(host: str, port: int, name: str, timeout_seconds: float) -> list[Address]:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout_seconds):
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except TimeoutError as error:
        raise BrokerUnavailable(f"{name}: the name was not resolved within {timeout_seconds:.1f} s") from error
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a host name"
        raise BrokerUnavailable(
            f"{name}: the name does not resolve ({reason}): check bootstrap.servers and the brokers' "
            "advertised.listeners"
        ) from error
    return list(dict.fromkeys((family, address) for family, _, _, _, address in found))


async def _shake_hands(sock: ssl.SSLSocket, name: str) -> None:
    while True:
        try:
            sock.do_handshake()
        except ssl.SSLWantReadError:
            await _ready(sock, for_writing=False)
        except ssl.SSLWantWriteError:
            await _ready(sock, for_writing=True)
        except ssl.SSLError as error:
            raise tls_failure(error, name) from error
        else:
            return


async def _ready(sock: socket.socket, *, for_writing: bool) -> None:
    """Wait until the socket can be read, or written."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    descriptor = sock.fileno()

    def wake() -> None:
        if not ready.done():
            ready.set_result(None)

    (loop.add_writer if for_writing else loop.add_reader)(descriptor, wake)
    try:
        await ready
    finally:
        with contextlib.suppress(ValueError):
            (loop.remove_writer if for_writing else loop.remove_reader)(descriptor)
