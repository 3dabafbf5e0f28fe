"""A broker of a few lines whose answers a test decides, byte by byte where it likes."""

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress

from ottla.client.cluster import Cluster
from ottla.client.config import ClientConfig, ProducerConfig, resolve
from ottla.client.connections import Connections
from ottla.client.errors import BrokerUnavailable
from ottla.protocol.errors import ErrorCode
from ottla.protocol.framing import decode_request_header, encode_response
from ottla.protocol.message import Request, Response
from ottla.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from ottla.protocol.registry import BROKER_APIS, request_class

LOOPBACK = "127.0.0.1"
NODE_ID = 7

QUICK = {"reconnect_backoff_ms": 1, "reconnect_backoff_max_ms": 5, "retry_backoff_ms": 1, "retry_backoff_max_ms": 5}


class Asked:
    """One request as it came, and how to answer it."""

    def __init__(self, frame: bytes, writer: asyncio.StreamWriter) -> None:
        self.header, position = decode_request_header(frame)
        kind = request_class(self.header.api_key)
        assert kind is not None
        self.kind: type[Request] = kind
        is_known = kind.MIN_VERSION <= self.header.api_version <= kind.MAX_VERSION
        self.request = kind.decode(frame, self.header.api_version, position) if is_known else kind()
        self.writer = writer

    def bytes_of(self, response: Response, *, version: int | None = None, correlation_id: int | None = None) -> bytes:
        chosen = self.header.api_version if version is None else version
        number = self.header.correlation_id if correlation_id is None else correlation_id
        return b"".join(encode_response(self.kind, chosen, number, response))

    def answer(self, response: Response) -> None:
        self.writer.write(self.bytes_of(response))

    def answer_bytes(self, frame: bytes) -> None:
        """Any bytes, behind their length."""
        self.writer.write(struct.pack(">i", len(frame)) + frame)


Behaviour = Callable[[Asked], Awaitable[None]]


def all_versions() -> list[ApiVersion]:
    return [
        ApiVersion(api_key=int(key), min_version=kind.MIN_VERSION, max_version=kind.MAX_VERSION)
        for key in BROKER_APIS
        if (kind := request_class(key)) is not None
    ]


class Rogue:
    """Tells its versions, and that it is the only broker; anything else is up to `behave`."""

    def __init__(self, behave: Behaviour | None = None, tls: ssl.SSLContext | None = None) -> None:
        self.behave = behave
        self._tls = tls
        self.api_versions: Callable[[Asked], None] = lambda asked: asked.answer(
            ApiVersionsResponse(api_keys=all_versions())
        )
        self.metadata: Callable[[Asked], MetadataResponse] = lambda asked: self.alone()
        self.connections = 0
        self.asked: list[Asked] = []
        self.was_asked = asyncio.Event()
        self.was_left = asyncio.Event()
        self.port = 0
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []
        self._serving: set[asyncio.Task[None]] = set()

    def alone(self) -> MetadataResponse:
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=NODE_ID, host=LOOPBACK, port=self.port)], controller_id=NODE_ID
        )

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, LOOPBACK, self.port, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        self.hang_up()
        await self._server.wait_closed()
        if self._serving:
            await asyncio.wait(set(self._serving))

    def hang_up(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        self.connections += 1
        self._writers.append(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                asked = Asked(await reader.readexactly(size), writer)
                self.asked.append(asked)
                self.was_asked.set()
                await self._answer(asked)
        self.was_left.set()
        writer.close()

    async def _answer(self, asked: Asked) -> None:
        if asked.kind is ApiVersionsRequest:
            self.api_versions(asked)
        elif asked.kind is MetadataRequest:
            asked.answer(self.metadata(asked))
        elif self.behave is not None:
            await self.behave(asked)


@asynccontextmanager
async def rogue(behave: Behaviour | None = None, tls: ssl.SSLContext | None = None) -> AsyncIterator[Rogue]:
    broker = Rogue(behave, tls)
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()


@asynccontextmanager
async def connected(
    servers: str | Iterable[str], kind: type[ClientConfig] = ProducerConfig, **keywords: object
) -> AsyncIterator[Connections]:
    """Connections that know their cluster."""
    async with connections(servers, kind, **keywords) as opened:
        await opened.updated(Cluster(), 10.0)
        yield opened


@asynccontextmanager
async def connections(
    servers: str | Iterable[str], kind: type[ClientConfig] = ProducerConfig, **keywords: object
) -> AsyncIterator[Connections]:
    opened = Connections(resolve(kind, servers, None, {**QUICK, **keywords}))
    opened.start()
    try:
        yield opened
    finally:
        await opened.close()


async def why_nothing_is_known(network: Connections) -> str:
    """The text of the error, once it has a reason."""
    async with asyncio.timeout(60.0):
        while True:
            try:
                await network.updated(Cluster(), 0.05)
            except BrokerUnavailable as error:
                if error.__cause__ is not None:
                    return str(error)


def unsupported_versions(*ranges: tuple[int, int, int], code: ErrorCode = ErrorCode.NONE) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        error_code=int(code),
        api_keys=[ApiVersion(api_key=key, min_version=low, max_version=high) for key, low, high in ranges],
    )
