"""Result topics as tables, for a screen or a test: without Spark, at read_committed."""

import json
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from ottla.client.sync.consumer import Consumer
from ottla.client.types import TopicPartition
from ottla.pipelines.frame.pipeline import View

_POLL_SECONDS = 0.2
# Far more than any screen shows: a row that is among the first to be shown is one of these.
MOST_ROWS = 1_000

Row = dict[str, Any]
Table = dict[str, Row]


class Results:
    """What topics hold: the last value of each key, and how many records there were.

    `tables[topic][key]` is a row. Records without a key are rows under their place, as `partition/offset`. Of topics
    that are only looked at through views some thousand rows are kept, those that come first in the views: one that was
    left out comes back when it changes. Of those that are only counted none are.
    """

    def __init__(
        self,
        brokers: Mapping[str, object],
        topics: Iterable[str] = (),
        *,
        views: Iterable[View] = (),
        counted: Iterable[str] = (),
    ) -> None:
        self._views: dict[str, list[View]] = {}
        for view in views:
            self._views.setdefault(view.topic, []).append(view)
        self.tables: dict[str, Table] = {topic: {} for topic in (*topics, *self._views)}
        self.counts = dict.fromkeys((*self.tables, *counted), 0)
        # What is no longer there is not waited for: reading begins with what is.
        self._consumer = Consumer[bytes, bytes](
            config=brokers, isolation_level="read_committed", auto_offset_reset="earliest"
        )
        self._partitions = [
            TopicPartition(topic, one.partition)
            for topic in self.counts
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
                if record.topic in self.tables:
                    place = f"{record.partition}/{record.offset}"
                    self._put(record.topic, place if record.key is None else record.key.decode(), record.value)

    def _put(self, topic: str, key: str, value: bytes | None) -> None:
        table = self.tables[topic]
        if value is None:
            table.pop(key, None)
            return
        table[key] = json.loads(value)
        views = self._views.get(topic)
        if views is not None and len(table) > 2 * MOST_ROWS * len(views):
            first = [in_order(table, view)[:MOST_ROWS] for view in views]
            self.tables[topic] = {key: table[key] for keys in first for key in keys}


def in_order(table: Table, view: View) -> list[str]:
    """Keys as a view has their rows."""
    keys = sorted(table, key=lambda key: _sortable(table[key].get(view.then_by or "")))
    keys.sort(key=lambda key: _sortable(table[key].get(view.sort_by)), reverse=view.descending)
    return keys


def _sortable(value: object) -> tuple[bool, Any]:
    """What is missing comes first, so that it is last where the greatest are first."""
    return (value is not None, value if value is not None else 0)


def read_tables(brokers: Mapping[str, object], topics: Iterable[str]) -> dict[str, Table]:
    """All that topics hold now."""
    with Results(brokers, topics) as results:
        results.update()
        return results.tables
