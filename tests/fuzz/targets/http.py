"""The request of an HTTP client. What must hold: there is one well-formed answer, or none for half a request."""

import asyncio
from collections.abc import Hashable, Iterable
from http import HTTPStatus

from tests.fuzz.target import Finding, PlainTarget
from tests.fuzz.virtual_loop import VirtualLoop

from ottla.broker.http import HEAD_END, HttpAnswer, HttpLimits, HttpServer, text_answer

LIMITS = HttpLimits(head_bytes=512)
SEEDS = [
    b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n",
    b"HEAD /healthz?a=b HTTP/1.0\r\n\r\n",
    b"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
    b"GET /metrics HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"GET nowhere HTTP/2\r\nHost\r\n\r\n",
    b"GET /" + b"a" * 600,
]


async def _page() -> HttpAnswer:
    return text_answer(HTTPStatus.OK, "fine")


class HttpTarget(PlainTarget):
    name = "http"
    longest_bytes = 1024

    def __init__(self) -> None:
        self._loop = VirtualLoop()
        self._server = HttpServer({"/metrics": _page, "/healthz": _page}, LIMITS)

    def seeds(self) -> list[bytes]:
        return SEEDS

    def run(self, data: bytes) -> Iterable[Hashable]:
        answer = self._loop.run_until_complete(self._answer_to(data))
        if answer is None:
            if HEAD_END in data:
                raise Finding("a whole request was not answered")
            return ()
        head, separator, body = answer.partition(HEAD_END)
        lines = head.decode("ascii").split("\r\n")
        status = int(lines[0].split(" ")[1])
        headers = dict(line.split(": ", 1) for line in lines[1:])
        if not separator or status == HTTPStatus.INTERNAL_SERVER_ERROR:
            raise Finding(f"answered with {answer!r}")
        if len(body) not in (0, int(headers["Content-Length"])):
            raise Finding(f"{headers['Content-Length']} bytes promised, {len(body)} sent")
        return {status, body}

    async def _answer_to(self, data: bytes) -> bytes | None:
        reader = asyncio.StreamReader(limit=LIMITS.head_bytes)
        reader.feed_data(data)
        reader.feed_eof()
        return await self._server._answer_to(reader)
