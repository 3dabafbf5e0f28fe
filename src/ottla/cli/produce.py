"""`ottla produce`: lines of standard input or a file into a topic."""

import sys
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Self

import typer

from ottla.cli.completion import topic_names
from ottla.cli.connecting import (
    Bootstrap,
    ConfigFile,
    Settings,
    Target,
    Timeout,
    WrongUsage,
    target,
)
from ottla.cli.formats import typed_bytes
from ottla.cli.lines import read_some
from ottla.cli.output import Output
from ottla.cli.running import connected_admin, drop_output, in_daemon_thread, run

INPUT = "What is read"


TopicArgument = Annotated[str, typer.Argument(metavar="TOPIC", autocompletion=topic_names, show_default=False)]
ValuesOption = Annotated[
    list[str] | None,
    typer.Option("--value", "-v", metavar="TEXT", help="A record, in place of input. Repeatable."),
]
KeyOption = Annotated[str | None, typer.Option("--key", "-k", metavar="TEXT", help="The key of all records.")]
HeadersOption = Annotated[
    list[str] | None, typer.Option("--header", "-H", metavar="NAME=VALUE", help="For all records. Repeatable.")
]
PartitionOption = Annotated[int | None, typer.Option("--partition", "-p", min=0, help="Where to; by key if not given.")]
FileOption = Annotated[
    Path | None, typer.Option("--file", "-l", help="Read this file.", show_default=False, rich_help_panel=INPUT)
]
DelimiterOption = Annotated[str, typer.Option("--delimiter", "-D", help="What ends a record.", rich_help_panel=INPUT)]
KeySeparatorOption = Annotated[
    str | None,
    typer.Option("--key-separator", "-K", metavar="TEXT", help="What ends the key.", rich_help_panel=INPUT),
]
NullOption = Annotated[
    str | None,
    typer.Option("--null", "-Z", metavar="TEXT", help="What stands for null.", rich_help_panel=INPUT),
]
JsonLinesOption = Annotated[
    bool,
    typer.Option("--json", help="Lines are records in JSON, as of consume --json.", rich_help_panel=INPUT),
]
CompressionOption = Annotated[str | None, typer.Option("--compression", "-z", help="none, gzip, snappy, lz4 or zstd.")]
AcksOption = Annotated[str, typer.Option("--acks", help="Who confirms: all, 1 or 0.")]
ReportOption = Annotated[bool, typer.Option("--report", help="A JSON line for each record: where it went.")]


def produce(
    topic: TopicArgument,
    values: ValuesOption = None,
    key: KeyOption = None,
    headers: HeadersOption = None,
    partition: PartitionOption = None,
    file: FileOption = None,
    delimiter: DelimiterOption = r"\n",
    key_separator: KeySeparatorOption = None,
    null: NullOption = None,
    json: JsonLinesOption = False,
    compression: CompressionOption = None,
    acks: AcksOption = "all",
    report: ReportOption = False,
    bootstrap: Bootstrap = None,
    settings: Settings = None,
    config_file: ConfigFile = None,
    timeout: Timeout = None,
) -> None:
    """Write records into a topic: a line each, from standard input, a file, or --value.

    The topic must exist. The command ends when all records are acknowledged; how many that were is told on standard
    error.

    [bold]Examples[/bold]

        ottla produce orders < orders.txt

        ottla produce orders --value tea --key customer-1 --header source=shop

        echo 'customer-1:milk' | ottla produce orders --key-separator :

        ottla consume orders --json | ottla produce copy --json --report
    """
    output = Output(report)
    place = target(bootstrap, settings, config_file, timeout)

    async def work() -> None:
        from ottla.cli.formats import unescape
        from ottla.cli.lines import LineFormat, Splitter, parse_header

        if values and file is not None:
            raise WrongUsage("give either --value or --file")
        line_format = LineFormat(
            None if key_separator is None else unescape(key_separator),
            None if key is None else typed_bytes(key),
            tuple(parse_header(text) for text in headers or ()),
            partition,
            None if null is None else unescape(null),
            json,
        )
        if key_separator == "":
            raise WrongUsage("the key separator is empty: give at least one character")
        with Lines(values, file, Splitter(unescape(delimiter))) as lines:
            await _send(place, topic, lines, line_format, {"compression_type": compression, "acks": acks}, output)

    run(work, output)


class Lines:
    """The lines to send, in portions as they come; reading waits in a thread, so that records leave meanwhile."""

    def __init__(self, values: list[str] | None, file: Path | None, splitter: Any) -> None:
        self._values = values
        self._splitter = splitter
        self._stream: BinaryIO | None = None
        if values is None:
            try:
                self._stream = sys.stdin.buffer if file is None else file.open("rb")
            except OSError as error:
                raise WrongUsage(f"{file} cannot be read: {error.strerror}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        if self._stream is not None and self._stream is not sys.stdin.buffer:
            self._stream.close()
        self._stream, self._values = None, None

    async def next_portion(self) -> list[bytes] | None:
        """None at the end."""
        if self._stream is None:
            values, self._values = self._values, None
            return None if values is None else [typed_bytes(value) for value in values]
        chunk = await in_daemon_thread(read_some, self._stream)
        if chunk:
            found: list[bytes] = self._splitter.feed(chunk)
            return found
        self.__exit__()
        rest: list[bytes] = self._splitter.finish()
        return rest


async def _send(
    place: Target, topic: str, lines: Lines, line_format: Any, own: dict[str, str | None], output: Output
) -> None:
    from ottla.cli.lines import numbered
    from ottla.cli.sending import Sending
    from ottla.client.producer.producer import AsyncProducer

    async with connected_admin(place, output) as admin:
        (await admin.describe_topics(topic)).raise_for_errors()
    given = {name: value for name, value in own.items() if value is not None}
    properties = place.properties(client_id="ottla-cli", max_block_ms=place.timeout_ms, **given)
    bytes_producer: AsyncProducer[bytes, bytes] = AsyncProducer(config=properties)
    async with (
        bytes_producer as producer,
        Sending(producer, topic, _report_to(output) if output.is_json else None) as sending,
    ):
        await sending.check_partition(line_format.partition)
        number = 1
        while (portion := await lines.next_portion()) is not None:
            for record in numbered(portion, number, line_format):
                await sending.send(record)
            number += len(portion)
    output.note(f"{sending.count} records written to {topic}")


def _report_to(output: Output) -> Any:
    """Whoever reads the reports may have seen enough of them: that is no reason to send less."""
    is_read = True

    def report(metadata: Any) -> None:
        nonlocal is_read
        if not is_read:
            return
        line = {
            "topic": metadata.topic,
            "partition": metadata.partition,
            "offset": metadata.offset,
            "timestamp": metadata.timestamp,
        }
        try:
            output.line(line)
        except BrokenPipeError:
            drop_output()
            is_read = False

    return report
