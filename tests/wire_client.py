"""A client of a few lines: requests and answers as the protocol declares them, nothing retried, nothing hidden."""

import socket
import struct
from types import TracebackType
from typing import Self, TypeVar

from tests.peers.ports import receive_exactly

from ottla.protocol.framing import decode_response, encode_request
from ottla.protocol.message import Request, Response

Answer = TypeVar("Answer", bound=Response)

TIMEOUT_SECONDS = 60.0
CLIENT_ID = "wire-client"


class WireClient:
    """One blocking connection. `ask` is one question and its answer; `send` and `receive` are for pipelining."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self.socket = socket.create_connection((host, port), timeout=TIMEOUT_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0

    def ask(self, request: Request, answer: type[Answer], version: int | None = None) -> Answer:
        self.send(request, version)
        return self.receive(request, answer, version)

    def send(self, request: Request, version: int | None = None) -> None:
        self._correlation_id += 1
        chosen = request.MAX_VERSION if version is None else version
        self.socket.sendall(encode_request(request, chosen, self._correlation_id, CLIENT_ID))

    def receive(self, request: Request, answer: type[Answer], version: int | None = None) -> Answer:
        """The next answer, which must be the one to `request`."""
        chosen = request.MAX_VERSION if version is None else version
        _, response = decode_response(type(request), chosen, self.frame())
        assert isinstance(response, answer)
        return response

    def send_bytes(self, data: bytes) -> None:
        self.socket.sendall(data)

    def frame(self) -> bytes:
        """The next answer as it is, without its length."""
        (size,) = struct.unpack(">i", receive_exactly(self.socket, 4))
        return receive_exactly(self.socket, size)

    @property
    def correlation_id(self) -> int:
        """Of the request that was sent last."""
        return self._correlation_id

    def is_closed(self) -> bool:
        """Whether the other side hangs up without saying anything more; waits for it."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
