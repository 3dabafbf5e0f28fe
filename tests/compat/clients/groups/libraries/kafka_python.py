"""kafka-python as a member of a group."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.errors import KafkaConnectionError
from tests.compat.clients.groups.libraries.member import POLL_SECONDS, Member

_STRATEGIES: dict[str, Any] = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "cooperative": CooperativeStickyAssignor,
}


# A poll that ends while the library waits for the answer to SyncGroup was seen to leave it without heartbeats for good,
# on Apache Kafka too: one of 50 ms does so in every tenth group. So a poll that may join is a long one.
JOIN_MS = 2000


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc] # the library has no types
    def __init__(self, member: KafkaPythonMember) -> None:
        self._member = member

    def on_partitions_assigned(self, assigned: Any) -> None:
        self._member.note("assigned", [place.partition for place in assigned])

    def on_partitions_revoked(self, revoked: Any) -> None:
        self._member.note("revoked", [place.partition for place in revoked])


class KafkaPythonMember(Member):
    library = "kafka-python"
    _consumer: Any = None

    def open(self) -> None:
        logging.getLogger("kafka").setLevel(logging.CRITICAL)
        settings = self.kafka_python_settings(_STRATEGIES)
        self._consumer = KafkaConsumer(**settings, reconnect_backoff_ms=20, reconnect_backoff_max_ms=200)
        pattern = {"pattern": self.topic} if self.topic.startswith("^") else {"topics": [self.topic]}
        self._consumer.subscribe(**pattern, listener=_Listener(self))

    def assigned(self) -> list[int]:
        """Asked without waiting for the end of a poll, which is long here: a set that is replaced as a whole."""
        return [] if self.error else sorted(self.assignment())

    def poll(self) -> None:
        settled = self._consumer.assignment() and not self._consumer._coordinator.need_rejoin()
        try:
            found = self._consumer.poll(timeout_ms=int(POLL_SECONDS * 1000) if settled else JOIN_MS)
        except KafkaConnectionError:
            # The broker is away: the library says so in every poll, and goes on.
            time.sleep(POLL_SECONDS)
            return
        for records in found.values():
            self.records += [(record.partition, record.offset, record.value.decode()) for record in records]

    def close(self) -> None:
        self._consumer.close()

    def assignment(self) -> Iterable[int]:
        return [place.partition for place in self._consumer.assignment()] if self._consumer else []

    def commit(self, how: str) -> None:
        if how == "async":
            self._consumer.commit_async()
        else:
            self._consumer.commit()

    def committed(self, partition: int) -> int | None:
        found: int | None = self._consumer.committed(TopicPartition(self.topic, partition))
        return found

    def seek(self, partition: int, offset: int) -> None:
        self._consumer.seek(TopicPartition(self.topic, partition), offset)

    def offset_at(self, partition: int, timestamp_ms: int) -> int | None:
        place = TopicPartition(self.topic, partition)
        found = self._consumer.offsets_for_times({place: timestamp_ms})[place]
        return None if found is None else int(found.offset)
