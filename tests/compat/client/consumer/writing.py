"""Topics and records for the tests of the consumer, written by confluent-kafka; and a way to run an async test."""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, ParamSpec

from confluent_kafka import Producer

from ottla import Admin
from ottla.client.admin import NewTopic

PATIENCE_SECONDS = 60.0

Arguments = ParamSpec("Arguments")
_numbers = itertools.count(1)


def asynchronous(test: Callable[Arguments, Coroutine[Any, Any, None]]) -> Callable[Arguments, None]:
    """A test that is a coroutine, on a loop of its own, and not for ever."""

    @functools.wraps(test)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(2 * PATIENCE_SECONDS):
                await test(*args, **kwargs)

        asyncio.run(bounded())

    return run


class Writer:
    """Creates topics with names of their own, and writes to them."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._admin = Admin(bootstrap)
        self._producers: dict[str, Any] = {}

    def topic(self, partitions: int = 1, prefix: str = "consumed", **config: str) -> str:
        name = f"{prefix}-{next(_numbers)}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        self._admin.create_topics(NewTopic(name, partitions, 1, settings)).raise_for_errors()
        return name

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        self._admin.delete_records({(topic, partition): before}).raise_for_errors()

    def producer(self, codec: str = "none") -> Any:
        if codec not in self._producers:
            settings = {
                "bootstrap.servers": self.bootstrap,
                "compression.type": codec,
                "linger.ms": 5,
                "enable.idempotence": True,
            }
            self._producers[codec] = Producer(settings)
        return self._producers[codec]

    def write(
        self,
        topic: str,
        values: Iterable[bytes | None],
        *,
        partition: int = 0,
        codec: str = "none",
        timestamps: Iterable[int] = (),
        headers: Any = None,
    ) -> None:
        producer = self.producer(codec)
        times = iter(timestamps)
        for value in values:
            producer.produce(
                topic, value, b"key", partition=partition, timestamp=next(times, 0), headers=headers, on_delivery=_must
            )
            producer.poll(0)
        assert producer.flush(PATIENCE_SECONDS) == 0

    def transaction(self, topic: str, values: Iterable[bytes], *, commit: bool | None) -> Any:
        """Write in a transaction, and commit, abort or leave it open; the producer is for ending it later."""
        settings = {"bootstrap.servers": self.bootstrap, "transactional.id": f"writer-{next(_numbers)}"}
        producer = Producer(settings)
        producer.init_transactions(PATIENCE_SECONDS)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, partition=0, on_delivery=_must)
        producer.flush(PATIENCE_SECONDS)
        if commit is not None:
            (producer.commit_transaction if commit else producer.abort_transaction)(PATIENCE_SECONDS)
        return producer

    def close(self) -> None:
        for producer in self._producers.values():
            producer.flush(PATIENCE_SECONDS)
        self._admin.close()


def _must(error: object, message: object) -> None:
    assert error is None, error
