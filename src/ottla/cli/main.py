"""The `ottla` command."""

from typing import Annotated

import typer

from ottla import __version__
from ottla.cli import broker

app = typer.Typer(
    name="ottla",
    help="Ottla: an event streaming platform that speaks Kafka's protocol.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
app.command("broker")(broker.run)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ottla {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """One command for everything; each part has its own --help with examples."""


def main() -> None:
    app()
