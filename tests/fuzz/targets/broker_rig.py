"""A whole broker in this process that does the same thing in every run: memory for a disk, virtual time, no threads.

What a client sends goes through a real `Connection` over a pair of sockets; the broker's own listener is bound and
never used.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tests.fuzz.inline_store import InlineEngine
from tests.fuzz.target import Finding
from tests.fuzz.virtual_loop import LoopClock, VirtualLoop

from ottla.broker.broker import Broker
from ottla.broker.buffers import BufferPool
from ottla.broker.config import BrokerConfig
from ottla.broker.connection import SHARED_BUFFER_BYTES, Connection, Reply
from ottla.broker.vigil import Vigil
from ottla.cluster.controller import NewTopic
from ottla.runtime import Executor
from ottla.testing.memory_disk import MemoryDisk
from ottla.testing.runtime import InlineExecutor, SeededIds

Result = TypeVar("Result")

LISTENER = "PLAINTEXT"
TOPICS = ("one", "two", "tidy")
COMPACTED = "tidy"
PARTITIONS = 2
QUIET_TURNS = 4
MOST_TURNS = 400
PATIENCE_STEP_SECONDS = 0.25
PATIENCE_STEPS = 8
# Between two clients: long enough for segments to be rolled, cleaned and deleted.
PAUSE_SECONDS = 1.2
REQUEST_LIMIT_BYTES = 1 << 20
BUFFERS_LIMIT_BYTES = 4 << 20
DISK_BYTES = 64 << 20
PROPERTIES = {
    "log.dirs": "/data",
    "listeners": f"{LISTENER}://127.0.0.1:0",
    "socket.request.max.bytes": str(REQUEST_LIMIT_BYTES),
    "auto.create.topics.enable": "true",
    "ottla.busy.poll.us": "0",
    "num.partitions": "1",
    "max.incremental.fetch.session.cache.slots": "6",
    "log.roll.ms": "1000",
    "log.index.interval.bytes": "0",
    "log.segment.delete.delay.ms": "100",
    "log.retention.check.interval.ms": "1000",
    "log.cleaner.backoff.ms": "500",
}


class SmallIds(SeededIds):
    """Numbers that an input can guess: of fetch sessions, for one."""

    def below(self, limit: int) -> int:
        return super().below(min(limit, 16))


class Complaints(logging.Handler):
    """What the broker reports as an error, which a client must not be able to bring about."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.first: Finding | None = None

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        self.note(record.getMessage() if error is None else record.msg, error)

    def note(self, message: str, error: BaseException | None) -> None:
        if self.first is None:
            self.first = Finding(message)
            self.first.__cause__ = error

    def handle_loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        self.note(str(context.get("message")), error if isinstance(error, BaseException) else None)

    def raise_first(self) -> None:
        first, self.first = self.first, None
        if first is not None:
            raise first


class Door:
    """What a connection needs of its server."""

    def __init__(self, broker: Broker, loop: asyncio.AbstractEventLoop, executor: Executor) -> None:
        self.loop = loop
        self.executor: Executor = executor
        self.buffers = BufferPool(BUFFERS_LIMIT_BYTES)
        self.due_answers = broker.due_answers
        self.shared_buffer = memoryview(bytearray(SHARED_BUFFER_BYTES))
        self.request_limit_bytes = REQUEST_LIMIT_BYTES
        self.vigil = Vigil(loop, 0.0)
        self.dispatched = 0
        self._dispatch = broker.dispatcher.dispatch

    def dispatch(self, connection: Connection, frame: memoryview) -> Reply:
        self.dispatched += 1
        return self._dispatch(connection, frame)

    def connection_closed(self, connection: Connection) -> None:
        """There is one at a time."""

    def wait_for_buffer(self, resume: Callable[[], None]) -> None:
        raise Finding("one connection waits for memory that only others could have")

    def buffer_returned(self) -> None:
        """Nobody waits."""

    def later(self, seconds: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        return self.loop.call_later(seconds, callback)


class BrokerRig:
    """Started when it is made; `stop` gives back all it had. `restart` loads what was written again."""

    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.complaints = Complaints()
        self.loop.set_exception_handler(self.complaints.handle_loop_error)
        self._logger = logging.getLogger("ottla")
        self._logger.propagate = False
        self._clock = LoopClock(self.loop)
        self.disk = MemoryDisk(self._clock.now_ms, DISK_BYTES)
        self._ids = SmallIds(1)
        self._executor = InlineExecutor()
        self._store = self._run(self._new_store())
        self.broker = self._run(self._start())
        self._run(self._create_topics())
        self.door = Door(self.broker, self.loop, self._executor)

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """What other targets in this process make a log complain of is none of this broker's."""
        self._logger.addHandler(self.complaints)
        try:
            return self.loop.run_until_complete(work)
        finally:
            self._logger.removeHandler(self.complaints)

    async def _new_store(self) -> InlineEngine:
        return InlineEngine()

    async def _start(self) -> Broker:
        broker = Broker(
            BrokerConfig.from_properties(PROPERTIES),
            disk=self.disk,
            clock=self._clock,
            ids=self._ids,
            executor=self._executor,
            open_store=self._store.open_session,
        )
        await broker.start()
        return broker

    async def _create_topics(self) -> None:
        configs = {COMPACTED: {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.0"}}
        topics = [NewTopic(name, PARTITIONS, configs=configs.get(name, {})) for name in TOPICS]
        for result in await self.broker.controller.create_topics(topics):
            assert not result.error, result
        await self.broker.image_applied()

    def topic_ids(self) -> dict[str, bytes]:
        return {name: topic.topic_id for name, topic in self.broker.image.topics.items()}

    def stop(self) -> None:
        try:
            self._run(self.broker.shutdown())
        finally:
            self._store.discard()
            self.loop.close()

    def restart(self) -> None:
        self._run(self.broker.shutdown())
        self.broker = self._run(self._start())
        self.door = Door(self.broker, self.loop, self._executor)

    def converse(self, data: bytes) -> bytes:
        """What the broker answers to the bytes of one connection, until it has nothing more to say."""
        answer = self._run(self._converse(data))
        self.complaints.raise_first()
        return answer

    async def _converse(self, data: bytes) -> bytes:
        ours, theirs = socket.socketpair()
        for sock in (ours, theirs):
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, REQUEST_LIMIT_BYTES)
        self.door.dispatched = 0
        connection = Connection(self.door, theirs, "127.0.0.1", 1, LISTENER)
        connection.start()
        answer = bytearray()
        try:
            assert ours.send(data) == len(data)
            await self._until_quiet(connection, ours, answer)
        finally:
            connection.close()
            ours.close()
        await asyncio.sleep(PAUSE_SECONDS)
        return bytes(answer)

    async def _until_quiet(self, connection: Connection, sock: socket.socket, answer: bytearray) -> None:
        """All that is owed has come, or only time could bring it and enough of that has passed."""
        quiet = waited = 0
        for _ in range(MOST_TURNS):
            await asyncio.sleep(0)
            received = _receive(sock)
            answer += received
            if connection.closed:
                answer += _receive(sock)
                return
            quiet = 0 if received else quiet + 1
            if quiet < QUIET_TURNS:
                continue
            if not connection.busy:
                return
            if quiet >= 4 * QUIET_TURNS:
                if waited == PATIENCE_STEPS:
                    return
                waited += 1
                quiet = 0
                await asyncio.sleep(PATIENCE_STEP_SECONDS)


def _receive(sock: socket.socket) -> bytes:
    with contextlib.suppress(BlockingIOError, ConnectionError):
        return sock.recv(REQUEST_LIMIT_BYTES)
    return b""
