"""Free ports, and the question every Kafka-speaking server can answer: are you there?"""

from __future__ import annotations

import socket
import struct

LOOPBACK = "127.0.0.1"

_METADATA_KEY = 3
_METADATA_VERSION = 1
_NO_TOPICS = 0


def free_port() -> int:
    """A port nobody listens on now. Another process may take it before it is used: start soon, and retry on failure."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def receive_exactly(connection: socket.socket, count: int) -> bytes:
    """`count` bytes from the socket; EOFError when the peer closes before that."""
    received = bytearray()
    while len(received) < count:
        piece = connection.recv(min(1 << 20, count - len(received)))
        if not piece:
            raise EOFError(f"expected {count} bytes, the connection closed after {len(received)}")
        received += piece
    return bytes(received)


def brokers_known(port: int, timeout_seconds: float = 2.0) -> int:
    """How many brokers the server on `port` lists in Metadata: 0 while it cannot be reached or knows nobody.

    An open port is too early a sign: a KRaft broker accepts connections before it is unfenced and listed.
    """
    body = struct.pack(">hhih", _METADATA_KEY, _METADATA_VERSION, 1, -1) + struct.pack(">i", _NO_TOPICS)
    try:
        with socket.create_connection((LOOPBACK, port), timeout=timeout_seconds) as connection:
            connection.sendall(struct.pack(">i", len(body)) + body)
            (length,) = struct.unpack(">i", receive_exactly(connection, 4))
            answer = receive_exactly(connection, length)
    except (OSError, EOFError):
        return 0
    (count,) = struct.unpack_from(">i", answer, 4)
    return int(count)
