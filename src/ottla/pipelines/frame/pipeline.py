"""What a pipeline says about itself. Nothing here knows Spark: a pipeline can be listed and watched without it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from threading import Event as Stop
from typing import TYPE_CHECKING, Literal

from ottla.pipelines.frame.generating import Event
from ottla.pipelines.frame.place import Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.pipelines.frame.reading import Streams

COMPACTED: Mapping[str, str] = {"cleanup.policy": "compact", "segment.ms": "600000", "min.cleanable.dirty.ratio": "0.2"}
# The next micro-batch begins as soon as there is something.
URGENT = "200 milliseconds"
# What nobody waits for leaves the machine to the rest.
UNHURRIED = "10 seconds"
# What the pass over all inputs counts in each micro-batch, under this name.
JUDGED, RECORDS, DEAD_LETTERS, LATE_EVENTS = "judged", "records", "dead_letters", "late_events"
EVENT_FIELDS = "event_id STRING, event_time BIGINT"


@dataclass(frozen=True)
class Topic:
    """`configs` are Kafka's. A topic that is there already is left as it is."""

    name: str
    partitions: int = 2
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Rule:
    """A condition in SQL over the fields of an event, and what is wrong with one that does not fulfil it."""

    condition: str
    otherwise: str


@dataclass(frozen=True)
class Source:
    """A topic that is read and judged. `fields`, of the JSON in its values, are in Spark's DDL."""

    topic: Topic
    fields: str
    optional: frozenset[str] = frozenset()
    rules: tuple[Rule, ...] = ()

    @property
    def ddl(self) -> str:
        return self.fields


@dataclass(frozen=True)
class Input(Source):
    """A topic of events. All of them have `event_id` and `event_time`, beside `fields`."""

    @property
    def ddl(self) -> str:
        return f"{EVENT_FIELDS}, {self.fields}"


@dataclass(frozen=True)
class Table(Source):
    """A compacted topic that events are joined with: the last record of a key is its row. Rows are no events: they have
    neither `event_id` nor `event_time`. `key` is the record's, in rules too."""


@dataclass(frozen=True)
class ToTopic:
    """Rows become records, exactly once; the column `topic` says where where this does not."""

    topic: str | None = None


@dataclass(frozen=True)
class ToLake:
    """Rows become Parquet files under this name, exactly once, in folders by these columns."""

    table: str
    partition_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What a query finds out: rows made of streams, and where they go."""

    build: Callable[["Streams"], "DataFrame"]
    sink: ToTopic | ToLake


@dataclass(frozen=True)
class Query:
    """One pass over what it reads: all its answers come out of the same micro-batches. In update mode (`mode`) rows are
    those that have changed, which is what tables in compacted topics want.

    `takes_rejects`: the pass is one over all inputs, and dead letters and late events come out of it, too. One query of
    a pipeline does that. `waits_for_time`: it has something to do when time goes by, also where no event comes.
    `every` is the time between two micro-batches where that of the run does not fit: URGENT or UNHURRIED. `phase` is
    how long behind Spark's own moment they begin, so that several queries take turns: the source's `triggerPhase`."""

    name: str
    answers: tuple[Answer, ...]
    mode: Literal["append", "update"] = "update"
    takes_rejects: bool = True
    waits_for_time: bool = False
    every: str | None = None
    phase: str | None = None

    def pace(self, usual: str) -> str:
        """The time between two of its micro-batches, in a run where it usually is that."""
        return self.every or usual


@dataclass(frozen=True)
class BatchQuery:
    """One pass over records as they are: `write` gets all of each micro-batch; letters come out of it as well."""

    name: str
    build: Callable[["Streams"], "DataFrame"]
    write: Callable[["DataFrame", Place], None]
    every: str | None = None
    phase: str | None = None
    mode: Literal["append"] = "append"
    waits_for_time: bool = False

    def pace(self, usual: str) -> str:
        return self.every or usual


@dataclass(frozen=True)
class View:
    """A result topic as a table on the screen: the first `rows` of the values of its keys."""

    title: str
    topic: str
    columns: tuple[str, ...]
    sort_by: str
    descending: bool = False
    then_by: str | None = None
    rows: int = 8


@dataclass(frozen=True)
class Pipeline:
    """`generate(seed, start_ms, rate)` gives events without end, about `rate` a second of their own time, which begins
    at `start_ms`: `timestamp_ms` of an event is when it is sent, and never goes back.

    `feed(place, stop, seed, start_ms, rate)` takes the place of the generator where made-up events go another way than
    straight into topics: through a database, for example. It gives what it has sent, one by one."""

    name: str
    title: str
    inputs: tuple[Input, ...]
    results: tuple[Topic, ...]
    queries: tuple[Query | BatchQuery, ...]
    generate: Callable[[int, int, float], Iterator[Event]]
    views: tuple[View, ...] = ()
    tables: tuple[Table, ...] = ()
    feed: Callable[[Place, Stop, int, int, float], Iterator[object]] | None = None
    lateness_seconds: int = 600
    rate: float = 20.0

    @property
    def dead_letters(self) -> Topic:
        return Topic(f"{self.name}.dead-letters", partitions=1)

    @property
    def late(self) -> Topic:
        return Topic(f"{self.name}.late", partitions=1)

    @property
    def topics(self) -> tuple[Topic, ...]:
        """All that it reads or writes."""
        inputs, tables = (one.topic for one in self.inputs), (one.topic for one in self.tables)
        return (*inputs, *tables, *self.results, self.dead_letters, self.late)

    def input_of(self, topic: str) -> Input:
        for one in self.inputs:
            if one.topic.name == topic:
                return one
        known = ", ".join(one.topic.name for one in self.inputs)
        raise ValueError(f"pipeline {self.name} has no input {topic!r}: it has {known}")

    def table_of(self, topic: str) -> Table:
        for one in self.tables:
            if one.topic.name == topic:
                return one
        known = ", ".join(one.topic.name for one in self.tables) or "none"
        raise ValueError(f"pipeline {self.name} has no table {topic!r}: it has {known}")
