"""Records into a topic as fast as brokers take them, with a bounded number in flight, and none lost unnoticed."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ottla.cli.connecting import NotThere, WrongUsage
from ottla.cli.json_records import RecordToSend
from ottla.cli.running import CommandFailed

if TYPE_CHECKING:
    from ottla.client.producer.producer import AsyncProducer

MAX_OPEN = 50_000
# Sending never waits by itself: the loop must get a turn now and then to carry the records away.
SENT_IN_A_ROW = 1000


class Sending:
    """Sends to one topic; the first record that a broker refuses ends it with that error. `count` is how many were
    acknowledged so far. `report` is called with each acknowledgement, in the order of the records.

    As a context it waits for what is on its way before it ends, also where the next record cannot be read: whatever
    goes wrong then says how many were written before. Only if none were, a mistake of the user stays one."""

    def __init__(
        self, producer: "AsyncProducer[Any, Any]", topic: str, report: Callable[[Any], None] | None = None
    ) -> None:
        self._producer = producer
        self._topic = topic
        self._report = report
        self._open: deque[Any] = deque()
        self._sent = 0
        self._partitions = 0
        self._is_refused = False
        self.count = 0

    async def __aenter__(self) -> Self:
        """Learn where the partitions are, so that the first records do not have to be kept aside."""
        self._partitions = len(await self._producer.partitions_for(self._topic))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        from ottla.client.errors import OttlaError

        if error is not None and not isinstance(error, Exception):
            return
        failed = error
        if not self._is_refused:
            try:
                await self._finish()
            except OttlaError as refusal:
                failed = refusal
        if isinstance(failed, OttlaError):
            raise CommandFailed(f"{failed} ({self.count} records were acknowledged before)") from failed
        if isinstance(failed, WrongUsage | NotThere | ValueError | OSError) and self.count:
            raise CommandFailed(f"{failed} ({self.count} records were written before)") from failed

    async def check_partition(self, partition: int | None) -> None:
        """A partition that is not there would be waited for: it could still be created."""
        if partition is None or 0 <= partition < self._partitions:
            return
        self._partitions = len(await self._producer.partitions_for(self._topic))
        if not 0 <= partition < self._partitions:
            raise NotThere(f"{self._topic} has no partition {partition}: it has 0 to {self._partitions - 1}")

    async def send(self, record: RecordToSend) -> None:
        from ottla.client.errors import BufferFull

        await self.check_partition(record.partition)
        while True:
            try:
                delivery = self._producer.send(
                    self._topic,
                    record.value,
                    key=record.key,
                    headers=record.headers,
                    partition=record.partition,
                    timestamp=record.timestamp,
                )
            except BufferFull:
                await self._producer.drain()
                await asyncio.sleep(0)
            else:
                break
        self._open.append(delivery)
        self._sent += 1
        if self._sent % SENT_IN_A_ROW == 0:
            await asyncio.sleep(0)
        while len(self._open) > MAX_OPEN:
            await self._settle_first()

    async def _finish(self) -> None:
        """Wait for what is not acknowledged yet."""
        from ottla.client.errors import Undelivered

        # What failed is raised below, with what was acknowledged before it counted.
        with suppress(Undelivered):
            await self._producer.flush()
        while self._open:
            await self._settle_first()

    async def _settle_first(self) -> None:
        try:
            metadata = await self._open[0]
        except Exception:
            self._is_refused = True
            raise
        self._open.popleft()
        self.count += 1
        if self._report is not None:
            self._report(metadata)
