"""The offline load: what a topic holds, into the lake, by tasks that each have one range of one partition.

A task reads its range, writes its files and publishes them by itself. So a load that was killed has lost the ranges
that were under way, and no more: started again, it plans what the lake does not cover yet.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.client.sync.consumer import Consumer
from ottla.client.types import TopicPartition
from ottla.pipelines.ingestion.coverage import Range, gaps, overlaps, pieces
from ottla.pipelines.ingestion.files import write_files
from ottla.pipelines.ingestion.lake import AlreadyCovered, Commit, Lake, LakeState, Partition

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

RECORDS_A_TASK = 1_000_000
_PATIENCE_SECONDS = 120.0
_LOOK_SECONDS = 0.5


class Task(NamedTuple):
    """`covers` are the offsets that are taken care of; records begin at `start`, where older ones are gone."""

    topic: str
    partition: int
    covers: Range
    start: int

    @property
    def place(self) -> Partition:
        return self.topic, self.partition


def offsets_of(tasks: Iterable[Task]) -> int:
    """How many offsets they cover."""
    return sum(end - start for _, _, (start, end), _ in tasks)


def load(
    spark: SparkSession,
    brokers: Mapping[str, object],
    topics: Iterable[str],
    lake: Lake,
    *,
    records_a_task: int = RECORDS_A_TASK,
) -> int:
    """Everything that is in the topics now and not yet in the lake; how many tasks it took. `brokers` are settings of
    a consumer that reaches them."""
    tasks = list(plan(brokers, topics, lake.state(), records_a_task))
    run_tasks(spark, brokers, tasks, lake)
    return len(tasks)


def run_tasks(
    spark: SparkSession,
    brokers: Mapping[str, object],
    tasks: list[Task],
    lake: Lake,
    tell: Callable[[int], None] | None = None,
) -> None:
    """`tell` hears again and again how many more offsets are done."""
    if not tasks:
        return
    config, directory = _config(brokers), lake.directory

    def run(task: Task) -> None:
        load_range(task, config, directory)

    with contextlib.nullcontext() if tell is None else _watched(tasks, lake, tell):
        spark.sparkContext.parallelize(tasks, len(tasks)).foreach(run)


@contextlib.contextmanager
def _watched(tasks: list[Task], lake: Lake, tell: Callable[[int], None]) -> Iterator[None]:
    """What is done is in the lake, whichever process did it."""
    is_over = threading.Event()

    def watch() -> None:
        left, is_last_look = tasks, False
        while not is_last_look:
            is_last_look = is_over.wait(_LOOK_SECONDS)
            covered, before = lake.state().covered, left
            left = [task for task in before if not overlaps(covered.get(task.place, ()), task.covers)]
            tell(offsets_of(before) - offsets_of(left))

    watcher = threading.Thread(target=watch, name="ottla-lake-load", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()


def _config(brokers: Mapping[str, object]) -> dict[str, Any]:
    return {**brokers, "isolation.level": "read_committed"}


def plan(
    brokers: Mapping[str, object], topics: Iterable[str], state: LakeState, records_a_task: int = RECORDS_A_TASK
) -> Iterator[Task]:
    """One task for each piece of each partition that the lake does not have."""
    consumer: Consumer[bytes, bytes]
    with Consumer(config=_config(brokers)) as consumer:
        partitions = [
            TopicPartition(topic, one.partition) for topic in topics for one in consumer.partitions_for(topic)
        ]
        beginnings, ends = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
    for partition in partitions:
        beginning = beginnings[partition]
        for gap_start, gap_end in gaps(
            state.covered.get((partition.topic, partition.partition), ()), 0, ends[partition]
        ):
            first = max(gap_start, min(beginning, gap_end))
            if first > gap_start:
                # What retention took is covered: it will not come any more.
                yield Task(partition.topic, partition.partition, (gap_start, first), first)
            for piece in pieces((first, gap_end), records_a_task):
                yield Task(partition.topic, partition.partition, piece, piece[0])


def load_range(task: Task, config: Mapping[str, Any], directory: Path) -> None:
    """1. Read. 2. Write. 3. Publish. A task that Spark runs twice finds its range covered, and that is well."""
    files = write_files(directory, _records(task, config)) if task.start < task.covers[1] else []
    try:
        Lake(directory).publish(Commit(tuple(files), covered={task.place: task.covers}))
    except AlreadyCovered:
        return


def _records(task: Task, config: Mapping[str, Any]) -> Iterator[pa.Table]:
    consumer: Consumer[bytes, bytes]
    with Consumer(config=config) as consumer:
        place = TopicPartition(task.topic, task.partition)
        consumer.assign([(task.topic, task.partition, task.start)])
        yield from consumer.tables(until={place: task.covers[1]}, timeout=_PATIENCE_SECONDS)
