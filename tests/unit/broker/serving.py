"""A server on loopback with a dispatch function of the test's own, and a peer that speaks bytes."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from ottla.broker.connection import Connection, Reply
from ottla.broker.due_answers import DueAnswers
from ottla.broker.outbox import Part
from ottla.broker.server import Server, ServerLimits
from ottla.cluster.image import Endpoint
from ottla.runtime import Executor

LOOPBACK = "127.0.0.1"
PATIENCE_SECONDS = 60.0

Result = TypeVar("Result")
Dispatch = Callable[[Connection, memoryview], Reply]


def frame(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def echo(connection: Connection, content: memoryview) -> list[Part]:
    return [frame(bytes(content))]


class InlineExecutor:
    """Does the work at once and counts it."""

    def __init__(self) -> None:
        self.runs = 0

    def run(self, work: Callable[..., Result], /, *args: object) -> Awaitable[Result]:
        self.runs += 1
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        try:
            future.set_result(work(*args))
        except Exception as error:
            future.set_exception(error)
        return future


class HoldingExecutor:
    """Does the work when it is told to."""

    def __init__(self) -> None:
        self.held: list[Callable[[], None]] = []

    def run(self, work: Callable[..., Result], /, *args: object) -> Awaitable[Result]:
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self.held.append(lambda: future.set_result(work(*args)))
        return future

    def release(self) -> None:
        held, self.held = self.held, []
        for work in held:
            work()


class Peer:
    """The other end of a connection: a socket, read and written as the test wants it."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self._loop = asyncio.get_running_loop()
        self._received = bytearray()

    async def send(self, data: bytes) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self._loop.sock_sendall(self.socket, data)

    async def answer(self) -> bytes:
        """The next frame from the server, without its length; EOFError when there is none."""
        (size,) = struct.unpack(">i", await self._exactly(4))
        return await self._exactly(size)

    async def ask(self, content: bytes) -> bytes:
        await self.send(frame(content))
        return await self.answer()

    async def is_closed(self) -> bool:
        """Whether the server hangs up without saying anything more."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            try:
                return await self._loop.sock_recv(self.socket, 1) == b""
            except ConnectionError:
                return True

    @property
    def silent(self) -> bool:
        """Whether nothing has come from the server that was not read yet."""
        with contextlib.suppress(BlockingIOError):
            self._received += self.socket.recv(1 << 16)
        return not self._received

    async def _exactly(self, size: int) -> bytes:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(self._received) < size:
                piece = await self._loop.sock_recv(self.socket, 1 << 20)
                if not piece:
                    raise EOFError(f"{size} bytes expected, the connection ended after {len(self._received)}")
                self._received += piece
        content = bytes(self._received[:size])
        del self._received[:size]
        return content


class Serving:
    """A running server and the way to it."""

    def __init__(self, server: Server, port: int, stack: contextlib.AsyncExitStack) -> None:
        self.server = server
        self.port = port
        self._stack = stack

    async def connect(self, receive_buffer_bytes: int | None = None) -> Peer:
        sock = self._stack.enter_context(socket.socket())
        if receive_buffer_bytes is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.get_running_loop().sock_connect(sock, (LOOPBACK, self.port))
        return Peer(sock)


@contextlib.asynccontextmanager
async def serving(
    dispatch: Dispatch = echo, limits: ServerLimits | None = None, executor: Executor | None = None
) -> AsyncIterator[Serving]:
    server = Server(dispatch, limits or ServerLimits(), executor or InlineExecutor(), DueAnswers())
    (endpoint,) = server.bind([Endpoint("PLAINTEXT", LOOPBACK, 0)])
    server.start()
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(server.shutdown, 0.0)
        yield Serving(server, endpoint.port, stack)


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop turn until the condition holds."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():
            await _turn()


async def _turn() -> None:
    await asyncio.sleep(0)


class Parking:
    """A dispatch that answers nothing until the test does: one future for each request, in order."""

    def __init__(self) -> None:
        self.contents: list[bytes] = []
        self.futures: list[asyncio.Future[list[Part] | None]] = []

    def __call__(self, connection: Connection, content: memoryview) -> Reply:
        future: asyncio.Future[list[Part] | None] = asyncio.get_running_loop().create_future()
        self.contents.append(bytes(content))
        self.futures.append(future)
        return future

    async def reached(self, count: int) -> None:
        """Return once this many requests have come."""
        await until(lambda: len(self.futures) >= count)

    def resolve(self, index: int) -> None:
        self.futures[index].set_result([frame(self.contents[index])])
