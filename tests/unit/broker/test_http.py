"""The small HTTP server: what it answers, what it refuses, and what slow or many clients cost."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator
from http import HTTPStatus

import pytest
from tests.unit.broker.serving import LOOPBACK, PATIENCE_SECONDS, until

from ottla.broker.http import HttpAnswer, HttpLimits, HttpServer, address_of, text_answer
from ottla.cluster.image import Endpoint

GET = b"GET /page HTTP/1.1\r\nHost: here\r\n\r\n"
LARGE = b"x" * 8_000_000


class Pages:
    def __init__(self) -> None:
        self.asked = 0

    async def page(self) -> HttpAnswer:
        self.asked += 1
        return text_answer(HTTPStatus.OK, "hello")

    async def large(self) -> HttpAnswer:
        return HttpAnswer(HTTPStatus.OK, LARGE, "application/octet-stream")

    async def broken(self) -> HttpAnswer:
        raise RuntimeError("the page is torn")


class Site:
    def __init__(self, server: HttpServer, port: int, pages: Pages) -> None:
        self.server = server
        self.port = port
        self.pages = pages

    async def ask(self, request: bytes) -> tuple[int, dict[str, str], bytes]:
        reader, writer = await asyncio.open_connection(LOOPBACK, self.port)
        try:
            writer.write(request)
            return split(await everything(reader))
        finally:
            writer.close()


async def everything(reader: asyncio.StreamReader) -> bytes:
    """All that comes until the server hangs up, which it must."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        try:
            return await reader.read()
        except ConnectionError:
            return b""


def split(answer: bytes) -> tuple[int, dict[str, str], bytes]:
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    assert first.startswith("HTTP/1.1 ")
    headers = dict(line.split(": ", 1) for line in lines)
    assert headers["Connection"] == "close"
    return int(first.split(" ")[1]), headers, body


@contextlib.asynccontextmanager
async def site(limits: HttpLimits | None = None) -> AsyncIterator[Site]:
    pages = Pages()
    server = HttpServer({"/page": pages.page, "/large": pages.large, "/broken": pages.broken}, limits)
    (endpoint,) = await server.open([Endpoint("http", LOOPBACK, 0)])
    try:
        yield Site(server, endpoint.port, pages)
    finally:
        await server.close()


def ask(request: bytes, limits: HttpLimits | None = None) -> tuple[int, dict[str, str], bytes]:
    async def scenario() -> tuple[int, dict[str, str], bytes]:
        async with site(limits) as running:
            answer = await running.ask(request)
            # Whatever was asked, the next one is served.
            assert (await running.ask(GET))[0] == HTTPStatus.OK
            return answer

    return asyncio.run(scenario())


@pytest.mark.parametrize(
    "request_bytes",
    [
        GET,
        b"GET /page?name[]=x HTTP/1.1\r\nhost: here\r\nAccept: */*\r\nX-Odd:\t\xe4\r\n\r\n",
        b"GET /page HTTP/1.0\r\n\r\n",
        b"GET /page HTTP/1.1\r\nHost:\r\nContent-Length: 0\r\n\r\n",
    ],
)
def test_a_page(request_bytes: bytes) -> None:
    status, headers, body = ask(request_bytes)
    assert (status, body) == (200, b"hello\n")
    assert headers["Content-Length"] == "6"
    assert headers["Content-Type"] == "text/plain; charset=utf-8"


def test_a_large_page_comes_whole() -> None:
    status, headers, body = ask(GET.replace(b"/page", b"/large"))
    assert status == 200
    assert headers["Content-Length"] == str(len(LARGE))
    assert body == LARGE


def test_head_is_get_without_the_body() -> None:
    status, headers, body = ask(GET.replace(b"GET", b"HEAD"))
    assert (status, headers["Content-Length"], body) == (200, "6", b"")


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /other HTTP/1.1\r\nHost: here\r\n\r\n", 404),
        (b"GET /page/ HTTP/1.1\r\nHost: here\r\n\r\n", 404),
        (b"POST /page HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\n\r\n{}", 405),
        (b"BREW /other HTTP/1.1\r\nHost: here\r\n\r\n", 405),
        (b"GET /page HTTP/2.0\r\nHost: here\r\n\r\n", 505),
        (b"GET /page\r\n\r\n", 400),
        (b"GET  /page HTTP/1.1\r\nHost: here\r\n\r\n", 400),
        (b"\x16\x03\x01\x02 a b\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"GET page HTTP/1.1\r\nHost: here\r\n\r\n", 400),
        (b"GET /page HTTP/1.1\r\n\r\n", 400),
        (b"GET /page HTTP/1.1\r\nHost: here\r\nHost: there\r\n\r\n", 400),
        (b"GET /page HTTP/1.1\r\nHost: here\r\nno colon\r\n\r\n", 400),
        (b"GET /page HTTP/1.1\r\nHost: here\r\nName : value\r\n\r\n", 400),
        (b"GET /page HTTP/1.1\r\nHost: here\r\n folded: line\r\n\r\n", 400),
        (b"GET /page HTTP/1.1\r\nHost: a\x00b\r\n\r\n", 400),
        (b"GET /page HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\n\r\n{}", 400),
        (b"GET /page HTTP/1.1\r\nHost: here\r\nContent-Length: none\r\n\r\n", 400),
        (b"GET /page HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ],
)
def test_what_is_refused(request_bytes: bytes, status: int) -> None:
    answered, headers, body = ask(request_bytes)
    assert answered == status
    assert body
    assert headers.get("Allow") == ("GET, HEAD" if status == 405 else None)


@pytest.mark.parametrize("end", [b"\r\n\r\n", b""])
def test_a_head_that_is_too_large(end: bytes) -> None:
    request = b"GET /page HTTP/1.1\r\nHost: here\r\nName: " + b"x" * 2000 + end
    assert ask(request, HttpLimits(head_bytes=1024))[0] == 431


def test_a_page_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    status, _, body = ask(GET.replace(b"/page", b"/broken"))
    assert status == 500
    assert b"torn" not in body
    (logged,) = (record for record in caplog.records if record.levelno >= logging.ERROR)
    assert "/broken" in logged.getMessage()


def test_who_does_not_finish_his_request_is_closed_without_an_answer() -> None:
    async def scenario() -> None:
        async with site(HttpLimits(receive_seconds=0.01)) as running:
            reader, writer = await asyncio.open_connection(LOOPBACK, running.port)
            writer.write(GET[:-1])
            assert await everything(reader) == b""
            assert running.pages.asked == 0
            writer.close()

    asyncio.run(scenario())


def test_who_does_not_take_his_answer_is_closed() -> None:
    async def scenario() -> None:
        async with site(HttpLimits(send_seconds=0.01)) as running:
            with socket.socket() as slow:
                slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                slow.setblocking(False)
                await asyncio.get_running_loop().sock_connect(slow, (LOOPBACK, running.port))
                await asyncio.get_running_loop().sock_sendall(slow, GET.replace(b"/page", b"/large"))
                await until(lambda: running.server.connections == 1)
                await until(lambda: running.server.connections == 0)

    asyncio.run(scenario())


def test_who_leaves_costs_nothing() -> None:
    async def scenario() -> None:
        async with site() as running:
            for sent in (b"", GET[:5]):
                _, writer = await asyncio.open_connection(LOOPBACK, running.port)
                writer.write(sent)
                await until(lambda: running.server.connections == 1)
                writer.close()
                await until(lambda: running.server.connections == 0)

    asyncio.run(scenario())


def test_too_many_connections_are_refused_until_one_ends() -> None:
    async def scenario() -> None:
        async with site(HttpLimits(connections=2)) as running:
            first = await asyncio.open_connection(LOOPBACK, running.port)
            second = await asyncio.open_connection(LOOPBACK, running.port)
            await until(lambda: running.server.connections == 2)
            reader, writer = await asyncio.open_connection(LOOPBACK, running.port)
            status, _, body = split(await everything(reader))
            assert (status, body) == (503, b"too many connections\n")
            writer.close()
            first[1].write(GET)
            assert split(await everything(first[0]))[0] == 200
            await until(lambda: running.server.connections == 1)
            assert (await running.ask(GET))[0] == 200
            first[1].close()
            second[1].close()

    asyncio.run(scenario())


def test_closing_ends_everything_at_once() -> None:
    async def scenario() -> None:
        async with site() as running:
            reader, writer = await asyncio.open_connection(LOOPBACK, running.port)
            writer.write(GET[:5])
            await until(lambda: running.server.connections == 1)
            await running.server.close()
            assert await everything(reader) == b""
            writer.close()
            with pytest.raises(ConnectionRefusedError):
                await running.ask(GET)

    asyncio.run(scenario())


def test_a_port_that_is_taken_names_the_setting() -> None:
    async def scenario() -> None:
        async with site() as running:
            with pytest.raises(OSError, match=rf"http://{LOOPBACK}:{running.port}: .*ottla\.http\.listeners"):
                await HttpServer({}).open([Endpoint("http", LOOPBACK, running.port)])

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("host", "address"),
    [("localhost", "http://localhost:9644"), ("::1", "http://[::1]:9644"), ("", "http://0.0.0.0:9644")],
)
def test_addresses_can_be_copied_into_a_browser(host: str, address: str) -> None:
    assert address_of(Endpoint("http", host, 9644)) == address


def test_an_empty_host_is_every_address() -> None:
    async def scenario() -> None:
        pages = Pages()
        server = HttpServer({"/page": pages.page})
        (endpoint,) = await server.open([Endpoint("http", "", 0)])
        assert (await Site(server, endpoint.port, pages).ask(GET))[0] == 200
        await server.close()

    asyncio.run(scenario())
