"""`ottla capture`: the changes of a database into a topic."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.completion import topic_names
from ottla.cli.connecting import (
    Bootstrap,
    ConfigFile,
    Json,
    Settings,
    Target,
    Timeout,
    WrongUsage,
    target,
)
from ottla.cli.output import Output
from ottla.cli.running import CommandFailed, in_daemon_thread, run

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
AnewOption = Annotated[
    bool, typer.Option("--anew", help="Forget where it was: begin with a snapshot, of these tables and this database.")
]

_DATABASES = ("postgresql://", "postgres://", "sqlite:")
# For what is under way when it is told to end. What is not committed by then is captured by the next one.
_ENDING_SECONDS = 10.0


def capture(
    database: DatabaseArgument,
    topic: TopicOption,
    table: TablesOption,
    name: NameOption = "capture",
    anew: AnewOption = False,
    json: Json = False,
    bootstrap: Bootstrap = None,
    settings: Settings = None,
    config_file: ConfigFile = None,
    timeout: Timeout = None,
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

        if not database.startswith(_DATABASES):
            raise WrongUsage(f"{database!r} is no database: write postgresql://user@host/name or sqlite:FILE")
        tables = [_table(one) for one in table]
        properties = cluster.properties(client_id=f"ottla-capture-{name}")
        try:
            source = open_source(database, name, tables)
            connector = Connector(name, source, topic, tables, properties, begins_anew=anew)
            await _tell_if_nobody_is_there(cluster, output)
            await _until_told_to_end(lambda stop: connector.run(output.note, stop), name, output)
        except CaptureError as error:
            raise CommandFailed(str(error)) from None

    run(work, output, is_endless=True)


async def _tell_if_nobody_is_there(cluster: Target, output: Output) -> None:
    """A capture waits for brokers as long as it takes; until then it must not look as if it were at work."""
    from ottla.cli.waiting import NOTICE_SECONDS
    from ottla.client.admin import AsyncAdmin
    from ottla.client.errors import BrokerUnavailable

    admin = AsyncAdmin(config=replace(cluster, timeout_seconds=NOTICE_SECONDS).admin_properties())
    try:
        await admin.start()
    except BrokerUnavailable:
        output.tell(f"waiting for a broker at {', '.join(admin.config.bootstrap_servers)}, for ever (Ctrl-C ends)")
    finally:
        await admin.close()


async def _until_told_to_end(capturing: Callable[[threading.Event], None], name: str, output: Output) -> None:
    """It waits for databases and brokers in a thread of its own, so that Ctrl-C is noticed at once. Told to end, it
    finishes what it has in hand; where that takes too long, nothing is lost by leaving it."""
    stop = threading.Event()
    work = asyncio.ensure_future(in_daemon_thread(capturing, stop))
    try:
        await asyncio.shield(work)
    except asyncio.CancelledError:
        stop.set()
        ended, _ = await asyncio.wait({work}, timeout=_ENDING_SECONDS)
        for one in ended:
            one.result()
        output.note(f"capture {name} has ended; started again under this name, it goes on where it was")
        raise


def _table(text: str) -> "Table":
    from ottla.capture.changes import Table

    name, _, columns = text.partition("=")
    key, _, time = columns.partition("@")
    if not (name and key):
        raise WrongUsage(f"--table {text}: it must look like TABLE=KEY or TABLE=KEY@TIME, with columns of the table")
    return Table(name, key, time or None)
