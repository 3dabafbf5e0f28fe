"""aiokafka as a member of a group: its loop turns on the member's own thread."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from tests.compat.clients.groups.libraries.member import POLL_SECONDS, Member

Given = TypeVar("Given")
_STRATEGIES: dict[str, Any] = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc] # the library has no types
    def __init__(self, member: AiokafkaMember) -> None:
        self._member = member

    def on_partitions_assigned(self, assigned: Any) -> None:
        self._member.note("assigned", [place.partition for place in assigned])

    def on_partitions_revoked(self, revoked: Any) -> None:
        self._member.note("revoked", [place.partition for place in revoked])


class AiokafkaMember(Member):
    library = "aiokafka"

    def open(self) -> None:
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
        self._loop = asyncio.new_event_loop()
        self._wait(self._start())

    async def _start(self) -> None:
        settings = self.kafka_python_settings(_STRATEGIES)
        self._consumer = AIOKafkaConsumer(**settings)
        pattern = {"pattern": self.topic} if self.topic.startswith("^") else {"topics": [self.topic]}
        self._consumer.subscribe(**pattern, listener=_Listener(self))
        await self._consumer.start()

    def poll(self) -> None:
        for records in self._wait(self._consumer.getmany(timeout_ms=int(POLL_SECONDS * 1000))).values():
            self.records += [(record.partition, record.offset, record.value.decode()) for record in records]

    def close(self) -> None:
        self._wait(self._consumer.stop())
        self._loop.close()

    def assignment(self) -> Iterable[int]:
        return [place.partition for place in self._consumer.assignment()]

    def commit(self, how: str) -> None:
        """The library has no other commit than one that is awaited; who does not wait makes a task of it."""
        if how == "async":
            self._committing = self._loop.create_task(self._consumer.commit())
        else:
            self._wait(self._consumer.commit())

    def committed(self, partition: int) -> int | None:
        found: int | None = self._wait(self._consumer.committed(TopicPartition(self.topic, partition)))
        return found

    def seek(self, partition: int, offset: int) -> None:
        self._consumer.seek(TopicPartition(self.topic, partition), offset)

    def offset_at(self, partition: int, timestamp_ms: int) -> int | None:
        place = TopicPartition(self.topic, partition)
        found = self._wait(self._consumer.offsets_for_times({place: timestamp_ms}))[place]
        return None if found is None else int(found.offset)

    def _wait(self, work: Coroutine[Any, Any, Given]) -> Given:
        return self._loop.run_until_complete(work)
