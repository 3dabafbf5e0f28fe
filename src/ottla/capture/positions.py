"""Where a connector stands: the last record of a compacted topic that only its own transactions write.

Offsets of a consumer group would do it, too, but brokers forget those of a group that is silent for a week. A topic of
its own, because an open transaction of another connector would hide what lies behind it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ottla.client.admin import NewTopic
from ottla.client.sync.admin import Admin
from ottla.client.sync.consumer import Consumer
from ottla.client.sync.producer import Producer
from ottla.client.types import TopicPartition

_WAIT_SECONDS = 30.0


class Positions:
    """The positions of one connector."""

    def __init__(self, topic: str, connector: str) -> None:
        self.topic = topic
        self._key = connector.encode()

    def prepare(self, admin: Admin) -> None:
        if self.topic in {topic.name for topic in admin.list_topics()}:
            return
        admin.create_topics([NewTopic(self.topic, 1, configs={"cleanup.policy": "compact"})]).raise_for_errors()

    def write(self, producer: Producer[bytes, bytes], position: int | None) -> None:
        """As part of the producer's open transaction."""
        value = None if position is None else json.dumps({"position": position}).encode()
        producer.send(self.topic, value, key=self._key, partition=0)

    def read(self, config: Mapping[str, object]) -> int | None:
        """The last one that was committed. To be asked by the holder of the transactional id: nothing is open then."""
        settings: dict[str, Any] = {"isolation_level": "read_committed", "enable_auto_commit": False}
        consumer: Consumer[bytes, bytes]
        with Consumer(config=config, **settings) as consumer:
            place = TopicPartition(self.topic, 0)
            consumer.assign([(self.topic, 0, 0)])
            end = consumer.end_offsets([place])[place]
            found: int | None = None
            while consumer.position(place) < end:
                for record in consumer.poll(_WAIT_SECONDS):
                    if record.key == self._key and record.value is not None:
                        found = int(json.loads(record.value)["position"])
            return found
