"""Bytes to frames to answers: however the bytes arrive, each request is answered once and in order."""

import asyncio
import logging
import struct
import zlib

import pytest
from tests.unit.broker.serving import Parking, Peer, Serving, echo, frame, serving, until

from ottla.broker.connection import (
    OWN_BUFFER_ABOVE_BYTES,
    PARKED_LIMIT,
    SHARED_BUFFER_BYTES,
    CloseConnection,
    Connection,
    Reply,
)
from ottla.broker.outbox import Part
from ottla.broker.server import ServerLimits
from ottla.runtime.promise import Promise


async def send_and_see_it_read(peer: Peer, data: bytes, connection: Connection) -> None:
    before = connection.last_active
    await peer.send(data)
    await until(lambda: connection.last_active != before)


def test_frames_cut_at_every_byte() -> None:
    contents = [b"one", b"", b"three"]
    whole = b"".join(map(frame, contents))

    async def scenario() -> None:
        async with serving() as running:
            peer = await running.connect()
            await until(lambda: bool(running.server.connections))
            (connection,) = running.server.connections.values()
            for cut in range(1, len(whole)):
                await send_and_see_it_read(peer, whole[:cut], connection)
                await peer.send(whole[cut:])
                assert [await peer.answer() for _ in contents] == contents

    asyncio.run(scenario())


def test_single_bytes() -> None:
    async def scenario() -> None:
        async with serving() as running:
            peer = await running.connect()
            for byte in frame(b"slow is not wrong"):
                await peer.send(bytes([byte]))
            assert await peer.answer() == b"slow is not wrong"

    asyncio.run(scenario())


def test_many_frames_in_one_segment() -> None:
    contents = [b"%d" % number for number in range(5000)]

    async def scenario() -> None:
        async with serving() as running:
            peer = await running.connect()
            sending = asyncio.create_task(peer.send(b"".join(map(frame, contents))))
            assert [await peer.answer() for _ in contents] == contents
            await sending

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "size_bytes",
    [
        OWN_BUFFER_ABOVE_BYTES - 1,
        OWN_BUFFER_ABOVE_BYTES,
        OWN_BUFFER_ABOVE_BYTES + 1,
        SHARED_BUFFER_BYTES - 4,
        SHARED_BUFFER_BYTES,
        3_000_001,
    ],
)
def test_large_frames_between_small_ones(size_bytes: int) -> None:
    content = bytes(range(256)) * (size_bytes // 256) + b"x" * (size_bytes % 256)

    def checksum(connection: Connection, received: memoryview) -> list[Part]:
        return [frame(struct.pack(">iI", len(received), zlib.crc32(received)))]

    async def scenario() -> None:
        async with serving(checksum) as running:
            peer = await running.connect()
            for _ in range(2):
                sending = asyncio.create_task(peer.send(frame(b"a") + frame(content) + frame(b"b")))
                answers = [await peer.answer() for _ in range(3)]
                await sending
                expected = [b"a", content, b"b"]
                assert answers == [struct.pack(">iI", len(sent), zlib.crc32(sent)) for sent in expected]
            assert running.server.buffers.lent_bytes == 0

    asyncio.run(scenario())


def test_large_frames_of_two_connections_do_not_mix() -> None:
    async def scenario() -> None:
        async with serving() as running:
            first, second = await running.connect(), await running.connect()
            one, two = b"1" * 400_000, b"2" * 400_000
            await first.send(frame(one)[:150_000])
            await second.send(frame(two)[:150_000])
            await until(lambda: running.server.buffers.lent_bytes >= 800_000)
            for peer, content in ((second, two), (first, one)):
                sending = asyncio.create_task(peer.send(frame(content)[150_000:]))
                assert await peer.answer() == content
                await sending

    asyncio.run(scenario())


def test_answers_leave_in_order_although_later_ones_are_ready_first() -> None:
    async def scenario() -> None:
        parking = Parking()
        async with serving(parking) as running:
            peer = await running.connect()
            await peer.send(frame(b"0") + frame(b"1") + frame(b"2"))
            await parking.reached(3)
            parking.resolve(2)
            parking.resolve(1)
            await round_trips(running, parking, peers=1)
            assert peer.silent
            parking.resolve(0)
            assert [await peer.answer() for _ in range(3)] == [b"0", b"1", b"2"]

    asyncio.run(scenario())


async def round_trips(running: Serving, parking: Parking, peers: int) -> None:
    """Let other clients be answered, so that whatever the server would do for anybody it has done."""
    for _ in range(peers):
        other, index = await running.connect(), len(parking.futures)
        await other.send(frame(b"other"))
        await parking.reached(index + 1)
        parking.resolve(index)
        assert await other.answer() == b"other"
        other.socket.close()


def test_an_answer_that_is_ready_waits_behind_one_that_is_not() -> None:
    async def scenario() -> None:
        parking = Parking()

        def dispatch(connection: Connection, content: memoryview) -> Reply:
            return parking(connection, content) if bytes(content) == b"slow" else echo(connection, content)

        async with serving(dispatch) as running:
            peer, other = await running.connect(), await running.connect()
            await peer.send(frame(b"slow") + frame(b"quick"))
            await parking.reached(1)
            assert await other.ask(b"other") == b"other"
            assert peer.silent
            parking.resolve(0)
            assert [await peer.answer(), await peer.answer()] == [b"slow", b"quick"]

    asyncio.run(scenario())


def test_requests_that_want_no_answer_get_none() -> None:
    async def scenario() -> None:
        parking = Parking()

        def dispatch(connection: Connection, content: memoryview) -> Reply:
            if bytes(content) == b"quiet":
                return None
            return parking(connection, content) if bytes(content) == b"later" else echo(connection, content)

        async with serving(dispatch) as running:
            peer = await running.connect()
            await peer.send(frame(b"quiet") + frame(b"later") + frame(b"loud"))
            await parking.reached(1)
            parking.futures[0].set_result(None)
            assert await peer.answer() == b"loud"

    asyncio.run(scenario())


def test_no_more_than_the_limit_is_parked() -> None:
    total = 3 * PARKED_LIMIT

    async def scenario() -> None:
        parking = Parking()
        async with serving(parking) as running:
            peer = await running.connect()
            await peer.send(b"".join(frame(b"%d" % number) for number in range(total)))
            await parking.reached(PARKED_LIMIT)
            await round_trips(running, parking, peers=1)
            assert len(parking.futures) == PARKED_LIMIT + 1, "one more came, and it was the other client's"
            parking.contents.pop()
            parking.futures.pop()
            for number in range(total):
                await parking.reached(number + 1)
                assert len(parking.futures) <= number + PARKED_LIMIT
                parking.resolve(number)
                assert await peer.answer() == b"%d" % number

    asyncio.run(scenario())


@pytest.mark.parametrize("size", [1001, 2**31 - 1, -1, -(2**31)])
def test_a_length_that_is_not_allowed_ends_only_its_connection(size: int, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with serving(limits=ServerLimits(request_bytes=1000)) as running:
            peer, other = await running.connect(), await running.connect()
            await peer.send(frame(b"before") + struct.pack(">i", size))
            assert await peer.answer() == b"before"
            assert await peer.is_closed()
            assert await other.ask(b"x" * 1000) == b"x" * 1000

    with caplog.at_level(logging.WARNING):
        asyncio.run(scenario())
    assert f"a request of {size} bytes was announced; socket.request.max.bytes allows 1000" in caplog.text


def test_a_request_that_cannot_be_answered_ends_its_connection_after_the_answers_before_it() -> None:
    async def scenario() -> None:
        parking = Parking()

        def dispatch(connection: Connection, content: memoryview) -> Reply:
            if bytes(content) == b"nonsense":
                raise CloseConnection("it makes no sense")
            return parking(connection, content)

        async with serving(dispatch) as running:
            peer = await running.connect()
            await peer.send(frame(b"owed") + frame(b"nonsense") + frame(b"ignored"))
            await parking.reached(1)
            parking.resolve(0)
            assert await peer.answer() == b"owed"
            assert await peer.is_closed()
            assert parking.contents == [b"owed"]

    asyncio.run(scenario())


@pytest.mark.parametrize("error", [CloseConnection("refused"), ValueError("a fault of the handler")])
def test_a_parked_answer_that_fails_ends_its_connection(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        parking = Parking()
        async with serving(parking) as running:
            peer = await running.connect()
            await peer.send(frame(b"0") + frame(b"1") + frame(b"2"))
            await parking.reached(3)
            parking.resolve(2)
            parking.futures[1].set_exception(error)
            parking.resolve(0)
            assert await peer.answer() == b"0"
            assert await peer.is_closed(), "the third answer must not come out of order"
            assert not running.server.connections

    asyncio.run(scenario())
    assert str(error) in caplog.text


def test_promises_behind_one_that_is_refused_are_given_up_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        promises: list[Promise[list[Part] | None]] = []

        def dispatch(connection: Connection, content: memoryview) -> Reply:
            promises.append(Promise())
            return promises[-1]

        async with serving(dispatch) as served:
            peer = await served.connect()
            await peer.send(frame(b"first") + frame(b"second") + frame(b"third"))
            await until(lambda: len(promises) == 3)
            promises[0].reject(CloseConnection("refused"))
            assert await peer.is_closed()
            assert [promise.cancelled() for promise in promises] == [False, True, True]

    asyncio.run(run())
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_a_handler_that_fails_costs_its_own_connection_only(caplog: pytest.LogCaptureFixture) -> None:
    def dispatch(connection: Connection, content: memoryview) -> Reply:
        if bytes(content) == b"fail":
            raise ZeroDivisionError("a fault of the handler")
        return echo(connection, content)

    async def scenario() -> None:
        async with serving(dispatch) as running:
            peer, other = await running.connect(), await running.connect()
            await peer.send(frame(b"fail"))
            assert await peer.is_closed()
            assert await other.ask(b"still here") == b"still here"

    asyncio.run(scenario())
    assert "a fault of the handler" in caplog.text


def test_who_leaves_is_not_waited_for() -> None:
    async def scenario() -> None:
        parking = Parking()
        async with serving(parking) as running:
            peer = await running.connect()
            await peer.send(frame(b"never answered"))
            await parking.reached(1)
            peer.socket.close()
            await until(lambda: not running.server.connections)
            assert parking.futures[0].cancelled()

    asyncio.run(scenario())


@pytest.mark.parametrize("sent", [b"\0", b"\0\0\0\5", frame(b"12345")[:-1], frame(b"x" * 500_000)[:300_000]])
def test_who_leaves_in_the_middle_of_a_frame_leaves_nothing_behind(sent: bytes) -> None:
    async def scenario() -> None:
        async with serving() as running:
            peer = await running.connect()
            await peer.send(sent)
            await until(lambda: bool(running.server.connections))
            peer.socket.close()
            await until(lambda: not running.server.connections)
            assert running.server.buffers.lent_bytes == 0

    asyncio.run(scenario())
