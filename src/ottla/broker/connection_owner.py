"""What a connection needs of its server."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from ottla.broker.buffers import BufferPool
from ottla.broker.due_answers import DueAnswers
from ottla.broker.muting import Timer
from ottla.broker.vigil import Vigil
from ottla.runtime import Executor

if TYPE_CHECKING:
    from ottla.broker.connection import Connection, Reply


class Owner(Protocol):
    """One for all connections."""

    loop: asyncio.AbstractEventLoop
    executor: Executor
    buffers: BufferPool
    due_answers: DueAnswers
    shared_buffer: memoryview
    request_limit_bytes: int
    vigil: Vigil

    def dispatch(self, connection: "Connection", frame: memoryview) -> "Reply": ...

    def connection_closed(self, connection: "Connection") -> None: ...

    def wait_for_buffer(self, resume: Callable[[], None]) -> None: ...

    def buffer_returned(self) -> None: ...

    def later(self, seconds: float, callback: Callable[[], None]) -> Timer: ...
