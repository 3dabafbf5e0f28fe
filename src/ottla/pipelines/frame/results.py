"""Result topics as tables, for a screen or a test: without Spark, at read_committed."""

import json
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from ottla.client.sync.consumer import Consumer
from ottla.client.types import TopicPartition

_POLL_SECONDS = 0.2

Row = dict[str, Any]


class Results:
    """What topics hold: the last value of each key, and how many records there were.

    `tables[topic][key]` is a row. Records without a key are rows under their place, as `partition/offset`.
    """

    def __init__(self, brokers: Mapping[str, object], topics: Iterable[str]) -> None:
        self.tables: dict[str, dict[str, Row]] = {topic: {} for topic in topics}
        self.counts = dict.fromkeys(self.tables, 0)
        self._consumer = Consumer[bytes, bytes](config=brokers, isolation_level="read_committed")
        self._partitions = [
            TopicPartition(topic, one.partition)
            for topic in self.tables
            for one in self._consumer.partitions_for(topic)
        ]
        self._consumer.assign([(*partition, 0) for partition in self._partitions])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()

    def update(self) -> None:
        """Read on to where the topics end now."""
        ends = self._consumer.end_offsets(self._partitions)
        while any(self._consumer.position(partition) < end for partition, end in ends.items()):
            for record in self._consumer.poll(_POLL_SECONDS):
                self.counts[record.topic] += 1
                table = self.tables[record.topic]
                key = f"{record.partition}/{record.offset}" if record.key is None else record.key.decode()
                if record.value is None:
                    table.pop(key, None)
                else:
                    table[key] = json.loads(record.value)


def read_tables(brokers: Mapping[str, object], topics: Iterable[str]) -> dict[str, dict[str, Row]]:
    """All that topics hold now."""
    with Results(brokers, topics) as results:
        results.update()
        return results.tables
