"""Every row of the table: what it is called, which way is better, and what it should reach.

A ratio always reads the same way: how many times better the second column is than the first. For rates that is second
over first, for times and memory first over second.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.settings import GIB, MIB, Settings

KAFKA = "kafka"
OTTLA = "ottla"
SMALL_LOG = "ottla, small log"
LARGE_LOG = "ottla, large log"
QUIET = "without"
CLEANING = "cleaning"
COMPUTING = "computing"

OTTLA_CLIENT = "ottla's client"
CONFLUENT = "confluent-kafka"
# With `fetch.queue.backoff.ms=1`: it does not stop fetching for a second each time that its queue is full.
UNPAUSED = "confluent-kafka, unpaused"
AIOKAFKA = "aiokafka"
CODECS = ("none", "lz4", "zstd")

CONNECTOR = "Spark's connector"
SPARK_SOURCE = "ottla in Spark"
EXACTLY_ONCE = "ottla in Spark, exactly once"

PIPELINES = {
    "campaign": "Campaign",
    "mybank": "MyBank",
    "gettaxi": "GetTaxi",
    "ingestion": "Ingestion",
    "movieflix": "MovieFlix",
    "mysocialmedia": "MySocialMedia",
}
OFFLINE_LOAD = "ottla lake load"

TITLES = {KAFKA: "Apache Kafka", OTTLA: "Ottla"}


def section_of(key: str) -> str:
    return key.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Row:
    """`goal` is the least ratio that is good enough; None where there is only something to look at.

    `at_most` is a goal for the candidate's own figure instead.
    """

    key: str
    title: str
    unit: str
    goal: float | None = None
    higher_is_better: bool = True
    baseline: str = KAFKA
    candidate: str = OTTLA
    goal_text: str = ""
    at_most: float | None = None

    @property
    def section(self) -> str:
        return section_of(self.key)

    @property
    def described_goal(self) -> str:
        if self.goal_text:
            return self.goal_text
        if self.at_most is not None:
            return f"under {self.at_most:g} {self.unit}"
        return "" if self.goal is None else f"{self.goal:g}x"

    def ratio(self, baseline: float, candidate: float) -> float:
        better, worse = (candidate, baseline) if self.higher_is_better else (baseline, candidate)
        return better / worse if worse else 0.0


def size_text(size_bytes: int) -> str:
    return f"{size_bytes // GIB} GB" if size_bytes >= GIB else f"{size_bytes // MIB} MB"


def rows(settings: Settings) -> list[Row]:
    small, large = size_text(settings.depth_small_bytes), size_text(settings.depth_large_bytes)
    return [
        Row("produce.small.1", "produce, one 100 B record a request, 1 connection", "req/s", 3.0),
        Row("produce.small.4", "produce, one 100 B record a request, 4 connections", "req/s", 1.5),
        Row("produce.64k.1", "produce, 64 KB batches, 1 connection", "req/s", 2.0),
        Row("produce.64k.4", "produce, 64 KB batches, 4 connections", "req/s", 1.5),
        Row("produce.1m.1", "produce, 1 MB batches, 1 connection", "req/s", 1.8),
        Row("fetch.128k", "fetch, 128 KB a request", "GB/s", 1.0),
        Row("fetch.1m", "fetch, 1 MB a request", "GB/s", 1.0),
        Row("fetch.8m", "fetch, 8 MB a request", "GB/s", 1.0),
        Row("clients.produce", "confluent-kafka, produce 100 B records", "rec/s"),
        Row("clients.consume", "confluent-kafka, consume 100 B records", "rec/s"),
        Row("clients.p50", "confluent-kafka, end to end, p50", "ms", 1.0, higher_is_better=False),
        Row("clients.p99", "confluent-kafka, end to end, p99", "ms", 1.0, higher_is_better=False),
        Row("java.produce", "Kafka's ProducerPerformance, 100 B records", "rec/s"),
        Row("startup.seconds", "process start to first acknowledged produce", "s", 10.0, higher_is_better=False),
        Row("startup.idle", "memory, idle", "MB", 6.0, higher_is_better=False),
        Row("produce.loaded", "memory, after the produce runs", "MB", higher_is_better=False),
        Row("depth.head", f"fetch 16 KB at the head of a log of {small}", "req/s"),
        Row("depth.random", f"fetch 16 KB anywhere in a log of {small}", "req/s"),
        _growth("depth.growth.head", f"fetch at the head, log of {large} beside {small}"),
        _growth("depth.growth.random", f"fetch anywhere, log of {large} beside {small}"),
        *_scale_rows(settings),
        *_compaction_rows(),
        *_group_rows(settings),
        *_library_rows(settings),
        *_spark_rows(settings),
        *_pipeline_rows(settings),
    ]


def _library_rows(settings: Settings) -> list[Row]:
    """Ottla's client beside another one, on the same broker."""

    def beside(key: str, title: str, goal: float | None, other: str = CONFLUENT, unit: str = "rec/s") -> Row:
        goal_text = "" if unit == "rec/s" or goal is None else f"at most {1 / goal:g}x the time"
        return Row(f"libraries.{key}", title, unit, goal, unit == "rec/s", other, OTTLA_CLIENT, goal_text)

    found = [
        beside("produce", "client: produce 100 B records", 1.3),
        beside("produce.reports", "client: the same with delivery reports", 1.3),
        beside("async", "client: produce from a loop", 8.0, AIOKAFKA),
        beside("async.reports", "client: the same, each delivery awaited", 8.0, AIOKAFKA),
        beside("consume", "client: record by record beside consume(10000)", 3.0),
        beside("consume.unpaused", "client: record by record beside consume(10000) without its pause", None, UNPAUSED),
    ]
    for codec in CODECS:
        how = "" if codec == "none" else f", {codec}"
        found.append(beside(f"send_table.{codec}", f"client: send_table beside produce{how}", 5.0))
        found.append(beside(f"tables.{codec}", f"client: tables() beside consume(10000){how}", 20.0))
        unpaused = f"client: tables() beside consume(10000) without its pause{how}"
        found.append(beside(f"tables.{codec}.unpaused", unpaused, None, UNPAUSED))
    for figure in ("p50", "p99"):
        found.append(beside(figure, f"client: end to end, {figure}", 1 / 1.5, unit="ms"))
        found.append(beside(f"async_{figure}", f"client: end to end from a loop, {figure}", 1 / 1.3, unit="ms"))
    size = size_text(settings.library_drain_bytes)
    for by in ("records", "tables"):
        title = f"client: memory while {size} are read by {by}"
        found.append(Row(f"libraries.memory.{by}", title, "MB", None, False, OTTLA_CLIENT, OTTLA_CLIENT, at_most=300.0))
    return found


def _spark_rows(settings: Settings) -> list[Row]:
    """Ottla's data source beside Spark's own connector, on the same broker."""

    def beside(
        key: str,
        title: str,
        goal: float | None = None,
        unit: str = "rec/s",
        own: str = SPARK_SOURCE,
        goal_text: str = "",
    ) -> Row:
        return Row(f"spark.{key}", f"Spark: {title}", unit, goal, unit == "rec/s", CONNECTOR, own, goal_text)

    count = f"{settings.spark_records / 1e6:g} M records of 100 B"
    return [
        beside("batch", f"batch read, {count}", 2.5),
        beside("batch.processor", "processor time of a record, batch read", unit="us"),
        beside("batch.kafka", "batch read from Apache Kafka"),
        *(
            beside(f"drain.{broker}.{n}", f"availableNow, {count}, start to end, {partitions(n)}, on {title}", 2.0, "s")
            for broker, title in TITLES.items()
            for n in settings.spark_drained_partitions
        ),
        beside("drain.trigger", "availableNow, time in triggers", 2.5, "s"),
        beside("drain.processor", "processor time of a record, availableNow", unit="us"),
        beside("floor", "a micro-batch of one record", 1 / 1.2, "ms", goal_text="at most 1.2x the time"),
        beside("sink", f"write, {count}, lz4", 1.5),
        beside("sink.processor", "processor time of a record, write", unit="us"),
        beside("sink.staged", "write exactly once beside the connector's at least once", own=EXACTLY_ONCE),
        *(beside(f"partitions.{n}", f"batch read from {n} partitions") for n in settings.spark_partitions),
        *(beside(f"sizes.{n}", f"batch read of records of {n:,} B") for n in settings.spark_record_bytes),
    ]


def partitions(count: int) -> str:
    return f"{count:,} partition{'s' if count > 1 else ''}"


def _pipeline_rows(settings: Settings) -> list[Row]:
    """Campaign on both brokers, each with the source that belongs to it; the rest is Ottla's alone."""
    events, records = f"{settings.pipeline_events / 1e6:g} M events", f"{settings.lake_records / 1e6:g} M records"
    both = "Campaign, format(ottla) on Ottla beside format(kafka) on Apache Kafka"
    crossed = "Campaign on Apache Kafka, format(ottla) beside format(kafka)"
    small = (
        f"{settings.pipeline_small_events / 1e3:g} k events in batches of {settings.pipeline_batch_events / 1e3:g} k"
    )
    few = settings.pipeline_few_events
    return [
        Row("campaign.events", f"{both}, {events}", "rec/s", 1.5),
        Row("campaign.processor", "the same, processor time of an event", "us", higher_is_better=False),
        Row("campaign.crossed", crossed, "rec/s", baseline=CONNECTOR, candidate=SPARK_SOURCE),
        Row("alerts.p50", "MyBank, from a payment's commit to its alert, p50", "s", higher_is_better=False),
        Row("alerts.slowest", "the same, the slowest", "s", higher_is_better=False, at_most=2.0),
        *(Row(f"pipelines.alone.{name}", f"{title}, {small}", "rec/s") for name, title in PIPELINES.items()),
        *(
            Row(f"small.{name}", f"{title}, processor time for {few} new events", "s", higher_is_better=False)
            for name, title in PIPELINES.items()
        ),
        Row("small.median", "the same, median of the six", "s", higher_is_better=False, at_most=0.5),
        *_demo_rows("demo", "`make run`", settings, behind=5.0),
        *_demo_rows("demo.busy", f"`make run`, {settings.demo_rate:,} events a second", settings, behind=10.0),
        Row("pipelines.launch.peak", "launch day, furthest behind", "events", higher_is_better=False),
        Row("pipelines.launch.drained", "launch day, from the burst's end until drained", "s", higher_is_better=False),
        Row("pipelines.load", f"{records} into Parquet", "rec/s", baseline=CONNECTOR, candidate=OFFLINE_LOAD),
        Row("pipelines.load.before", f"load of {records}, killed half-way", "s", higher_is_better=False),
        Row("pipelines.load.after", "the rest of it, started again", "s", higher_is_better=False),
    ]


def _demo_rows(key: str, title: str, settings: Settings, behind: float) -> list[Row]:
    def row(name: str, what: str, unit: str, at_most: float | None = None) -> Row:
        return Row(f"{key}.{name}", f"{title}, {what}", unit, higher_is_better=False, at_most=at_most)

    is_usual = key == "demo"
    return [
        row("behind", f"furthest behind in {settings.demo_seconds / 60:g} minutes", "s", behind),
        row("processor", "processor time a second", "s", 1.2 if is_usual else None),
        row("memory", "memory of all processes", "MB", 3000.0 if is_usual else None),
    ]


def _scale_rows(settings: Settings) -> list[Row]:
    found = []
    for count in settings.scale_partitions:
        text = partitions(count)
        found += [
            Row(f"scale.produce.{count}", f"produce 1 KB batches to {text}, 4 connections", "req/s"),
            Row(f"scale.fetch.{count}", f"fetch all of {text} in one session", "GB/s"),
            Row(f"scale.memory.{count}", f"memory with {text}, after load", "MB", higher_is_better=False),
        ]
    last = settings.scale_partitions[-1]
    start_title = f"start with {last:,} partitions after a clean stop"
    return [
        *found,
        Row(f"scale.start.{last}", start_title, "s", higher_is_better=False, at_most=5.0),
        Row("scale.connections", f"produce 1 KB batches, {settings.scale_connections:,} connections", "req/s"),
        Row(
            "scale.connections.memory",
            f"memory after {settings.scale_connections:,} connections",
            "MB",
            higher_is_better=False,
        ),
    ]


def _group_rows(settings: Settings) -> list[Row]:
    found = [Row("groups.performance", "Kafka's ConsumerPerformance, in a group", "rec/s", 1.0)]
    for protocol in ("classic", "consumer"):
        for size in settings.group_sizes:
            group = f"{protocol} group of {size} stable after one"
            found += [
                Row(f"groups.joins.{protocol}.{size}", f"{group} joins", "s", 0.9, False, goal_text="about 1x"),
                Row(f"groups.dies.{protocol}.{size}", f"{group} dies", "s", 0.9, False, goal_text="about 1x"),
            ]
    count = f"{settings.group_count:,} groups"
    return [
        *found,
        Row("groups.commits", "commits of offsets, 8 connections", "commits/s", 1.0),
        Row("groups.load", f"start with {count}", "s", higher_is_better=False, at_most=5.0),
        Row("groups.list", f"list {count}", "s", higher_is_better=False, at_most=1.0),
        Row("transactions.raw", "transactions of one record, 8 connections", "txn/s", 1.0),
        Row("transactions.java", "transactions of one record, one Java producer", "txn/s", 1.0),
    ]


def _compaction_rows() -> list[Row]:
    return [
        Row("compaction.rate", "compaction beside a producer of 1,000 records a second", "MB/s", 1.0),
        Row("compaction.busy_rate", "compaction beside a producer as fast as it can be", "MB/s", 1.0),
        *_while_compacting(OTTLA, produce_goal=0.8, p99_goal=0.5),
        *_while_compacting(KAFKA, produce_goal=None, p99_goal=None),
    ]


def _while_compacting(name: str, produce_goal: float | None, p99_goal: float | None) -> list[Row]:
    """One broker beside itself: what a producer loses while the cleaner works, or while anything else does."""
    produce = f"{TITLES[name]}, produce 16 KB batches while it compacts"
    p99 = f"{TITLES[name]}, p99 of 1,000 records a second while it compacts"
    floor = f"{TITLES[name]}, p99 of 1,000 records a second beside a process that only computes"
    return [
        Row(f"compaction.produce.{name}", produce, "req/s", produce_goal, True, QUIET, CLEANING),
        Row(f"compaction.p99.{name}", p99, "ms", p99_goal, False, QUIET, CLEANING),
        Row(f"compaction.floor.{name}", floor, "ms", None, False, QUIET, COMPUTING),
    ]


def _growth(key: str, title: str) -> Row:
    """The cost of a fetch does not depend on the size of the log; a tenth is left to noise."""
    return Row(key, title, "req/s", 0.9, baseline=SMALL_LOG, candidate=LARGE_LOG, goal_text="about 1x")


SECTIONS = (
    "startup",
    "produce",
    "fetch",
    "clients",
    "java",
    "depth",
    "scale",
    "compaction",
    "groups",
    "transactions",
    "libraries",
    "spark",
    "campaign",
    "alerts",
    "small",
    "demo",
    "pipelines",
)
