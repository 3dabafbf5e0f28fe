"""Topics that get no records for a while are not asked about any more (`metadata.max.idle.ms`, KIP-526).

What is known of their partitions stays, with the sequences of an idempotent producer: the next record goes where the
last one went, and the topic is kept up to date again from then on.
"""

from collections.abc import Iterable

from ottla.client.network import Network
from ottla.client.producer.shipment import Shipment


class IdleTopics:
    def __init__(self, network: Network, max_idle_seconds: float) -> None:
        self._network = network
        self._max_idle_seconds = max_idle_seconds
        self._used_at: dict[str, float] = {}
        self._look_at = float("-inf")

    def shipped(self, shipments: Iterable[Shipment], now: float) -> None:
        for shipment in shipments:
            for batch in shipment.batches:
                self.used(batch.queue.topic, now)

    def used(self, topic: str, now: float) -> None:
        if topic not in self._used_at:
            self._network.watch_topics([topic])
        self._used_at[topic] = now

    def look(self, now: float) -> None:
        """Let go of what was idle for too long; found within a quarter of that time."""
        if now < self._look_at:
            return
        self._look_at = now + self._max_idle_seconds / 4
        idle = [topic for topic, used_at in self._used_at.items() if now - used_at > self._max_idle_seconds]
        if idle:
            self._network.unwatch_topics(idle)
            for topic in idle:
                del self._used_at[topic]
