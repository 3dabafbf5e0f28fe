"""A connection that is muted answers what it owes and hears nothing more until its time is over."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.unit.broker.serving import Parking, Serving, frame, serving, until

from ottla.broker.connection import Connection
from ottla.broker.outbox import Part
from ottla.broker.quotas.rates import Windows
from ottla.broker.server import ServerLimits


class SetTimer:
    """One that goes off when the test says so."""

    def __init__(self, seconds: float, callback: Callable[[], None]) -> None:
        self.seconds = seconds
        self.is_cancelled = False
        self._callback = callback

    def cancel(self) -> None:
        self.is_cancelled = True

    def go_off(self) -> None:
        assert not self.is_cancelled
        self._callback()


class Timers:
    def __init__(self) -> None:
        self.set: list[SetTimer] = []

    def later(self, seconds: float, callback: Callable[[], None]) -> SetTimer:
        self.set.append(SetTimer(seconds, callback))
        return self.set[-1]


class Muting:
    """Echoes; a request `mute <seconds>` mutes its connection."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    def __call__(self, connection: Connection, content: memoryview) -> list[Part]:
        self.heard.append(bytes(content))
        word, _, seconds = bytes(content).partition(b" ")
        if word == b"mute":
            connection.mute(float(seconds))
        return [frame(bytes(content))]


@pytest.fixture
def timers() -> Timers:
    return Timers()


def only_connection(running: Serving) -> Connection:
    (connection,) = running.server.connections.values()
    return connection


def test_the_answer_leaves_and_what_follows_waits(timers: Timers, monkeypatch: pytest.MonkeyPatch) -> None:
    dispatch = Muting()

    async def scenario() -> None:
        async with serving(dispatch) as running:
            monkeypatch.setattr(running.server, "later", timers.later)
            peer = await running.connect()
            await peer.send(frame(b"mute 2.5") + frame(b"in the same segment"))
            assert await peer.answer() == b"mute 2.5"
            await peer.send(frame(b"later"))
            assert dispatch.heard == [b"mute 2.5"]
            assert only_connection(running).is_muted
            assert [timer.seconds for timer in timers.set] == [2.5]
            timers.set[0].go_off()
            assert await peer.answer() == b"in the same segment"
            assert await peer.answer() == b"later"
            assert not only_connection(running).is_muted

    asyncio.run(scenario())


def test_of_two_times_the_one_that_ends_later_counts(timers: Timers, monkeypatch: pytest.MonkeyPatch) -> None:
    parking = Parking()

    async def scenario() -> None:
        async with serving(parking) as running:
            monkeypatch.setattr(running.server, "later", timers.later)
            peer = await running.connect()
            await peer.send(frame(b"one") + frame(b"two"))
            await parking.reached(2)
            connection = only_connection(running)
            connection.mute(10)
            connection.mute(5)
            connection.mute(20)
            assert [(timer.seconds, timer.is_cancelled) for timer in timers.set] == [(10, True), (20, False)]
            parking.resolve(0)
            parking.resolve(1)
            assert [await peer.answer(), await peer.answer()] == [b"one", b"two"]
            await peer.send(frame(b"three"))
            timers.set[1].go_off()
            await parking.reached(3)

    asyncio.run(scenario())


def test_a_large_request_that_is_arriving_goes_on_afterwards(timers: Timers, monkeypatch: pytest.MonkeyPatch) -> None:
    dispatch = Muting()
    large = b"x" * 1_000_000

    async def scenario() -> None:
        async with serving(dispatch) as running:
            monkeypatch.setattr(running.server, "later", timers.later)
            peer = await running.connect()
            await peer.send(frame(b"mute 1") + frame(large)[:500_000])
            assert await peer.answer() == b"mute 1"
            timers.set[0].go_off()
            await peer.send(frame(large)[500_000:])
            assert await peer.answer() == large

    asyncio.run(scenario())


def test_a_client_that_leaves_while_it_is_muted_is_gone_afterwards(
    timers: Timers, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with serving(Muting()) as running:
            monkeypatch.setattr(running.server, "later", timers.later)
            peer = await running.connect()
            await peer.ask(b"mute 3600")
            peer.socket.close()
            assert len(running.server.connections) == 1, "it counts until it is closed"
            timers.set[0].go_off()
            await until(lambda: not running.server.connections)

    asyncio.run(scenario())


def test_a_muted_connection_that_is_idle_too_long_is_closed(timers: Timers, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with serving(Muting(), ServerLimits(idle_ms=50)) as running:
            monkeypatch.setattr(running.server, "later", timers.later)
            peer = await running.connect()
            await peer.ask(b"mute 3600")
            assert await peer.is_closed()
            assert timers.set[0].is_cancelled

    asyncio.run(scenario())


def test_a_server_that_ends_waits_for_nobody_who_is_muted(timers: Timers, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with serving(Muting()) as running:
            monkeypatch.setattr(running.server, "later", timers.later)
            peer = await running.connect()
            await peer.ask(b"mute 3600")
            connection = only_connection(running)
            running.server.stop_reading()
            assert connection.closed
            assert timers.set[0].is_cancelled
            connection.mute(1)
            assert not connection.is_muted
            assert await peer.is_closed()

    asyncio.run(scenario())


def test_muting_sets_a_timer_of_the_loop() -> None:
    async def scenario() -> None:
        async with serving(Muting()) as running:
            peer = await running.connect()
            assert await peer.ask(b"mute 0.01") == b"mute 0.01"
            assert await peer.ask(b"go on") == b"go on"

    asyncio.run(scenario())


def test_who_connects_too_fast_is_let_wait_and_turned_away(timers: Timers, monkeypatch: pytest.MonkeyPatch) -> None:
    class Doorkeeper:
        def connected(self, host: str) -> int:
            assert host == "127.0.0.1"
            return 700

    async def scenario() -> None:
        async with serving(Muting()) as running:
            server = running.server
            monkeypatch.setattr(server, "later", timers.later)
            monkeypatch.setattr(server, "address_quota", Doorkeeper())
            peers = [await running.connect() for _ in range(3)]
            await until(lambda: len(timers.set) == 3)
            assert {timer.seconds for timer in timers.set} == {0.7}
            assert not server.connections
            timers.set[0].go_off()
            assert [await peer.is_closed() for peer in peers[:1]] == [True]
            assert all(peer.silent for peer in peers[1:])
            monkeypatch.setattr(server, "address_quota", None)
            assert await (await running.connect()).ask(b"hello") == b"hello"

    asyncio.run(scenario())


def test_connections_that_come_too_fast_are_let_in_later(timers: Timers, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = ServerLimits(connections_per_second=1, connection_windows=Windows(samples=3, window_ms=3_600_000))

    async def scenario() -> None:
        async with serving(Muting(), limits) as running:
            server = running.server
            monkeypatch.setattr(server, "later", timers.later)
            peers = [await running.connect() for _ in range(3)]
            assert [await peer.ask(b"welcome") for peer in peers] == [b"welcome"] * 3
            server.update_connection_limits(replace(limits, connections_per_second=0))
            early, behind = await running.connect(), await running.connect()
            await until(lambda: bool(timers.set))
            assert timers.set[0].seconds == 3600
            await early.send(frame(b"hello"))
            await behind.send(frame(b"hello"))
            assert len(server.connections) == 3
            server.update_connection_limits(limits)
            assert early.silent
            timers.set[0].go_off()
            assert await early.answer() == b"hello"
            assert await behind.answer() == b"hello"

    asyncio.run(scenario())


def test_who_waits_at_the_door_is_sent_away_at_the_end(timers: Timers, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with serving(Muting(), ServerLimits(connections_per_second=0)) as running:
            monkeypatch.setattr(running.server, "later", timers.later)
            peer = await running.connect()
            await until(lambda: bool(timers.set))
            await running.server.shutdown(0.0)
            assert timers.set[0].is_cancelled
            assert await peer.is_closed()

    asyncio.run(scenario())
