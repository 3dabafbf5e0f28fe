"""What the lake must hold: every record of a topic, once, read from the topic one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from tests.pipelines.driving import Run
from tests.pipelines.judged import judge, verify_rejects

from ottla import Consumer, TopicPartition
from ottla.pipelines.frame.generating import Event
from ottla.pipelines.ingestion.events import VISITS
from ottla.pipelines.ingestion.files import read_table, record_schema
from ottla.pipelines.ingestion.job import lake_directory
from ottla.pipelines.ingestion.lake import Lake

Seen = Counter[tuple[Any, ...]]


def verify(run: Run, events: Sequence[Event]) -> None:
    verify_rejects(run, judge(events, {VISITS: {"user_id": str, "page": str}}, 600_000))
    expected = records_of(run.place.bootstrap, VISITS)
    assert expected.total() == len(events)
    assert lake_rows(lake_directory(run.place), VISITS) == expected


def records_of(bootstrap: str, topic: str) -> Seen:
    seen: Seen = Counter()
    consumer: Consumer[bytes, bytes]
    with Consumer(bootstrap, isolation_level="read_committed") as consumer:
        places = [TopicPartition(topic, one.partition) for one in consumer.partitions_for(topic)]
        consumer.assign([(*place, 0) for place in places])
        ends = consumer.end_offsets(places)
        while any(consumer.position(place) < end for place, end in ends.items()):
            for record in consumer.poll(1.0):
                headers = tuple((name, value) for name, value in record.headers)
                seen[record.partition, record.offset, record.key, record.value, headers, record.timestamp] += 1
    return seen


def rows_of(table: Any) -> Seen:
    """A table of records, as the lake and the view give it."""
    columns = ("partition", "offset", "key", "value", "headers", "timestamp")
    return Counter(
        (
            row["partition"],
            row["offset"],
            row["key"],
            row["value"],
            tuple((header["key"], header["value"]) for header in row["headers"]),
            round(row["timestamp"].timestamp() * 1000),
        )
        for row in table.select(columns).to_pylist()
    )


def lake_rows(directory: str | Path, topic: str) -> Seen:
    lake = Lake(directory)
    return rows_of(read_table(lake.directory, [file for file in lake.state().files.values() if file.topic == topic]))


def has_all(bootstrap: str, topic: str, lake: Lake) -> bool:
    """Whether the lake has every record of the topic, once, and nothing else of it."""
    return lake_rows(lake.directory, topic) == records_of(bootstrap, topic)


def has_many(bootstrap: str, topic: str, lake: Lake) -> bool:
    """The same for many records: a partition at a time, as columns."""
    files = [file for file in lake.state().files.values() if file.topic == topic]
    stored = read_table(lake.directory, files)
    consumer: Consumer[bytes, bytes]
    with Consumer(bootstrap, isolation_level="read_committed") as consumer:
        partitions = [one.partition for one in consumer.partitions_for(topic)]
    return all(
        stored.filter(pc.equal(stored.column("partition"), number))
        .sort_by("offset")
        .equals(_partition(bootstrap, topic, number))
        for number in partitions
    )


def _partition(bootstrap: str, topic: str, number: int) -> pa.Table:
    consumer: Consumer[bytes, bytes]
    with Consumer(bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign([(topic, number, 0)])
        return consumer.to_arrow().select(record_schema().names).cast(record_schema())
