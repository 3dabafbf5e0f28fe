"""The offline load: what a topic holds, into the lake, by tasks that each have one range of one partition.

A task reads its range, writes its files and publishes them by itself. So a load that was killed has lost the ranges
that were under way, and no more: started again, it plans what the lake does not cover yet.

Offsets that were deleted from the topic before they could be read are covered, too, since they will not come any more;
the load says which they are.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.client.errors import NoOffset, Unfinished
from ottla.client.sync.consumer import Consumer
from ottla.client.sync.reader_admin import ReaderAdmin
from ottla.client.types import TopicPartition
from ottla.pipelines.ingestion.coverage import Partition, Range, gaps, pieces
from ottla.pipelines.ingestion.files import write_files
from ottla.pipelines.ingestion.lake import Lake, NotShared
from ottla.pipelines.ingestion.state import AlreadyCovered, Commit, GivenUp, LakeState
from ottla.pipelines.ingestion.topics import described, ids_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

RECORDS_A_TASK = 1_000_000
_PATIENCE_SECONDS = 120.0
_LOOK_SECONDS = 0.5


class Task(NamedTuple):
    """`covers` are the offsets that are taken care of; `topic_id` is None where brokers know no ids."""

    topic: str
    partition: int
    covers: Range
    topic_id: str | None = None

    @property
    def place(self) -> Partition:
        return self.topic, self.partition

    def left(self, state: LakeState) -> list[Range]:
        """What of it the lake does not have."""
        return list(gaps(state.covered.get(self.place, ()), *self.covers))


class Deleted(NamedTuple):
    """Offsets that were deleted from a topic, by retention or by somebody, before they could be loaded."""

    topic: str
    partition: int
    start: int
    end: int

    def __str__(self) -> str:
        return f"offsets {self.start} to {self.end} of {self.topic}-{self.partition}"


def offsets_of(tasks: Iterable[Task], state: LakeState | None = None) -> int:
    """How many offsets they have to cover still."""
    known = LakeState() if state is None else state
    return sum(end - start for task in tasks for start, end in task.left(known))


def run_tasks(
    spark: SparkSession,
    brokers: Mapping[str, object],
    tasks: list[Task],
    lake: Lake,
    tell: Callable[[int], None] | None = None,
) -> list[Deleted]:
    """What was planned; what of it was deleted before it could be loaded. `tell` hears again and again how many more
    offsets are done. Raises NotShared where workers have written elsewhere."""
    if not tasks:
        return []
    config, directory = _config(brokers), lake.directory

    def run(task: Task) -> list[Deleted]:
        return load_range(task, config, directory)

    with contextlib.nullcontext() if tell is None else _watched(tasks, lake, tell):
        deleted = spark.sparkContext.parallelize(tasks, len(tasks)).flatMap(run).collect()
    state = lake.state()
    for task in tasks:
        for start, end in task.left(state):
            raise NotShared(lake.directory, f"offsets {start} to {end} of {task.topic}-{task.partition}")
    return sorted(deleted)


@contextlib.contextmanager
def _watched(tasks: list[Task], lake: Lake, tell: Callable[[int], None]) -> Iterator[None]:
    """What is done is in the lake, whichever process did it."""
    is_over = threading.Event()

    def watch() -> None:
        unfinished, left, is_last_look = tasks, offsets_of(tasks), False
        while not is_last_look:
            is_last_look = is_over.wait(_LOOK_SECONDS)
            state, before = lake.state(), left
            unfinished = [task for task in unfinished if task.left(state)]
            left = offsets_of(unfinished, state)
            tell(before - left)

    watcher = threading.Thread(target=watch, name="ottla-lake-load", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()


def _config(brokers: Mapping[str, object]) -> dict[str, Any]:
    """Of a consumer that goes nowhere by itself: what it does not find, it says."""
    return {**brokers, "isolation.level": "read_committed", "auto.offset.reset": "none"}


def plan(
    brokers: Mapping[str, object], topics: Iterable[str], state: LakeState, records_a_task: int = RECORDS_A_TASK
) -> Iterator[Task]:
    """One task for each piece of each partition that the lake does not have, and one for what was deleted before it.
    Raises TopicReplaced."""
    with ReaderAdmin(config=brokers) as admin:
        found = described(admin, topics)
    ids = ids_of(found)
    state.check_topics(ids)
    partitions = [TopicPartition(topic.name, one.partition) for topic in found for one in topic.partitions]
    consumer: Consumer[bytes, bytes]
    with Consumer(config=_config(brokers)) as consumer:
        beginnings, ends = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
    for topic, number in partitions:
        place = TopicPartition(topic, number)
        for start, end in gaps(state.covered.get((topic, number), ()), 0, ends[place]):
            first = max(start, min(beginnings[place], end))
            for piece in (*pieces((start, first), max(first - start, 1)), *pieces((first, end), records_a_task)):
                yield Task(topic, number, piece, ids.get(topic))


def load_range(task: Task, config: Mapping[str, Any], directory: Path) -> list[Deleted]:
    """1. Read. 2. Write. 3. Publish. Where somebody else has covered some of it meanwhile, do the rest: a task that
    Spark runs twice finds its whole range covered."""
    lake = Lake(directory)
    topics = {} if task.topic_id is None else {task.topic: task.topic_id}
    deleted: list[Deleted] = []
    while left := task.left(lake.state()):
        reading = _Reading(task.place, left[0], config)
        files = write_files(directory, reading.tables())
        try:
            lake.publish(Commit(tuple(files), covered={task.place: [left[0]]}, topics=topics))
        except (AlreadyCovered, GivenUp):
            continue
        deleted += [Deleted(*task.place, *gone) for gone in reading.deleted]
    return deleted


class _Reading:
    """The records of a range, as far as the topic has them still; `deleted` are the offsets that it has not."""

    def __init__(self, partition: Partition, offsets: Range, config: Mapping[str, Any]) -> None:
        self._partition = TopicPartition(*partition)
        self._next, self._end = offsets
        self._config = config
        self.deleted: list[Range] = []

    def tables(self) -> Iterator[pa.Table]:
        consumer: Consumer[bytes, bytes]
        with Consumer(config=self._config) as consumer:
            consumer.assign([(*self._partition, self._next)])
            while self._next < self._end:
                try:
                    yield from self._read(consumer, _PATIENCE_SECONDS)
                except NoOffset as error:
                    not_there = error
                else:
                    return
                # What was fetched before it was deleted comes first.
                with contextlib.suppress(Unfinished):
                    yield from self._read(consumer, 0.0)
                self._pass_over_what_is_deleted(consumer, not_there)

    def _read(self, consumer: Consumer[bytes, bytes], timeout_seconds: float) -> Iterator[pa.Table]:
        for table in consumer.tables(until={self._partition: self._end}, timeout=timeout_seconds):
            self._next = table.column("offset")[-1].as_py() + 1
            yield table
        self._next = self._end

    def _pass_over_what_is_deleted(self, consumer: Consumer[bytes, bytes], not_there: NoOffset) -> None:
        """Where the log does not begin behind the offset that is not there, it ends before it: that is another fault,
        and not for us to pass over."""
        if self._next == self._end:
            return
        first = min(consumer.beginning_offsets([self._partition])[self._partition], self._end)
        if first <= self._next:
            raise not_there
        self.deleted.append((self._next, first))
        self._next = first
        consumer.seek(self._partition, first)
