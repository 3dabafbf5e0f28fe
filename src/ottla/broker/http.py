"""A small HTTP server for pages that the broker makes itself: metrics and health.

One request for each connection, GET or HEAD, without a body; every answer closes it.

What must stay true:
- Everything is bounded: the request's head, the connections at once, the time to send a request and to take the answer.
  Who exceeds a limit loses his connection; the broker's own clients notice nothing.
- A page that fails is a 500 and a line in the log.
"""

import asyncio
import logging
import re
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from ottla.cluster.image import Endpoint

logger = logging.getLogger(__name__)

HEAD_END = b"\r\n\r\n"
PIECE_BYTES = 64 * 1024
PLAIN_TEXT = "text/plain; charset=utf-8"
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_METHODS = ("GET", "HEAD")
_VERSIONS = ("HTTP/1.0", "HTTP/1.1")


@dataclass(frozen=True, slots=True)
class HttpLimits:
    head_bytes: int = 8192
    connections: int = 32
    receive_seconds: float = 5.0
    send_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    status: HTTPStatus
    body: bytes
    content_type: str = PLAIN_TEXT

    def encode(self, with_body: bool = True) -> bytes:
        allow = "Allow: GET, HEAD\r\n" if self.status is HTTPStatus.METHOD_NOT_ALLOWED else ""
        head = (
            f"HTTP/1.1 {self.status.value} {self.status.phrase}\r\n"
            f"Content-Type: {self.content_type}\r\n"
            f"Content-Length: {len(self.body)}\r\n"
            f"{allow}Cache-Control: no-store\r\nConnection: close\r\n\r\n"
        )
        return head.encode("ascii") + (self.body if with_body else b"")


def text_answer(status: HTTPStatus, text: str) -> HttpAnswer:
    return HttpAnswer(status, f"{text}\n".encode())


Page = Callable[[], Awaitable[HttpAnswer]]


class _Refused(Exception):
    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def parse_head(head: bytes) -> tuple[str, str]:
    """The method and the path of a request, or `_Refused` with the status that says what is wrong."""
    lines = head.removesuffix(HEAD_END).decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not _TOKEN.fullmatch(words[0]) or not words[2].startswith("HTTP/"):
        raise _Refused(HTTPStatus.BAD_REQUEST, "the first line must look like GET /metrics HTTP/1.1")
    method, target, version = words
    if version not in _VERSIONS:
        raise _Refused(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "HTTP/1.1 is spoken here")
    headers: dict[str, list[str]] = {}
    for line in lines[1:]:
        name, separator, value = line.partition(":")
        if not separator or not _TOKEN.fullmatch(name) or not value.replace("\t", " ").isprintable():
            raise _Refused(HTTPStatus.BAD_REQUEST, "each header must look like Name: value")
        headers.setdefault(name.lower(), []).append(value.strip())
    if version == "HTTP/1.1" and len(headers.get("host", ())) != 1:
        raise _Refused(HTTPStatus.BAD_REQUEST, "there must be one Host header")
    if method not in _METHODS:
        raise _Refused(HTTPStatus.METHOD_NOT_ALLOWED, "GET and HEAD are allowed")
    if "transfer-encoding" in headers or any(size != "0" for size in headers.get("content-length", ())):
        raise _Refused(HTTPStatus.BAD_REQUEST, "no body is expected")
    path = target.partition("?")[0]
    if not path.startswith("/"):
        raise _Refused(HTTPStatus.BAD_REQUEST, "the path must begin with /")
    return method, path


def address_of(endpoint: Endpoint) -> str:
    """A URL for people and machines; every address of this machine is shown as one that stands for all."""
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host or "0.0.0.0"
    return f"http://{host}:{endpoint.port}"


class HttpServer:
    def __init__(self, pages: Mapping[str, Page], limits: HttpLimits | None = None) -> None:
        self._pages = dict(pages)
        self._limits = limits or HttpLimits()
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def connections(self) -> int:
        return len(self._tasks)

    async def open(self, endpoints: Sequence[Endpoint]) -> list[Endpoint]:
        """Listen and answer; gives back where, with the ports that were picked."""
        bound: list[Endpoint] = []
        for endpoint in endpoints:
            sock = _listen(endpoint, self._limits.connections)
            bound.append(Endpoint(endpoint.name, endpoint.host, sock.getsockname()[1]))
            self._servers.append(await asyncio.start_server(self._connected, sock=sock, limit=self._limits.head_bytes))
        return bound

    async def close(self) -> None:
        """Stop at once: there is nothing here that a client could not ask again."""
        for server in self._servers:
            server.close()
        self._servers.clear()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= self._limits.connections:
            writer.write(text_answer(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections").encode())
            writer.close()
            return
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answer = await self._answer_to(reader)
            if answer is not None:
                async with asyncio.timeout(self._limits.send_seconds):
                    await _send(writer, answer)
        except (TimeoutError, ConnectionError):
            pass
        finally:
            # What was sent has left by now; whatever has not is given up.
            writer.transport.abort()

    async def _answer_to(self, reader: asyncio.StreamReader) -> bytes | None:
        """The bytes to send; None when the client left or is too slow to be told anything."""
        try:
            async with asyncio.timeout(self._limits.receive_seconds):
                head = await reader.readuntil(HEAD_END)
            method, path = parse_head(head)
            page = self._pages.get(path)
            if page is None:
                raise _Refused(HTTPStatus.NOT_FOUND, f"there is {', '.join(self._pages)}")
        except (TimeoutError, asyncio.IncompleteReadError):
            return None
        except asyncio.LimitOverrunError:
            limit = self._limits.head_bytes
            return text_answer(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"at most {limit} bytes").encode()
        except _Refused as refused:
            return text_answer(refused.status, str(refused)).encode()
        try:
            answer = await page()
        except Exception:
            logger.exception("the page %s failed", path)
            answer = text_answer(HTTPStatus.INTERNAL_SERVER_ERROR, "the page failed; the broker's log says why")
        return answer.encode(with_body=method == "GET")


async def _send(writer: asyncio.StreamWriter, answer: bytes) -> None:
    """Piece by piece, so that no second copy of a large answer waits in the transport."""
    for start in range(0, len(answer), PIECE_BYTES):
        writer.write(answer[start : start + PIECE_BYTES])
        await writer.drain()
    writer.close()
    await writer.wait_closed()


def _listen(endpoint: Endpoint, backlog: int) -> socket.socket:
    dual = not endpoint.host and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual or ":" in endpoint.host else socket.AF_INET
    try:
        address = (endpoint.host, endpoint.port)
        sock = socket.create_server(address, family=family, backlog=backlog, dualstack_ipv6=dual)
    except OSError as error:
        raise OSError(
            error.errno,
            f"cannot listen on {address_of(endpoint)}: {error.strerror or error}; change `ottla.http.listeners`",
        ) from error
    sock.setblocking(False)
    return sock
