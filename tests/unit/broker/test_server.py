"""Listening, limits on connections, memory for large requests, and closing in good order."""

import asyncio
import socket

import pytest
from tests.unit.broker.serving import LOOPBACK, InlineExecutor, Parking, echo, frame, serving, until

from ottla.broker.buffers import GRAIN_BYTES
from ottla.broker.connection import Connection
from ottla.broker.due_answers import DueAnswers
from ottla.broker.outbox import Part
from ottla.broker.server import Server, ServerLimits
from ottla.cluster.image import Endpoint


def test_a_port_that_is_taken_is_named_with_what_to_do() -> None:
    async def scenario() -> str:
        with socket.create_server((LOOPBACK, 0)) as taken:
            port = taken.getsockname()[1]
            server = Server(echo, ServerLimits(), InlineExecutor(), DueAnswers())
            with pytest.raises(OSError, match=f"cannot listen on PLAINTEXT://{LOOPBACK}:{port}") as caught:
                server.bind([Endpoint("PLAINTEXT", LOOPBACK, port)])
            await server.shutdown()
            return str(caught.value)

    assert "set another port with --port or change `listeners`" in asyncio.run(scenario())


def test_a_connection_knows_its_listener_and_its_peer() -> None:
    seen: list[tuple[str, str, int]] = []

    def dispatch(connection: Connection, content: memoryview) -> list[Part]:
        seen.append((connection.listener, connection.peer_host, connection.peer_port))
        return echo(connection, content)

    async def scenario() -> None:
        server = Server(dispatch, ServerLimits(), InlineExecutor(), DueAnswers())
        inner, outer = server.bind([Endpoint("INNER", LOOPBACK, 0), Endpoint("OUTER", "", 0)])
        assert inner.port != outer.port
        server.start()
        for endpoint in (inner, outer):
            reader, writer = await asyncio.open_connection(LOOPBACK, endpoint.port)
            writer.write(frame(b"hello"))
            assert await reader.readexactly(9) == frame(b"hello")
            assert seen[-1] == (endpoint.name, *writer.get_extra_info("sockname"))
            writer.close()
            await writer.wait_closed()
        await server.shutdown()

    asyncio.run(scenario())


def test_nobody_is_answered_before_the_start() -> None:
    async def scenario() -> None:
        server = Server(echo, ServerLimits(), InlineExecutor(), DueAnswers())
        (endpoint,) = server.bind([Endpoint("PLAINTEXT", LOOPBACK, 0)])
        reader, writer = await asyncio.open_connection(LOOPBACK, endpoint.port)
        writer.write(frame(b"early"))
        await writer.drain()
        assert not server.connections
        server.start()
        assert await reader.readexactly(9) == frame(b"early")
        writer.close()
        await writer.wait_closed()
        await server.shutdown()

    asyncio.run(scenario())


# Limits on connections


def test_connections_above_the_limit_of_an_address_are_refused() -> None:
    async def scenario() -> None:
        async with serving(limits=ServerLimits(connections_per_address=2)) as running:
            first, second = await running.connect(), await running.connect()
            await first.ask(b"1")
            await second.ask(b"2")
            assert await (await running.connect()).is_closed()
            assert await first.ask(b"1") == b"1"
            first.socket.close()
            await until(lambda: len(running.server.connections) == 1)
            assert await (await running.connect()).ask(b"3") == b"3"

    asyncio.run(scenario())


@pytest.mark.parametrize(("general", "own", "allowed"), [(0, 1, True), (5, 0, False)])
def test_an_address_can_have_a_limit_of_its_own(general: int, own: int, allowed: bool) -> None:
    limits = ServerLimits(connections_per_address=general, connections_per_address_overrides={LOOPBACK: own})

    async def scenario() -> None:
        async with serving(limits=limits) as running:
            peer = await running.connect()
            if allowed:
                assert await peer.ask(b"in") == b"in"
            else:
                assert await peer.is_closed()

    asyncio.run(scenario())


def test_connections_above_the_limit_of_all_wait() -> None:
    async def scenario() -> None:
        async with serving(limits=ServerLimits(connections=2)) as running:
            first, second = await running.connect(), await running.connect()
            await first.ask(b"1")
            await second.ask(b"2")
            third = await running.connect()
            await third.send(frame(b"3"))
            for _ in range(10):
                assert await first.ask(b"1") == b"1"
            assert third.silent
            second.socket.close()
            assert await third.answer() == b"3"

    asyncio.run(scenario())


def test_silent_connections_are_closed_and_others_are_not() -> None:
    async def scenario() -> None:
        async with serving(limits=ServerLimits(idle_ms=1500)) as running:
            silent, lively = await running.connect(), await running.connect()
            closed = asyncio.create_task(silent.is_closed())
            while not closed.done():
                assert await lively.ask(b"ping") == b"ping"
                await asyncio.wait([closed], timeout=0.02)
            assert await closed
            assert await lively.ask(b"ping") == b"ping"

    asyncio.run(scenario())


# Memory for large requests


LARGE = b"x" * GRAIN_BYTES


def test_a_large_request_waits_while_others_use_the_memory() -> None:
    async def scenario() -> None:
        limits = ServerLimits(queued_request_bytes=2 * len(LARGE))
        async with serving(limits=limits) as running:
            first, second, third = [await running.connect() for _ in range(3)]
            await first.send(frame(LARGE)[:-1])
            await until(lambda: running.server.buffers.lent_bytes > 0)
            waiting = [asyncio.create_task(peer.ask(LARGE)) for peer in (second, third)]
            small = await running.connect()
            for _ in range(20):
                assert await small.ask(b"small ones pass") == b"small ones pass"
            assert not any(task.done() for task in waiting)
            await first.send(LARGE[-1:])
            assert await first.answer() == LARGE
            assert await asyncio.gather(*waiting) == [LARGE, LARGE]
            assert running.server.buffers.lent_bytes == 0

    asyncio.run(scenario())


def test_who_leaves_while_waiting_for_memory_does_not_keep_others_waiting() -> None:
    async def scenario() -> None:
        limits = ServerLimits(queued_request_bytes=1)
        async with serving(limits=limits) as running:
            first, second, third = [await running.connect() for _ in range(3)]
            await first.send(frame(LARGE)[:-1])
            await until(lambda: running.server.buffers.lent_bytes > 0)
            beginning = frame(LARGE)[: len(LARGE) // 2]
            await second.send(beginning)
            sending = asyncio.create_task(third.ask(LARGE))
            small = await running.connect()
            for _ in range(20):
                await small.ask(b"small")
            second.socket.close()
            first.socket.close()
            assert await sending == LARGE

    asyncio.run(scenario())


def test_who_is_slow_with_a_large_request_gives_way_when_others_wait_for_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ottla.broker.server.SLOW_SECONDS", 0.0)
    monkeypatch.setattr("ottla.broker.server.SWEEP_SECONDS", 0.01)

    async def scenario() -> None:
        async with serving(limits=ServerLimits(queued_request_bytes=1)) as running:
            slow, other = await running.connect(), await running.connect()
            await slow.send(frame(LARGE)[:-1])
            await until(lambda: running.server.buffers.lent_bytes > 0)
            assert await other.ask(LARGE) == LARGE
            assert await slow.is_closed()

    asyncio.run(scenario())


# Closing


def test_owed_answers_leave_before_the_connection_is_closed() -> None:
    async def scenario() -> None:
        parking = Parking()
        async with serving(parking) as running:
            peer, idle = await running.connect(), await running.connect()
            await peer.send(frame(b"1") + frame(b"2"))
            await parking.reached(2)
            await until(lambda: len(running.server.connections) == 2)
            closing = asyncio.create_task(running.server.shutdown())
            assert await idle.is_closed()
            parking.resolve(1)
            parking.resolve(0)
            assert [await peer.answer(), await peer.answer()] == [b"1", b"2"]
            assert await peer.is_closed()
            await closing
            assert not running.server.connections

    asyncio.run(scenario())


def test_a_large_answer_leaves_before_the_connection_is_closed() -> None:
    def dispatch(connection: Connection, content: memoryview) -> list[Part]:
        return [frame(bytes(content) * 1_000_000)]

    async def scenario() -> None:
        limits = ServerLimits(send_buffer_bytes=16_384)
        async with serving(dispatch, limits) as running:
            peer = await running.connect(receive_buffer_bytes=16_384)
            await peer.send(frame(b"abc"))
            await until(lambda: not peer.silent)
            closing = asyncio.create_task(running.server.shutdown())
            assert await peer.answer() == b"abc" * 1_000_000
            assert await peer.is_closed()
            await closing

    asyncio.run(scenario())


def test_no_more_requests_are_taken_once_closing_began() -> None:
    async def scenario() -> None:
        parking = Parking()
        async with serving(parking) as running:
            idle, peer = await running.connect(), await running.connect()
            await peer.send(frame(b"taken"))
            await parking.reached(1)
            closing = asyncio.create_task(running.server.shutdown())
            assert await idle.is_closed()
            await peer.send(frame(b"not taken"))
            parking.resolve(0)
            assert await peer.answer() == b"taken"
            await closing
            assert parking.contents == [b"taken"]
            with pytest.raises(ConnectionRefusedError):
                await running.connect()

    asyncio.run(scenario())


def test_who_is_never_answered_is_closed_when_the_grace_is_over() -> None:
    async def scenario() -> None:
        parking = Parking()
        async with serving(parking) as running:
            peer = await running.connect()
            await peer.send(frame(b"never"))
            await parking.reached(1)
            await running.server.shutdown(grace_seconds=0.01)
            assert await peer.is_closed()
            assert parking.futures[0].cancelled()
            assert not running.server.connections

    asyncio.run(scenario())
