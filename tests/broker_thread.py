"""A broker in this process, on an event loop of its own."""

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from ottla.broker.broker import Broker
from ottla.broker.config import BrokerConfig

PATIENCE_SECONDS = 30.0


class BrokerThread:
    """Started and stopped like a broker process, but with its parts in reach.

    `prepare` is called with the broker before it starts. Whatever makes the start fail is raised by `start`.
    """

    def __init__(
        self,
        directory: Path,
        properties: dict[str, str] | None = None,
        prepare: Callable[[Broker], None] | None = None,
    ) -> None:
        self._properties = {
            "log.dirs": str(directory),
            "listeners": "PLAINTEXT://127.0.0.1:0",
            # The tests' records are years old: retention is applied where a test asks for it.
            "log.retention.check.interval.ms": "86400000",
            **(properties or {}),
        }
        self._prepare = prepare
        self._ready: concurrent.futures.Future[Broker] = concurrent.futures.Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="broker")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()

    @property
    def port(self) -> int:
        return self.broker.endpoints[0].port

    @property
    def broker(self) -> Broker:
        return self._ready.result(PATIENCE_SECONDS)

    def start(self) -> Self:
        self._thread.start()
        try:
            self._ready.result(PATIENCE_SECONDS)
        except BaseException:
            self._thread.join(PATIENCE_SECONDS)
            raise
        return self

    def stop(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(PATIENCE_SECONDS)
            assert not self._thread.is_alive(), "the broker does not end"
            self._loop = None

    async def _run(self) -> None:
        try:
            broker = Broker(BrokerConfig.from_properties(self._properties))
            if self._prepare is not None:
                self._prepare(broker)
            await broker.start()
        except BaseException as error:
            self._ready.set_exception(error)
            return
        self._loop = asyncio.get_running_loop()
        self._ready.set_result(broker)
        await self._stop.wait()
        await broker.shutdown()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
