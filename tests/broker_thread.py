"""A broker in this process, on a disk and by a clock that a test may hand in."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from ottla.broker.broker import Broker
from ottla.broker.config import BrokerConfig
from ottla.runtime import Clock, Disk
from ottla.testing import TestBroker
from ottla.testing.broker import PATIENCE_SECONDS


class BrokerThread(TestBroker):
    """In a directory that stays, with the machine's own disk and clock unless others are given."""

    def __init__(
        self,
        directory: Path,
        properties: dict[str, str] | None = None,
        *,
        disk: Disk | None = None,
        broker_clock: Clock | None = None,
    ) -> None:
        defaults = {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            # The tests' records are years old: retention is applied where a test asks for it.
            "log.retention.check.interval.ms": "86400000",
        }
        super().__init__({**defaults, **(properties or {})}, directory=directory)
        self._given_disk = disk
        self._given_clock = broker_clock

    def _new_broker(self, config: BrokerConfig, clock: Clock) -> Broker:
        return Broker(config, disk=self._given_disk, clock=self._given_clock)

    def call(self, function: Callable[..., object], *arguments: object) -> None:
        """Call something of the broker's parts where they live, on its loop; returns when what that began is done."""

        async def work() -> None:
            function(*arguments)
            await asyncio.sleep(0)

        asyncio.run_coroutine_threadsafe(work(), self._running().loop).result(PATIENCE_SECONDS)
