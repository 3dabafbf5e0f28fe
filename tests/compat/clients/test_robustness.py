"""Clients that misbehave cost their own connection, never the broker, its memory or anybody else."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
from collections.abc import Iterator

import pytest
from tests.compat.clients.adapters.confluent import ConfluentClient
from tests.compat.clients.bystander import Bystander
from tests.compat.clients.model import Message
from tests.compat.clients.wire import (
    API_VERSIONS,
    METADATA,
    closed_by_peer,
    connect,
    fetch_request,
    frame,
    read_answer,
    request,
)
from tests.peers.process import ServerProcess

pytestmark = pytest.mark.timeout(120)

_MEBIBYTE = 1 << 20
# The JVM grows into the heap it was given whatever happens; there the limit only says that it does not fall over.
_GROWTH_LIMIT_BYTES = {"ottla": 64 * _MEBIBYTE, "kafka": 1200 * _MEBIBYTE}
_UNSUPPORTED_VERSION = 35
_PRODUCE = 0


@pytest.fixture(scope="module")
def port(broker: ServerProcess) -> int:
    assert broker.port is not None
    return broker.port


@pytest.fixture(scope="module")
def bystander(broker: ServerProcess) -> Iterator[Bystander]:
    topic = "bystander"
    ConfluentClient(broker.bootstrap).create_topic(topic)
    bystander = Bystander(broker.bootstrap, topic)
    bystander.start()
    yield bystander
    bystander.finish()


@pytest.fixture(autouse=True)
def nobody_else_notices(broker: ServerProcess, bystander: Bystander) -> Iterator[None]:
    bystander.check()
    before = broker.resident_bytes()
    yield
    bystander.check()
    growth = broker.resident_bytes() - before
    limit = _GROWTH_LIMIT_BYTES[broker.name]
    assert growth < limit, f"memory grew by {growth / _MEBIBYTE:.0f} MiB, allowed are {limit / _MEBIBYTE:.0f}"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n", id="http"),
        pytest.param(bytes.fromhex("16030100f8010000f40303") + bytes(240), id="tls"),
        pytest.param(struct.pack(">i", 0x7FFFFFFF) + b"x" * 1000, id="length of 2 GB"),
        pytest.param(struct.pack(">i", -1) + b"x" * 1000, id="length of -1"),
        pytest.param(struct.pack(">i", -0x80000000), id="most negative length"),
        pytest.param(frame(b""), id="empty frame"),
        pytest.param(frame(b"\x00"), id="header cut off"),
        pytest.param(frame(struct.pack(">hhih", METADATA, 1, 1, 32_000) + b"x"), id="client id cut off"),
        pytest.param(request(9999, 0), id="unknown api key"),
        pytest.param(request(-1, 0), id="negative api key"),
        pytest.param(request(METADATA, 999), id="unsupported version"),
        pytest.param(request(METADATA, -1), id="negative version"),
        pytest.param(request(METADATA, 1), id="body missing"),
        pytest.param(request(METADATA, 1, struct.pack(">i", 0x7FFFFFFF)), id="array of 2 G elements"),
        pytest.param(request(METADATA, 1, struct.pack(">ih", 1, 30_000) + b"x"), id="string cut off"),
        pytest.param(request(_PRODUCE, 9, b"\xff" * 64), id="endless varint"),
    ],
)
def test_nonsense_ends_the_connection(port: int, content: bytes) -> None:
    with connect(port) as connection:
        connection.sendall(content)
        assert closed_by_peer(connection)


def test_random_bytes(port: int) -> None:
    """Some of these make a plausible length and wait for more; whatever happens, it happens to them alone."""
    generator = random.Random(2600)
    for _ in range(300):
        with connect(port) as connection, contextlib.suppress(ConnectionError):
            connection.sendall(generator.randbytes(generator.randrange(1, 2000)))


def test_random_bodies(port: int) -> None:
    """A right header in front of random bytes, for every API and version a broker may know."""
    generator = random.Random(2601)
    for api_key in range(93):
        for _ in range(5):
            with connect(port) as connection, contextlib.suppress(ConnectionError):
                connection.sendall(request(api_key, generator.randrange(18), generator.randbytes(60)))


def test_unknown_version_of_api_versions_is_answered(port: int) -> None:
    """Version 0 of the answer, with an error and the versions served: so a newer client learns what to speak."""
    with connect(port) as connection:
        connection.sendall(request(API_VERSIONS, 999, b"\x00"))
        correlation_id, code, count = struct.unpack_from(">ihi", read_answer(connection))
    assert (correlation_id, code) == (7, _UNSUPPORTED_VERSION)
    assert count > 0


def test_request_that_is_cut_off(port: int) -> None:
    whole = request(METADATA, 1, struct.pack(">i", 0))
    for length in range(1, len(whole)):
        with connect(port) as connection:
            connection.sendall(whole[:length])
            connection.shutdown(socket.SHUT_WR)
            assert closed_by_peer(connection)


def test_bytes_after_a_request_are_ignored(port: int) -> None:
    """Kafka does not look at them, and librdkafka leaves three there when it asks for all topics."""
    with connect(port) as connection:
        connection.sendall(request(METADATA, 1, struct.pack(">i", 0) + b"\x01\x00\x00"))
        assert struct.unpack_from(">ii", read_answer(connection)) == (7, 1)


def test_request_in_single_bytes(port: int) -> None:
    """Slow is not wrong: the answer comes."""
    with connect(port) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in request(METADATA, 1, struct.pack(">i", 0)):
            connection.sendall(bytes([byte]))
        assert struct.unpack_from(">ii", read_answer(connection)) == (7, 1)


def test_announced_but_never_sent(broker: ServerProcess, port: int) -> None:
    """A length is a promise, not a reason to take memory. (Apache Kafka does take it, so it gets a few only.)"""
    count = 50 if broker.name == "ottla" else 3
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            connection = stack.enter_context(connect(port))
            connection.sendall(struct.pack(">ihhih", 90 * _MEBIBYTE, _PRODUCE, 7, 1, -1) + b"x" * 1000)


def test_thousand_idle_connections(port: int, bystander: Bystander) -> None:
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(connect(port)) for _ in range(1000)]
        bystander.check()
        for connection in connections:
            connection.sendall(request(API_VERSIONS, 0))
        for connection in connections:
            assert struct.unpack_from(">ih", read_answer(connection)) == (7, 0)


def test_reader_that_never_reads(broker: ServerProcess, port: int, bystander: Bystander, topic: str) -> None:
    """Ten connections ask for 16 MiB a hundred times each and read nothing; one reads an answer after all."""
    client = ConfluentClient(broker.bootstrap)
    client.create_topic(topic)
    client.produce(topic, 0, [Message(b"x" * 900_000) for _ in range(20)])
    size = 16 * _MEBIBYTE
    before = broker.resident_bytes()
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(connect(port)) for _ in range(10)]
        for connection in connections:
            connection.sendall(fetch_request(topic, size) * 100)
        bystander.check()
        growth = broker.resident_bytes() - before
        assert growth < _GROWTH_LIMIT_BYTES[broker.name], f"memory grew by {growth / _MEBIBYTE:.0f} MiB"
        answer = read_answer(connections[0])
        assert size - 2 * _MEBIBYTE < len(answer) <= size + _MEBIBYTE


def test_answers_are_not_read(port: int) -> None:
    """Requests keep coming on a connection whose answers nobody takes: at some point the broker stops reading them."""
    flood = request(API_VERSIONS, 0) * 1000
    sent_bytes = 0
    with connect(port) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(1.0)
        with contextlib.suppress(TimeoutError, ConnectionError):
            while sent_bytes < 64 * _MEBIBYTE:
                sent_bytes += connection.send(flood)
    assert sent_bytes < 64 * _MEBIBYTE, "the broker took 64 MiB of requests without having its answers read"
