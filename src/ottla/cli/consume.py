"""`ottla consume`: records of a topic on standard output."""

import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ottla.cli.completion import group_ids, topic_names
from ottla.cli.connecting import (
    Bootstrap,
    ConfigFile,
    Json,
    NotThere,
    Settings,
    Target,
    Timeout,
    WrongUsage,
    target,
)
from ottla.cli.output import Output, write_all
from ottla.cli.positions import BEGINNING, END, EXPLANATION, Position, parse_partitions, parse_position
from ottla.cli.running import connected_admin, run

if TYPE_CHECKING:
    from ottla.cli.formats import Formatter
    from ottla.cli.reading_notes import Silence
    from ottla.client.admin import AsyncAdmin

READING = "What is read"
WRITING = "How it is written"
# A group waits for others before its members may read: only then can nothing have come.
JOINING_SECONDS = 30.0
# A topic that is deleted while it is read must not be there again because of that.
_OWN = {"client_id": "ottla-cli", "allow_auto_create_topics": "false"}


TopicArgument = Annotated[str, typer.Argument(metavar="TOPIC", autocompletion=topic_names, show_default=False)]
StartOption = Annotated[
    str | None,
    typer.Option("--from", "-o", metavar="PLACE", help=f"Where to begin: {EXPLANATION}.", rich_help_panel=READING),
]
UntilOption = Annotated[
    str | None,
    typer.Option("--until", "-u", metavar="PLACE", help="Where to stop, likewise.", rich_help_panel=READING),
]
LastOption = Annotated[
    int | None,
    typer.Option("--last", "-n", metavar="N", min=1, help="The newest N records.", rich_help_panel=READING),
]
FollowOption = Annotated[
    bool,
    typer.Option("--follow", help="From the end on, what comes, until Ctrl-C.", rich_help_panel=READING),
]
PartitionsOption = Annotated[
    str | None,
    typer.Option("--partitions", "-p", metavar="0,2-3", help="Only these.", rich_help_panel=READING),
]
CountOption = Annotated[
    int | None, typer.Option("--count", "-c", metavar="N", min=1, help="At most N.", rich_help_panel=READING)
]
IdleOption = Annotated[
    float | None,
    typer.Option(
        "--idle", metavar="SECONDS", min=0, help="End when nothing came for so long.", rich_help_panel=READING
    ),
]
GroupOption = Annotated[
    str | None,
    typer.Option(
        "--group",
        "-g",
        metavar="ID",
        autocompletion=group_ids,
        help="As a member of a group, until Ctrl-C: from its offsets, or the end; commits what was written out.",
        rich_help_panel=READING,
    ),
]
FormOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help=r"%t %p %o topic, partition, offset; %k %s key, value; %K %S lengths; %T time; %h headers; \n \t.",
        rich_help_panel=WRITING,
    ),
]
NullOption = Annotated[
    str, typer.Option("--null", "-Z", metavar="TEXT", help="What stands for null.", rich_help_panel=WRITING)
]
ValueJsonOption = Annotated[
    bool,
    typer.Option("--value-json", help="With --json: values that are JSON, unquoted.", rich_help_panel=WRITING),
]
KeyJsonOption = Annotated[
    bool, typer.Option("--key-json", help="With --json: keys that are JSON, unquoted.", rich_help_panel=WRITING)
]


def consume(
    topic: TopicArgument,
    start: StartOption = None,
    until: UntilOption = None,
    last: LastOption = None,
    follow: FollowOption = False,
    partitions: PartitionsOption = None,
    count: CountOption = None,
    idle: IdleOption = None,
    group: GroupOption = None,
    form: FormOption = None,
    null: NullOption = "",
    value_json: ValueJsonOption = False,
    key_json: KeyJsonOption = False,
    json: Json = False,
    bootstrap: Bootstrap = None,
    settings: Settings = None,
    config_file: ConfigFile = None,
    timeout: Timeout = None,
) -> None:
    """Write the records of a topic out.

    Without options: from the beginning to the end that the topic has now. With --follow: from the end on, what comes
    from now on. With --group: from where the group stopped; a new group begins at the end. --from says otherwise.

    [bold]Examples[/bold]

        ottla consume orders

        ottla consume orders --follow --from beginning

        ottla consume orders --last 10 --follow

        ottla consume orders --from 2h --until 1h --json

        ottla consume orders --from -5 -f 'partition %p offset %o: %k -> %s\\n'

        ottla consume orders --group billing --from beginning
    """
    output = Output(json)
    place = target(bootstrap, settings, config_file, timeout)

    async def work() -> None:
        if json and form is not None:
            raise WrongUsage("give either --json or --format")
        writer = Writer(_formatter(json, form, null, key_json, value_json), count)
        if group is not None:
            if until is not None or last is not None or partitions is not None:
                raise WrongUsage(
                    "a group decides what is read: --until, --last and --partitions do not go with --group"
                )
            await _as_member(place, topic, group, start, writer, idle, output)
            return
        if last is not None and (start is not None or until is not None):
            raise WrongUsage("give either --last, or --from and --until")
        await _by_plan(place, topic, partitions, Plan(start, until, last, follow, idle), writer, output)

    run(work, output, is_endless=follow or group is not None)


class Plan:
    """What is to be read, as it was asked for."""

    def __init__(
        self, start: str | None, until: str | None, last: int | None, follow: bool, idle_seconds: float | None
    ) -> None:
        now_ms = int(time.time() * 1000)
        self.last = None if last is None else min(last, sys.maxsize)
        self.follow = follow
        self.idle_seconds = idle_seconds
        self.starts_at_end_unasked = follow and start is None and last is None
        self.start = (END if follow else BEGINNING) if start is None else parse_position(start, now_ms)
        self.stop: Position | None = None if follow else END
        if until is not None:
            self.stop = parse_position(until, now_ms)


class Writer:
    """Records on standard output, a number of them at most."""

    def __init__(self, formatter: "Formatter", count: int | None) -> None:
        self._formatter = formatter
        self.left = count

    def write(self, records: list[Any]) -> bool:
        """False when there is nothing more to write."""
        chosen = records if self.left is None else records[: self.left]
        write_all(sys.stdout.buffer, b"".join(map(self._formatter, chosen)))
        sys.stdout.buffer.flush()
        if self.left is not None:
            self.left -= len(chosen)
        return self.left != 0


def _formatter(is_json: bool, form: str | None, null: str, is_key_json: bool, is_value_json: bool) -> "Formatter":
    from ottla.cli.formats import compile_format, unescape
    from ottla.cli.json_records import to_json

    if is_json:
        return lambda record: to_json(record, is_key_json=is_key_json, is_value_json=is_value_json).encode() + b"\n"
    return compile_format(r"%s\n" if form is None else form, unescape(null))


async def _by_plan(
    place: Target, topic: str, partitions: str | None, plan: Plan, writer: Writer, output: Output
) -> None:
    from ottla.cli.positions import Span
    from ottla.cli.reading import planned_spans, read_last, read_spans
    from ottla.cli.reading_notes import Silence, tell_start
    from ottla.cli.reset import bounds_of
    from ottla.client.consumer.consumer import AsyncConsumer

    own: dict[str, object] = {"enable_auto_commit": "false", "auto_offset_reset": "earliest", **_OWN}
    if plan.last is not None:
        # Looking further back has to wait for the fetch that is already under way.
        own["fetch_max_wait_ms"] = 50
    properties = place.properties(**own)
    bytes_consumer: AsyncConsumer[bytes, bytes] = AsyncConsumer(config=properties)
    async with connected_admin(place, output) as admin, bytes_consumer as consumer:
        isolation = str(properties.get("isolation.level", "read_uncommitted"))
        wanted = await partitions_of(admin, topic, partitions)
        if plan.last is None:
            spans = await planned_spans(admin, wanted, plan.start, plan.stop, isolation, output)
            if plan.starts_at_end_unasked:
                tell_start(output, topic)
        else:
            bounds = await bounds_of(admin, wanted, None, isolation)
            newest = await read_last(consumer, bounds, plan.last)
            if not writer.write(newest) or not plan.follow:
                return
            spans = {key: Span(bound.end, None) for key, bound in bounds.items()}
        silence = Silence(admin, topic, output)
        async for records in read_spans(consumer, spans, plan.idle_seconds, silence):
            if not writer.write(records):
                return


async def partitions_of(admin: "AsyncAdmin", topic: str, chosen: str | None) -> "list[Any]":
    """The partitions of a topic that are meant; all where none are chosen."""
    from ottla.client.types import TopicPartition

    described = (await admin.describe_topics(topic))[topic]
    there = [one.partition for one in described.partitions]
    numbers = sorted(there) if chosen is None else sorted(parse_partitions(chosen))
    missing = [number for number in numbers if number not in there]
    if missing:
        raise NotThere(f"{topic} has no partition {missing[0]}: it has 0 to {len(there) - 1}")
    return [TopicPartition(topic, number) for number in numbers]


async def _as_member(
    place: Target,
    topic: str,
    group: str,
    start: str | None,
    writer: Writer,
    idle_seconds: float | None,
    output: Output,
) -> None:
    from ottla.cli.commits import Commits
    from ottla.cli.reading_notes import Silence, tell_group_start
    from ottla.cli.reset import bounds_of
    from ottla.client.config import ConsumerConfig, resolve
    from ottla.client.consumer.consumer import AsyncConsumer

    place_of_new = END if start is None else parse_position(start, 0)
    if place_of_new not in (BEGINNING, END):
        raise WrongUsage("--from is beginning or end with --group, for where the group has no offset yet")
    reset = "earliest" if place_of_new == BEGINNING else "latest"
    properties = place.properties(group_id=group, auto_offset_reset=reset, **_OWN)
    asked = resolve(ConsumerConfig, config=properties)
    bytes_consumer: AsyncConsumer[bytes, bytes] = AsyncConsumer(config=properties | {"enable.auto.commit": "false"})
    async with connected_admin(place, output) as admin, bytes_consumer as consumer:
        bounds = await bounds_of(admin, await partitions_of(admin, topic, None), None)
        committed = (await admin.list_group_offsets(group))[group]
        tell_group_start(output, group, asked.auto_offset_reset, committed, bounds)
        interval = asked.auto_commit_interval_ms / 1000 if asked.enable_auto_commit else None
        commits = Commits(consumer, interval, place.timeout_seconds)
        consumer.subscribe([topic], listener=commits)
        try:
            await _read_on(consumer, writer, commits, idle_seconds, Silence(admin, topic, output, group))
        finally:
            await commits.finish()


async def _read_on(consumer: Any, writer: Writer, commits: Any, idle_seconds: float | None, silence: "Silence") -> None:
    """Until there is nothing more to write, or nothing came for `idle_seconds` since the group let it read."""
    from ottla.cli.reading import POLL_SECONDS, RECORDS_AT_ONCE

    waited, is_reading = 0.0, False
    while writer.left != 0:
        most = RECORDS_AT_ONCE if writer.left is None else min(writer.left, RECORDS_AT_ONCE)
        records = await consumer.poll(POLL_SECONDS, most)
        with commits.of(records):
            writer.write(records)
        await commits.keep_up()
        begins = not is_reading and bool(consumer.assignment)
        is_reading = is_reading or begins
        waited = 0.0 if records or begins else waited + POLL_SECONDS
        patience = 0.0 if is_reading else JOINING_SECONDS
        if not (records or begins) and idle_seconds is not None and waited >= idle_seconds + patience:
            return
        if not records:
            await silence.explain(consumer)
