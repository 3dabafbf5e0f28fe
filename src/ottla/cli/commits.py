"""What a member of a group commits: what was written out, and nothing else.

The consumer counts a record as read when it hands it out. Between that and its way to standard output a pipe may be
closed or a disk be full, so the consumer does not commit by itself here.

| state of the records handed out last | committed is                                       |
|--------------------------------------|----------------------------------------------------|
| written                              | the positions, which are behind ends of transactions, too |
| not (all) written                    | what was behind the records written before          |
"""

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Any

from ottla.client.errors import OttlaError
from ottla.client.types import TopicPartition


class Commits:
    """A listener of the consumer's group, too: partitions that leave are committed while they are still its own.
    `every_seconds` is None where nothing is to be committed at all."""

    def __init__(self, consumer: Any, every_seconds: float | None, timeout_seconds: float) -> None:
        self._consumer = consumer
        self._timeout_seconds = timeout_seconds
        self._every_seconds = every_seconds
        self._last = time.monotonic()
        self._written: dict[TopicPartition, int] = {}
        self._is_all_written = True
        self._has_news = False

    @contextlib.contextmanager
    def of(self, records: Sequence[Any]) -> Iterator[None]:
        """While these are written out."""
        self._is_all_written = False
        yield
        for record in records:
            self._written[TopicPartition(record.topic, record.partition)] = record.offset + 1
        self._is_all_written = True
        self._has_news = self._has_news or bool(records)

    async def keep_up(self) -> None:
        """Commit if it is time again; what cannot be committed now is committed with the next."""
        now = time.monotonic()
        if self._has_news and self._every_seconds is not None and now - self._last >= self._every_seconds:
            self._last = now
            with contextlib.suppress(OttlaError):
                await self._commit()
                self._has_news = False

    async def finish(self) -> None:
        """The last commit."""
        with contextlib.nullcontext() if self._is_all_written else contextlib.suppress(OttlaError):
            await self._commit()

    async def on_revoked(self, partitions: list[TopicPartition]) -> None:
        with contextlib.suppress(OttlaError):
            await self._commit()
        self.on_lost(partitions)

    def on_lost(self, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            self._written.pop(partition, None)

    async def _commit(self) -> None:
        if self._every_seconds is None:
            return
        if self._is_all_written:
            await self._consumer.commit(timeout=self._timeout_seconds)
        elif self._written:
            await self._consumer.commit(dict(self._written), timeout=self._timeout_seconds)
