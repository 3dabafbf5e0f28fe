"""Requests written by hand, right and wrong: what no client library would send."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator

from tests.peers.ports import LOOPBACK, receive_exactly

FETCH, METADATA, API_VERSIONS = 1, 3, 18
TIMEOUT_SECONDS = 60.0


@contextlib.contextmanager
def connect(port: int) -> Iterator[socket.socket]:
    with socket.create_connection((LOOPBACK, port), timeout=TIMEOUT_SECONDS) as connection:
        yield connection


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def request(api_key: int, version: int, body: bytes = b"", correlation_id: int = 7) -> bytes:
    """A framed request with header v1 and no client id."""
    return frame(struct.pack(">hhih", api_key, version, correlation_id, -1) + body)


def fetch_request(topic: str, max_bytes: int) -> bytes:
    """Fetch v4 of partition 0 from its start, answered at once."""
    replica_id, max_wait_ms, min_bytes, isolation_level = -1, 0, 0, 0
    name = topic.encode()
    head = struct.pack(">iiiib", replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level)
    partition, offset, partition_count = 0, 0, 1
    places = struct.pack(">iiqi", partition_count, partition, offset, max_bytes)
    return request(FETCH, 4, head + struct.pack(">ih", 1, len(name)) + name + places)


def read_answer(connection: socket.socket) -> bytes:
    """The next answer without its length, whole."""
    (length,) = struct.unpack(">i", receive_exactly(connection, 4))
    return receive_exactly(connection, length)


def closed_by_peer(connection: socket.socket) -> bool:
    """Whether the other side ends the connection without having answered."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False
