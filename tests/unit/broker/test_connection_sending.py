"""Answers out: file ranges by sendfile, cold files, clients that do not read."""

import asyncio
import random
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest
from tests.unit.broker.serving import HoldingExecutor, InlineExecutor, Peer, Serving, echo, frame, serving, until

from ottla.broker.connection import Connection, Reply
from ottla.broker.outbox import LIMIT_BYTES, PIECE_BYTES, SMALL_RANGE_BYTES, Outbox, Part
from ottla.broker.server import ServerLimits
from ottla.runtime import Executor, FileRange
from ottla.runtime.disk import Buffer
from ottla.runtime.real_disk import RealDisk, RealFile

Result = TypeVar("Result")

SMALL_SOCKET_BUFFER_BYTES = 16 * 1024
FILE_BYTES = 2 * PIECE_BYTES + 12_345
CONTENT = random.Random(2026).randbytes(FILE_BYTES)


@pytest.fixture
def file(tmp_path: Path) -> RealFile:
    opened = RealDisk().open(str(tmp_path / "segment.log"), create=True)
    opened.append([CONTENT])
    return opened


class ColdFile:
    """A file whose bytes are on the disk only, until they are read once."""

    def __init__(self, file: RealFile) -> None:
        self._file = file
        self.path = file.path
        self.size = file.size
        self.warm: list[tuple[int, int]] = []

    def is_resident(self, position: int, length: int) -> bool:
        return any(start <= position and position + length <= start + size for start, size in self.warm)

    def read_at(self, position: int, length: int) -> bytes:
        self.warm.append((position, length))
        return self._file.read_at(position, length)

    def read_resident(self, position: int, length: int) -> bytes | bytearray | None:
        return self._file.read_resident(position, length) if self.is_resident(position, length) else None

    def send(self, descriptor: int, position: int, count: int) -> int:
        return self._file.send(descriptor, position, count)

    def prepare(self) -> None:
        raise NotImplementedError

    def append(self, chunks: Sequence[Buffer]) -> int:
        raise NotImplementedError

    def write_at(self, position: int, data: Buffer) -> None:
        raise NotImplementedError

    def truncate(self, size: int) -> None:
        raise NotImplementedError

    def sync(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class FileAnswers:
    """A dispatch that answers `file` with ranges between bytes, and everything else with itself."""

    def __init__(self, file: RealFile | ColdFile, *ranges: tuple[int, int]) -> None:
        self._ranges = [FileRange(file, position, length) for position, length in ranges]

    def __call__(self, connection: Connection, content: memoryview) -> Reply:
        if bytes(content) != b"file":
            return echo(connection, content)
        parts: list[Part] = []
        for part in self._ranges:
            parts += [b"<", part, b">"]
        size = sum(map(len, parts))
        return [size.to_bytes(4, "big"), *parts]


@pytest.mark.parametrize(
    "ranges",
    [
        [(0, 100)],
        [(7, 1)],
        [(0, FILE_BYTES)],
        [(1_000_003, 1_000_003)],
        [(0, 10), (FILE_BYTES - 10, 10), (50, 2_000_000)],
    ],
)
def test_ranges_of_files_arrive_whole_and_in_order(file: RealFile, ranges: list[tuple[int, int]]) -> None:
    expected = b"".join(b"<" + CONTENT[position : position + length] + b">" for position, length in ranges)

    async def scenario() -> None:
        limits = ServerLimits(send_buffer_bytes=SMALL_SOCKET_BUFFER_BYTES)
        async with serving(FileAnswers(file, *ranges), limits) as running:
            peer = await running.connect(receive_buffer_bytes=SMALL_SOCKET_BUFFER_BYTES)
            await peer.send(frame(b"before") + frame(b"file") + frame(b"file") + frame(b"after"))
            assert [await peer.answer() for _ in range(4)] == [b"before", expected, expected, b"after"]

    asyncio.run(scenario())


def test_a_file_in_memory_is_sent_without_the_executor(file: RealFile) -> None:
    file.read_at(0, FILE_BYTES)
    executor = InlineExecutor()

    async def scenario() -> None:
        async with serving(FileAnswers(file, (0, FILE_BYTES)), executor=executor) as running:
            assert len(await (await running.connect()).ask(b"file")) == FILE_BYTES + 2

    asyncio.run(scenario())
    assert executor.runs == 0


def test_a_cold_file_is_read_ahead_in_bounded_pieces(file: RealFile) -> None:
    cold, executor = ColdFile(file), InlineExecutor()

    async def scenario() -> None:
        async with serving(FileAnswers(cold, (100, FILE_BYTES - 100)), executor=executor) as running:
            peer = await running.connect()
            assert await peer.ask(b"file") == b"<" + CONTENT[100:] + b">"

    asyncio.run(scenario())
    assert executor.runs == 3
    assert max(length for _, length in cold.warm) == PIECE_BYTES
    assert sorted(cold.warm)[0][0] == 100


def test_nobody_waits_for_another_clients_cold_file(file: RealFile) -> None:
    executor = HoldingExecutor()

    async def scenario() -> None:
        async with serving(FileAnswers(ColdFile(file), (0, 1000)), executor=executor) as running:
            peer, other = await running.connect(), await running.connect()
            await peer.send(frame(b"file") + frame(b"after"))
            await until(lambda: bool(executor.held))
            assert await other.ask(b"other") == b"other"
            executor.release()
            assert await peer.answer() == b"<" + CONTENT[:1000] + b">"
            assert await peer.answer() == b"after"

    asyncio.run(scenario())


def test_who_leaves_while_a_cold_file_is_read_leaves_nothing_behind(file: RealFile) -> None:
    executor = HoldingExecutor()

    async def scenario() -> None:
        async with serving(FileAnswers(ColdFile(file), (0, 1000)), executor=executor) as running:
            peer, other = await running.connect(), await running.connect()
            await peer.send(frame(b"file"))
            await until(lambda: bool(executor.held))
            peer.socket.close()
            await until(lambda: len(running.server.connections) == 1)
            executor.release()
            assert await other.ask(b"other") == b"other"

    asyncio.run(scenario())


class FailingExecutor:
    def run(self, work: Callable[..., Result], /, *args: object) -> Awaitable[Result]:
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        future.set_exception(OSError("the disk is gone"))
        return future


def test_a_file_that_cannot_be_read_ends_the_connection(file: RealFile) -> None:
    async def scenario() -> None:
        await file_answer_ends_the_connection(ColdFile(file), FailingExecutor())

    asyncio.run(scenario())


def test_a_file_that_is_shorter_than_promised_ends_the_connection(file: RealFile) -> None:
    file.truncate(500)

    async def scenario() -> None:
        await file_answer_ends_the_connection(file, InlineExecutor())

    asyncio.run(scenario())


def test_a_file_that_was_closed_ends_the_connection(file: RealFile) -> None:
    file.close()

    async def scenario() -> None:
        await file_answer_ends_the_connection(file, InlineExecutor())

    asyncio.run(scenario())


async def file_answer_ends_the_connection(file: RealFile | ColdFile, executor: Executor) -> None:
    async with serving(FileAnswers(file, (0, 1000)), executor=executor) as running:
        peer, other = await running.connect(), await running.connect()
        await peer.send(frame(b"file"))
        with pytest.raises(EOFError):
            await peer.answer()
        assert await other.ask(b"other") == b"other"


# Clients that do not read


QUESTION = frame(b"what do you know?")


class Counting:
    """Answers the question with a lot of bytes and counts how often; other clients get an echo."""

    def __init__(self, answer_bytes: int) -> None:
        self.answer = frame(b"." * answer_bytes)
        self.answers = 0

    def __call__(self, connection: Connection, content: memoryview) -> Reply:
        if bytes(content) == b"other":
            return echo(connection, content)
        self.answers += 1
        return [self.answer]


async def ask_until_refused(peer: Peer, running: Serving) -> int:
    """Send questions until the server takes no more, and read nothing; how many whole ones there were.

    The server takes no more once the socket stays full while another client is answered several times. The rest of
    the last question is never sent: the kernel owes nobody room for it before most of the others were read.
    """
    data, sent_bytes, refusals = QUESTION * 1000, 0, 0
    other = await running.connect()
    while refusals < 3:
        try:
            sent_bytes += peer.socket.send(data[sent_bytes % len(data) :])
            refusals = 0
        except BlockingIOError:
            refusals += 1
        assert await other.ask(b"other") == b"other"
        assert sent_bytes < 1 << 26, "the server took 64 MiB of questions without having its answers read"
    return sent_bytes // len(QUESTION)


@pytest.mark.parametrize("answer_bytes", [20, 5000, 300_000])
def test_who_does_not_read_is_not_read_either(answer_bytes: int) -> None:
    counting = Counting(answer_bytes)
    limits = ServerLimits(send_buffer_bytes=SMALL_SOCKET_BUFFER_BYTES, receive_buffer_bytes=SMALL_SOCKET_BUFFER_BYTES)

    async def scenario() -> None:
        async with serving(counting, limits) as running:
            peer = await running.connect(receive_buffer_bytes=SMALL_SOCKET_BUFFER_BYTES)
            count = await ask_until_refused(peer, running)
            kernel_bytes = 10 * SMALL_SOCKET_BUFFER_BYTES
            assert counting.answers * answer_bytes < LIMIT_BYTES + 2 * answer_bytes + kernel_bytes
            assert counting.answers < count
            for _ in range(min(count, counting.answers + 50)):
                assert len(await peer.answer()) == answer_bytes

    asyncio.run(scenario())


def test_small_ranges_for_a_client_that_does_not_read_are_not_all_held_in_memory(tmp_path: Path) -> None:
    """What was gathered and could not be sent stays near the limit, however many answers wait."""
    path = tmp_path / "segment"
    path.write_bytes(bytes(SMALL_RANGE_BYTES))
    file = RealDisk().open(str(path))
    ours, theirs = socket.socketpair()

    async def scenario() -> None:
        ours.setblocking(False)
        outbox = Outbox(ours, asyncio.get_running_loop(), InlineExecutor(), went_on=lambda: None, broken=lambda: None)
        for _ in range(LIMIT_BYTES // SMALL_RANGE_BYTES * 8):
            outbox.enqueue([FileRange(file, 0, SMALL_RANGE_BYTES)])
        outbox.flush()
        assert outbox
        assert outbox._unsent_bytes < LIMIT_BYTES + SMALL_RANGE_BYTES
        outbox.close()

    with ours, theirs:
        asyncio.run(scenario())
    file.close()
