"""How tests drive a pipeline to its end and look at its answers.

    def test_the_answers_are_the_reference_s(drive):
        events = some_events(PIPELINE, count=2000)
        run = drive.interrupted(PIPELINE, events)      # in several batches, stopped in the middle, started anew
        reference.verify(run, events)

A pipeline has its topics to itself: they are made anew for each run.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.waiting import until_settled

from ottla import Admin, Consumer, Producer
from ottla.pipelines.frame import job
from ottla.pipelines.frame.generating import Event
from ottla.pipelines.frame.pipeline import Pipeline
from ottla.pipelines.frame.place import Place
from ottla.pipelines.frame.results import Row, read_tables
from ottla.pipelines.frame.topics import ensure_topics

START_MS = 1_767_225_600_000  # 2026-01-01T00:00:00Z
PATIENCE_SECONDS = 120.0


def some_events(pipeline: Pipeline, count: int, *, seed: int = 7, rate: float = 2.0) -> list[Event]:
    """The first of what its generator gives: at two a second, a thousand are eight minutes."""
    return list(itertools.islice(pipeline.generate(seed, START_MS, rate), count))


@dataclass(frozen=True)
class Run:
    """A pipeline that has worked off what there was: its answers."""

    pipeline: Pipeline
    place: Place

    def __post_init__(self) -> None:
        until_settled(config=self.place.brokers)

    def table(self, topic: str) -> dict[str, Row]:
        """The last value of each key, as a reader at read_committed sees it."""
        return read_tables(self.place.brokers, [topic])[topic]

    def letters(self, topic: str) -> list[Row]:
        """All records of a topic whose values are JSON objects, in no order."""
        return records(self.place.bootstrap, topic)

    def lake_rows(self, table: str) -> list[Row]:
        """What readers of the lake see, the rows of files that Spark's log of the sink names, without Spark, since the
        driver may be elsewhere: times in milliseconds, and the columns that name folders as text."""
        rows: list[Row] = []
        for path in _files_of_the_lake(Path(self.place.lake(self.pipeline.name, table))):
            folders = dict(part.split("=", 1) for part in path.parts if "=" in part)
            rows += [{**row, **folders} for row in _rows_of(path)]
        return rows


def _files_of_the_lake(table: Path) -> list[Path]:
    """Those of the batches that were committed: each has a file in the sink's log, and from time to time one has all
    that came before it as well."""
    log = {int(path.stem): path for path in (table / "_spark_metadata").iterdir() if path.stem.isdigit()}
    whole = max((number for number, path in log.items() if path.suffix == ".compact"), default=0)
    lines = [line for number in sorted(log) if number >= whole for line in log[number].read_text().splitlines()[1:]]
    return [Path(json.loads(line)["path"].removeprefix("file://")) for line in lines]


def _rows_of(path: Path) -> list[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = pq.ParquetFile(path).read()
    for number, column in enumerate(found.schema):
        if pa.types.is_timestamp(column.type):
            millis = found.column(number).cast(pa.timestamp("ms")).cast(pa.int64())
            found = found.set_column(number, column.name, millis)
    rows: list[Row] = found.to_pylist()
    return rows


class Drive:
    """Runs pipelines in one Spark session against one broker, each from nothing."""

    def __init__(self, spark: Any, bootstrap: str, directory: Path, *, source: str = "ottla") -> None:
        self._spark = spark
        self._bootstrap = bootstrap
        self._directory = directory
        self._source = source

    def interrupted(self, pipeline: Pipeline, events: Sequence[Event], *, batches: int = 3) -> Run:
        """The first part of the events in `batches` micro-batches, stopped in the middle of one; then all the rest."""
        half = len(events) // 2
        place = self.place(most_per_batch=-(-half // batches))
        renew_topics(pipeline, self._bootstrap)
        send_all(events[:half], self._bootstrap)
        self._stop_in_the_middle(pipeline, place)
        send_all(events[half:], self._bootstrap)
        job.run_once(self._spark, pipeline, self.place())
        return Run(pipeline, place)

    def at_once(self, pipeline: Pipeline, events: Sequence[Event]) -> Run:
        """All events in as few micro-batches as can be."""
        renew_topics(pipeline, self._bootstrap)
        return self.go_on(pipeline, events)

    def go_on(self, pipeline: Pipeline, events: Sequence[Event]) -> Run:
        """With these events, from where it was."""
        send_all(events, self._bootstrap)
        job.run_once(self._spark, pipeline, self.place())
        return Run(pipeline, self.place())

    def place(self, most_per_batch: int | None = None) -> Place:
        return Place(self._bootstrap, self._directory / "data", self._source, most_per_batch)

    def _stop_in_the_middle(self, pipeline: Pipeline, place: Place) -> None:
        """Stop all queries as soon as each has a batch behind it, wherever they are then."""
        running = start(self._spark, pipeline, place, every="0 seconds")
        ends_at = time.monotonic() + PATIENCE_SECONDS
        while not all(has_done_something(query) for query in running):
            assert time.monotonic() < ends_at, [(query.name, query.status) for query in running]
            time.sleep(0.05)
        for query in running:
            query.stop()


def start(spark: Any, pipeline: Pipeline, place: Place, every: str = "1 second") -> list[Any]:
    """All queries, each from where it was."""
    return [job.start_query(spark, pipeline, query, place, every) for query in pipeline.queries]


def has_done_something(query: Any) -> bool:
    failure = query.exception()
    assert failure is None, failure
    return any(progress.numInputRows for progress in query.recentProgress) or not query.isActive


def renew_topics(pipeline: Pipeline, bootstrap: str) -> None:
    """Make the topics of a pipeline anew, without what an earlier run has left in them."""
    with Admin(bootstrap) as admin:
        there = {one.name for one in admin.list_topics()}
        old = [topic.name for topic in pipeline.topics if topic.name in there]
        if old:
            admin.delete_topics(old).raise_for_errors()
    ensure_topics(pipeline, {"bootstrap.servers": bootstrap})


def send_all(events: Iterable[Event], bootstrap: str) -> None:
    """As fast as possible."""
    with Producer[bytes, bytes](bootstrap, linger_ms=20) as producer:
        for event in events:
            producer.send(event.topic, event.value, key=event.key, timestamp=event.timestamp_ms)


def records(bootstrap: str, topic: str) -> list[Row]:
    """Every committed record of a topic, whatever its key."""
    with Consumer[bytes, bytes](bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign([(topic, one.partition, 0) for one in consumer.partitions_for(topic)])
        values = consumer.to_arrow(headers=False).column("value").to_pylist()
    return [json.loads(value) for value in values]
