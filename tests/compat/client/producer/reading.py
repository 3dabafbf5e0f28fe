"""Topics read with another client: what it sees is what was written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import confluent_kafka
from tests.waiting import until_settled

from ottla import Admin
from ottla.client.admin import NewTopic

PATIENCE_SECONDS = 60.0


class Seen(NamedTuple):
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int = -1


@dataclass(frozen=True)
class Place:
    kind: str
    bootstrap: str

    def make_topic(self, name: str, partitions: int = 1, **config: str) -> str:
        dotted = {key.replace("_", "."): value for key, value in config.items()}
        with Admin(self.bootstrap) as admin:
            admin.create_topics(NewTopic(name, partitions, 1, dotted)).raise_for_errors()
        return name

    def consumer(self, isolation: str = "read_uncommitted") -> Any:
        return confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "reader",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": isolation,
                "enable.partition.eof": True,
                # An empty partition says so at once.
                "fetch.wait.max.ms": 5,
            }
        )

    def read(self, topic: str, partitions: int = 1, isolation: str = "read_uncommitted") -> list[Seen]:
        """Everything there is, partition by partition."""
        if isolation == "read_committed":
            until_settled(self.bootstrap)
        consumer = self.consumer(isolation)
        consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in range(partitions)])
        seen: list[Seen] = []
        ended: set[int] = set()
        try:
            while len(ended) < partitions:
                message = consumer.poll(PATIENCE_SECONDS)
                assert message is not None, "nothing came in time"
                if message.error() is not None:
                    assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF, message.error()
                    ended.add(message.partition())
                    continue
                headers = tuple((name, value) for name, value in message.headers() or ())
                seen.append(
                    Seen(
                        message.partition(),
                        message.offset(),
                        message.key(),
                        message.value(),
                        headers,
                        message.timestamp()[1],
                    )
                )
        finally:
            consumer.close()
        return sorted(seen)

    def committed(self, group: str, topic: str, partition: int = 0) -> int:
        consumer = confluent_kafka.Consumer({"bootstrap.servers": self.bootstrap, "group.id": group})
        try:
            (found,) = consumer.committed([confluent_kafka.TopicPartition(topic, partition)], PATIENCE_SECONDS)
            return int(found.offset)
        finally:
            consumer.close()
