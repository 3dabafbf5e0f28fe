"""Where a connector stands: its last record in a compacted topic, in the partition that all connectors share.

Offsets of a consumer group would do it, too, but brokers forget those of a group that is silent for a week. A topic of
its own, because the changes of others would have to be read through.

An open transaction of another connector hides what lies behind it from readers of committed records: a position that
was committed later is not seen, and an older one is found in its place. So a read is whole only when it has come to the
end that the partition has for readers of uncommitted records.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ottla.client.admin import NewTopic
from ottla.client.errors import Unfinished
from ottla.client.sync.admin import Admin
from ottla.client.sync.consumer import Consumer
from ottla.client.sync.producer import Producer
from ottla.client.types import TopicPartition

_POLL_SECONDS = 0.2
_PATIENCE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Standing:
    """Changes up to `position` are captured, of these tables (each with its key) and since the snapshot `incarnation`.

    `tables` is None where a connector wrote it that did not keep them."""

    position: int
    incarnation: int = 0
    tables: Mapping[str, str] | None = None

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, value: bytes) -> Standing:
        fields = json.loads(value)
        return cls(fields["position"], fields.get("incarnation", 0), fields.get("tables"))


class Positions:
    """The positions of one connector."""

    def __init__(self, topic: str, connector: str, patience_seconds: float = _PATIENCE_SECONDS) -> None:
        self.topic = topic
        self._key = connector.encode()
        self._patience_seconds = patience_seconds

    def prepare(self, admin: Admin) -> None:
        if self.topic in {topic.name for topic in admin.list_topics()}:
            return
        admin.create_topics([NewTopic(self.topic, 1, configs={"cleanup.policy": "compact"})]).raise_for_errors()

    def write(self, producer: Producer[bytes, bytes], standing: Standing | None) -> None:
        """As part of the producer's open transaction. None: to begin with a snapshot."""
        producer.send(self.topic, None if standing is None else standing.to_bytes(), key=self._key, partition=0)

    def read(self, config: Mapping[str, object]) -> Standing | None:
        """The last one that was committed; Unfinished where transactions of others stay open, or nobody answers.

        To be asked by the holder of the transactional id: nothing of its own is open then."""
        place = TopicPartition(self.topic, 0)
        with Admin(config=config) as admin:
            latest = admin.list_offsets([place])[place]
        end = 0 if latest is None else latest.offset
        gives_up_at = time.monotonic() + self._patience_seconds
        settings: dict[str, Any] = {"isolation_level": "read_committed", "enable_auto_commit": False}
        found: Standing | None = None
        consumer: Consumer[bytes, bytes]
        with Consumer(config=config, **settings) as consumer:
            consumer.assign([(self.topic, 0, 0)])
            while consumer.position(place) < end:
                for record in consumer.poll(_POLL_SECONDS):
                    if record.key == self._key:
                        found = None if record.value is None else Standing.from_bytes(record.value)
                if time.monotonic() > gives_up_at:
                    raise self._unfinished(end)
        return found

    def _unfinished(self, end: int) -> Unfinished:
        return Unfinished(
            f"the positions in {self.topic} could not be read up to offset {end} within {self._patience_seconds:.0f} s:"
            " another connector has left a transaction open there, or the partition's leader is away. Start that"
            " connector again, or wait until its transaction.timeout.ms is over"
        )
