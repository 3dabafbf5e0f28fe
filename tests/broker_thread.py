"""A broker in this process that a test may prepare before it starts."""

from collections.abc import Callable
from pathlib import Path

from ottla.broker.broker import Broker
from ottla.broker.config import BrokerConfig
from ottla.runtime import Clock
from ottla.testing import TestBroker


class BrokerThread(TestBroker):
    """On the real disk, in a directory that stays; `prepare` is called with the broker before it starts."""

    def __init__(
        self,
        directory: Path,
        properties: dict[str, str] | None = None,
        prepare: Callable[[Broker], None] | None = None,
    ) -> None:
        defaults = {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            # The tests' records are years old: retention is applied where a test asks for it.
            "log.retention.check.interval.ms": "86400000",
        }
        super().__init__({**defaults, **(properties or {})}, directory=directory)
        self._prepare = prepare

    def _new_broker(self, config: BrokerConfig, clock: Clock) -> Broker:
        broker = Broker(config)
        if self._prepare is not None:
            self._prepare(broker)
        return broker
