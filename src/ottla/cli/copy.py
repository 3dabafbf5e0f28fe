"""`ottla cp`: records from a topic or a file to a topic or a file."""

import contextlib
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from ottla.cli.completion import topic_names
from ottla.cli.connecting import (
    CONNECTION,
    Bootstrap,
    ConfigFile,
    Json,
    Settings,
    Target,
    Timeout,
    WrongUsage,
    target,
)
from ottla.cli.json_records import RecordToSend
from ottla.cli.output import Output
from ottla.cli.places import FileFormat, FilePlace, Place, TopicPlace, parse_place
from ottla.cli.positions import BEGINNING, END, EXPLANATION, Span, parse_position
from ottla.cli.progress import ProgressBar
from ottla.cli.running import connected_admin, in_daemon_thread, run
from ottla.client.types import TopicPartition

Item = TypeVar("Item")


SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="FROM",
        help="A topic; a .jsonl, .ndjson, .json or .parquet file; - for standard input.",
        autocompletion=topic_names,
        show_default=False,
    ),
]
DestinationArgument = Annotated[
    str,
    typer.Argument(
        metavar="TO",
        help="A topic; such a file or a .csv file; - for standard output.",
        autocompletion=topic_names,
        show_default=False,
    ),
]
StartOption = Annotated[str | None, typer.Option("--from", "-o", metavar="PLACE", help=f"Of a topic: {EXPLANATION}.")]
UntilOption = Annotated[str | None, typer.Option("--until", "-u", metavar="PLACE", help="Where to stop, likewise.")]
PartitionsOption = Annotated[
    str | None, typer.Option("--partitions", "-p", metavar="0,2-3", help="Of a topic: only these.")
]
SamePartitionsOption = Annotated[
    bool, typer.Option("--same-partitions", help="Into the partitions that the records come from.")
]
ToBootstrapOption = Annotated[
    str | None,
    typer.Option(
        "--to-bootstrap-server",
        metavar="HOST:PORT,...",
        help="Another cluster for TO.",
        rich_help_panel=CONNECTION,
    ),
]
ToConfigOption = Annotated[
    Path | None,
    typer.Option("--to-config", metavar="FILE", help="Its settings.", rich_help_panel=CONNECTION),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]


def copy(
    source: SourceArgument,
    destination: DestinationArgument,
    start: StartOption = None,
    until: UntilOption = None,
    partitions: PartitionsOption = None,
    same_partitions: SamePartitionsOption = False,
    to_bootstrap: ToBootstrapOption = None,
    to_config: ToConfigOption = None,
    quiet: QuietOption = False,
    json: Json = False,
    bootstrap: Bootstrap = None,
    settings: Settings = None,
    config_file: ConfigFile = None,
    timeout: Timeout = None,
) -> None:
    """Copy records, with keys, headers and timestamps: topic to file, file to topic, topic to topic.

    A topic is read from the beginning to the end that it has now, unless told otherwise. A file appears under its name
    when it is whole.

    [bold]Examples[/bold]

        ottla cp orders orders.parquet

        ottla cp orders orders.csv --from 24h

        ottla cp orders.jsonl orders-again

        ottla cp orders orders --to-bootstrap-server other:9092 --same-partitions
    """
    output = Output(json)
    here = target(bootstrap, settings, config_file, timeout)
    there, elsewhere = here, replace(here, bootstrap=to_bootstrap, other_bootstrap=None, is_file_typed=True)
    if to_bootstrap is not None:
        there = replace(elsewhere, config_file=config_file)
    if to_config is not None:
        there = replace(elsewhere, settings=[], config_file=to_config)

    async def work() -> None:
        job = Job(
            here,
            there,
            parse_place(source),
            parse_place(destination),
            Choice(start, until, partitions),
            same_partitions,
        )
        job.check()
        is_piped = isinstance(job.destination, FilePlace) and job.destination.path is None
        count = await _copy(job, output, is_quiet=quiet or json)
        if not is_piped:
            data = {"from": source, "to": destination, "records": count}
            output.done(data, f"{count} records copied from {job.source} to {job.destination}")

    run(work, output)


@dataclass(frozen=True, slots=True)
class Choice:
    """Which records of a topic, as it was asked for."""

    start: str | None
    until: str | None
    partitions: str | None


@dataclass(frozen=True, slots=True)
class Job:
    here: Target
    there: Target
    source: Place
    destination: Place
    choice: Choice
    is_to_same_partitions: bool

    def check(self) -> None:
        """Refuse what cannot be meant, before anything is opened."""
        if isinstance(self.source, FilePlace):
            if self.source.format is FileFormat.CSV:
                raise WrongUsage(f"{self.source}: CSV is only written; copy from .jsonl, .ndjson, .json or .parquet")
            if isinstance(self.destination, FilePlace):
                raise WrongUsage("a copy has a topic on at least one side; topic:NAME says that a name is a topic")
            if self.choice != Choice(None, None, None):
                raise WrongUsage("--from, --until and --partitions are about topics: a file is copied whole")
        elif isinstance(self.destination, TopicPlace) and self.here == self.there and self.source == self.destination:
            raise WrongUsage("a topic cannot be copied into itself: name another one, or another cluster")
        if isinstance(self.destination, FilePlace) and self.destination.path is not None:
            from ottla.cli.record_files import refuse_directory

            refuse_directory(self.destination.path)


async def _copy(job: Job, output: Output, *, is_quiet: bool) -> int:
    label = f"{job.source} to {job.destination}"
    if isinstance(job.source, TopicPlace):
        async with _reading(job, job.source.name, output) as (consumer, spans):
            total = sum(span.size for span in spans.values())
            with ProgressBar(label, total, is_quiet=is_quiet) as bar:
                if isinstance(job.destination, FilePlace):
                    await _into_file(consumer, spans, job.destination, bar)
                else:
                    await _into_topic(job, output, _taken(consumer, spans), bar)
                return bar.records
    from ottla.cli.record_files import size_of

    with ProgressBar(label, size_of(job.source), is_quiet=is_quiet) as bar:
        portions = _from_file(job.source, with_partitions=job.is_to_same_partitions)
        await _into_topic(job, output, portions, bar)
        return bar.records


@contextlib.asynccontextmanager
async def _reading(job: Job, topic: str, output: Output) -> AsyncIterator[tuple[Any, dict[TopicPartition, Span]]]:
    """A consumer, and what it is to read."""
    from ottla.cli.consume import partitions_of
    from ottla.cli.reading import planned_spans
    from ottla.client.consumer.consumer import AsyncConsumer

    now_ms = int(time.time() * 1000)
    first = BEGINNING if job.choice.start is None else parse_position(job.choice.start, now_ms)
    last = END if job.choice.until is None else parse_position(job.choice.until, now_ms)
    properties = job.here.properties(
        client_id="ottla-cli",
        enable_auto_commit="false",
        isolation_level="read_committed",
        allow_auto_create_topics="false",
    )
    async with connected_admin(job.here, output) as admin:
        wanted = await partitions_of(admin, topic, job.choice.partitions)
        spans = await planned_spans(admin, wanted, first, last, str(properties["isolation.level"]), output)
    bytes_consumer: AsyncConsumer[bytes, bytes] = AsyncConsumer(config=properties)
    async with bytes_consumer as consumer:
        yield consumer, spans


async def _into_file(consumer: Any, spans: dict[TopicPartition, Span], place: FilePlace, bar: ProgressBar) -> None:
    from ottla.cli.reading import read_spans, read_tables
    from ottla.cli.record_files import ParquetSink, TextSink, path_of

    # A named pipe opens when somebody reads it, which may be never.
    if place.format is FileFormat.PARQUET:
        with await in_daemon_thread(ParquetSink, path_of(place)) as tables:
            async for table in read_tables(consumer, spans):
                tables.write(table)
                bar.advance(table.num_rows, table.num_rows)
        return
    with await in_daemon_thread(TextSink, place) as sink:
        async for records in read_spans(consumer, spans):
            sink.write(records)
            bar.advance(len(records), len(records))


async def _taken(consumer: Any, spans: dict[TopicPartition, Span]) -> AsyncIterator[tuple[list[RecordToSend], int]]:
    from ottla.cli.reading import read_spans

    async for records in read_spans(consumer, spans):
        taken = [
            RecordToSend(record.value, record.key, record.headers, None, record.partition, _time_of(record))
            for record in records
        ]
        yield taken, len(records)


async def _from_file(place: FilePlace, *, with_partitions: bool) -> AsyncIterator[tuple[list[RecordToSend], int]]:
    """The portions of a file, read in a thread so that records leave meanwhile."""
    from ottla.cli.record_files import read_file

    portions = read_file(place, with_partitions=with_partitions)
    while (portion := await in_daemon_thread(_next_of, portions)) is not None:
        yield portion


def _next_of(portions: Iterator[Item]) -> Item | None:
    return next(portions, None)


async def _into_topic(
    job: Job, output: Output, portions: AsyncIterator[tuple[list[RecordToSend], int]], bar: ProgressBar
) -> None:
    from ottla.cli.sending import Sending
    from ottla.client.producer.producer import AsyncProducer

    assert isinstance(job.destination, TopicPlace)
    topic = job.destination.name
    async with connected_admin(job.there, output) as admin:
        (await admin.describe_topics(topic)).raise_for_errors()
    properties = job.there.properties(client_id="ottla-cli", max_block_ms=job.there.timeout_ms)
    bytes_producer: AsyncProducer[bytes, bytes] = AsyncProducer(config=properties)
    async with bytes_producer as producer, Sending(producer, topic) as sending:
        async for records, size in portions:
            for record in records:
                await sending.send(record if job.is_to_same_partitions else _anywhere(record))
            bar.advance(size, len(records))


def _time_of(record: Any) -> int | None:
    """None for a record without a time: it gets that of the copy."""
    return record.timestamp if record.timestamp >= 0 else None


def _anywhere(record: RecordToSend) -> RecordToSend:
    return RecordToSend(record.value, record.key, record.headers, None, None, record.timestamp)
