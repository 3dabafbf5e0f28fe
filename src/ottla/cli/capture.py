"""`ottla capture`: the changes of a database into a topic."""

import signal
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.completion import topic_names
from ottla.cli.connecting import (
    DEFAULT_TIMEOUT_SECONDS,
    Bootstrap,
    ConfigFile,
    Json,
    Settings,
    Timeout,
    WrongUsage,
    target,
)
from ottla.cli.output import Output
from ottla.cli.running import CommandFailed, run

if TYPE_CHECKING:
    from ottla.capture.changes import Table

DatabaseArgument = Annotated[
    str,
    typer.Argument(metavar="DATABASE", help="postgresql://user@host/name or sqlite:FILE.", show_default=False),
]
TopicOption = Annotated[
    str, typer.Option("--topic", "-t", help="Where the changes go.", autocompletion=topic_names, show_default=False)
]
TablesOption = Annotated[
    list[str],
    typer.Option(
        "--table",
        metavar="TABLE=KEY[@TIME]",
        help="A table, the column that is the key, and one with times of events. Repeatable.",
        show_default=False,
    ),
]
NameOption = Annotated[str, typer.Option("--name", help="Of the connector: who starts it again goes on where it was.")]


def capture(
    database: DatabaseArgument,
    topic: TopicOption,
    table: TablesOption,
    name: NameOption = "capture",
    json: Json = False,
    bootstrap: Bootstrap = None,
    settings: Settings = None,
    config_file: ConfigFile = None,
    timeout: Timeout = DEFAULT_TIMEOUT_SECONDS,
) -> None:
    """Send the rows of tables, then every change to them, to a topic: each once, in commit order, until Ctrl-C.

    It may be killed at any moment; started again under its name, it goes on where it was. A second one of the same
    name takes the first one's place.

    [bold]Examples[/bold]

        ottla capture sqlite:bank.db --topic bank.changes --table transactions=account

        ottla capture postgresql://bank@db/bank --topic bank.changes --name bank --table transactions=account@booked_at
    """
    output = Output(json)
    cluster = target(bootstrap, settings, config_file, timeout)

    async def work() -> None:
        from ottla.capture.changes import CaptureError
        from ottla.capture.connector import Connector
        from ottla.capture.opening import open_source

        tables = [_table(one) for one in table]
        signal.signal(signal.SIGTERM, _end)
        try:
            source = open_source(database, name, tables)
            Connector(name, source, topic, tables, cluster.properties(client_id=f"ottla-capture-{name}")).run(
                output.note
            )
        except CaptureError as error:
            raise CommandFailed(str(error)) from None

    run(work, output, is_endless=True)


def _table(text: str) -> "Table":
    from ottla.capture.changes import Table

    name, _, columns = text.partition("=")
    key, _, time = columns.partition("@")
    if not (name and key):
        raise WrongUsage(f"--table {text}: it must look like TABLE=KEY or TABLE=KEY@TIME, with columns of the table")
    return Table(name, key, time or None)


def _end(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
