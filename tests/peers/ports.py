"""Free ports, and the question every Kafka-speaking server can answer: are you there?"""

from __future__ import annotations

import random
import socket
import struct

LOOPBACK = "127.0.0.1"

# Below those that systems give to whoever connects somewhere: a server may take seconds until it listens, and nobody's
# connection is in its way then.
_PORTS = range(15_000, 32_000)
# Not the generator that tests are seeded with, or every test would choose the same ones.
_choices = random.SystemRandom()

_METADATA_KEY = 3
_METADATA_VERSION = 1
_NO_TOPICS = 0


def free_port() -> int:
    """A port that nobody uses now."""
    for _ in _PORTS:
        port = _choices.choice(_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            return port
    raise RuntimeError(f"no port of {_PORTS} is free")


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
