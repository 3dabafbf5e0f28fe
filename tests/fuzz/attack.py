"""Clients that misbehave: a few connections at a time, each with its own way of being rude."""

import asyncio
import contextlib
import random
import socket
import struct
from dataclasses import dataclass

from tests.fuzz.frames import split
from tests.fuzz.generator import RequestMaker
from tests.fuzz.mutations import mutate
from tests.fuzz.replays import Replays
from tests.peers.ports import LOOPBACK

ANSWER_PATIENCE_SECONDS = 0.05
CONNECT_PATIENCE_SECONDS = 10.0
LONGEST_PIPELINE = 12
MUTATED_SHARES = (0.0, 0.1, 0.6)


@dataclass(slots=True)
class Counts:
    requests: int = 0
    connections: int = 0
    closed_by_broker: int = 0
    answered_bytes: int = 0


class Attacker:
    """Opens one connection after another. What it does is drawn from its own dice, so a seed repeats it."""

    def __init__(
        self, port: int, dice: random.Random, maker: RequestMaker, counts: Counts, replays: Replays | None = None
    ) -> None:
        self._port = port
        self._dice = dice
        self._maker = maker
        self._counts = counts
        self._replays = replays

    async def run(self, over: asyncio.Event) -> None:
        while not over.is_set():
            await self._visit()

    async def _visit(self) -> None:
        """Connect, send, and leave: politely, half-closed, abruptly, or in the middle of a frame."""
        dice = self._dice
        data = self._bytes()
        if dice.random() < 0.1:
            data = data[: dice.randrange(len(data))]
        async with asyncio.timeout(CONNECT_PATIENCE_SECONDS):
            reader, writer = await asyncio.open_connection(LOOPBACK, self._port)
        self._counts.connections += 1
        try:
            await self._send(writer, data)
            leaving = dice.random()
            if leaving < 0.2:
                writer.write_eof()
            if leaving < 0.7:
                await self._listen(reader)
            elif leaving < 0.85:
                sock: socket.socket = writer.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            # Reset, or no longer connected when it was to be half-closed.
            self._counts.closed_by_broker += 1
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _bytes(self) -> bytes:
        """What one connection sends: something that was found, or requests of its own."""
        dice = self._dice
        replayed = None if self._replays is None else self._replays.draw(dice, self._maker.topics)
        if replayed:
            self._counts.requests += len(split(replayed))
            return replayed
        mutated_share = dice.choice(MUTATED_SHARES)
        return b"".join(self._frame(mutated_share) for _ in range(dice.randint(1, LONGEST_PIPELINE)))

    def _frame(self, mutated_share: float) -> bytes:
        self._counts.requests += 1
        frame = self._maker.frame()
        return mutate(self._dice, frame, self._maker.frame()) if self._dice.random() < mutated_share else frame

    async def _send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        """In one piece or in several, cut anywhere."""
        dice = self._dice
        cuts = sorted(dice.randrange(len(data) + 1) for _ in range(dice.choice((0, 0, 0, 1, 4))))
        for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            writer.write(data[start:end])
            await writer.drain()
            await asyncio.sleep(0)

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        """Read until the broker hangs up or says nothing for a moment."""
        with contextlib.suppress(TimeoutError):
            while True:
                async with asyncio.timeout(ANSWER_PATIENCE_SECONDS):
                    answer = await reader.read(1 << 16)
                if not answer:
                    self._counts.closed_by_broker += 1
                    return
                self._counts.answered_bytes += len(answer)
