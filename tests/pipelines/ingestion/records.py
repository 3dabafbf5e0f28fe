"""Records for tests of the lake that need no broker: all of noon, numbered by their offsets."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from ottla.pipelines.ingestion.files import read_table, record_schema, write_files
from ottla.pipelines.ingestion.lake import Lake
from ottla.pipelines.ingestion.state import Commit

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
_WRITERS = 4


def some_records(start: int, count: int, topic: str = "orders") -> pa.Table:
    rows: list[dict[str, Any]] = [
        {
            "key": None,
            "value": b"%d" % offset,
            "headers": [],
            "topic": topic,
            "partition": 0,
            "offset": offset,
            "timestamp": NOON,
        }
        for offset in range(start, start + count)
    ]
    return pa.Table.from_pylist(rows, schema=record_schema())


def add(lake: Lake, start: int, count: int, topic: str = "orders") -> None:
    """A range of the topic's only partition, published."""
    files = write_files(lake.directory, [some_records(start, count, topic)])
    lake.publish(Commit(tuple(files), covered={(topic, 0): [(start, start + count)]}))


def add_by_many(lake: Lake, ranges: int) -> None:
    """So many ranges of ten offsets, by four writers at a time."""

    def work(first: int) -> None:
        for number in range(first, ranges, _WRITERS):
            add(lake, 10 * number, 10)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(_WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def offsets(lake: Lake) -> list[int]:
    files = lake.state().files.values()
    return sorted(read_table(lake.directory, files).column("offset").to_pylist())
