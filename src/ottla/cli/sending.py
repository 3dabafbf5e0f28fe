"""Records into a topic as fast as brokers take them, with a bounded number in flight, and none lost unnoticed."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ottla.cli.json_records import RecordToSend

if TYPE_CHECKING:
    from ottla.client.producer.producer import AsyncProducer

MAX_OPEN = 50_000
# Sending never waits by itself: the loop must get a turn now and then to carry the records away.
SENT_IN_A_ROW = 1000


class Sending:
    """Sends to one topic; the first record that a broker refuses ends it with that error. `count` is how many were
    acknowledged so far. `report` is called with each acknowledgement, in the order of the records."""

    def __init__(
        self, producer: "AsyncProducer[Any, Any]", topic: str, report: Callable[[Any], None] | None = None
    ) -> None:
        self._producer = producer
        self._topic = topic
        self._report = report
        self._open: deque[Any] = deque()
        self._sent = 0
        self.count = 0

    async def send(self, record: RecordToSend) -> None:
        from ottla.client.errors import BufferFull

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

    async def begin(self) -> None:
        """Learn where the partitions are, so that the first records do not have to be kept aside."""
        await self._producer.partitions_for(self._topic)

    async def finish(self) -> None:
        """Wait for what is not acknowledged yet."""
        await self._producer.flush()
        while self._open:
            await self._settle_first()

    async def _settle_first(self) -> None:
        metadata = await self._open[0]
        self._open.popleft()
        self.count += 1
        if self._report is not None:
            self._report(metadata)
