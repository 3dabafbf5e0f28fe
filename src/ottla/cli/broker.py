"""`ottla broker` on the command line."""

from pathlib import Path
from typing import Annotated

import typer

EPILOG = """
[bold]Examples[/bold]

A broker on localhost:9092 with its data in ./ottla-data:

    ottla broker

Another place and another port:

    ottla broker --data /var/lib/ottla --port 9093

Settings under Kafka's names, from a file and one by one:

    ottla broker --config server.properties --set num.partitions=4

Metrics and health over HTTP, and logs for machines:

    ottla broker --set ottla.http.listeners=http://localhost:9644 --log-format json
"""


def run(
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", help="A server.properties file with Kafka's names.", show_default=False),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", "-s", metavar="KEY=VALUE", help="One setting; wins over the file. Repeatable."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", "-d", help="The data directory (log.dirs).", show_default="./ottla-data")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", "-p", min=0, max=65535, help="Listen on localhost with this port; 0 picks a free one."),
    ] = None,
    log_level: Annotated[str, typer.Option("--log-level", help="debug, info, warning or error.")] = "info",
    log_format: Annotated[str, typer.Option("--log-format", help="text, or json: one object for each line.")] = "text",
) -> None:
    """Run a broker until Ctrl-C or SIGTERM.

    Once it can be used, it prints its addresses on standard output, those for clients last; logs go to standard error.
    """
    # What a broker is made of takes a while to load: other commands do without.
    from ottla.cli.serve import BrokerOptions, CommandFailed, report, serve

    options = BrokerOptions(config, settings, data, port, log_level, log_format)
    try:
        serve(options)
    except CommandFailed as error:
        report(error, options)
        raise typer.Exit(error.code) from None


run.__doc__ = (run.__doc__ or "") + EPILOG
