"""The `ottla` command."""

from typing import Annotated

import typer

from ottla.cli import broker, capture, cluster, configs, consume, copy, groups, lake, pipeline, produce, topics
from ottla.version import __version__

app = typer.Typer(
    name="ottla",
    help="Ottla: an event streaming platform that speaks Kafka's protocol.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    # Commands and groups below inherit it.
    context_settings={"help_option_names": ["--help", "-h"]},
)
app.command("broker")(broker.run)
app.command("cluster")(cluster.run)
app.command("produce")(produce.produce)
app.command("consume")(consume.consume)
app.command("cp")(copy.copy)
app.command("capture")(capture.capture)
app.add_typer(lake.app, name="lake", help="Topics as Parquet files: load, show, compact.")
app.add_typer(topics.app, name="topics", help="List, describe, create, delete and alter topics.")
app.add_typer(configs.app, name="configs", help="Show and change settings of topics, brokers and groups.")
app.add_typer(pipeline.app, name="pipeline", help="Pipelines on Spark: list, run, status, and all of them as a demo.")
app.add_typer(groups.app, name="groups", help="Groups: list, describe, lag, reset offsets, delete.")


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
    """One command for everything; each part has its own --help with examples.

    It talks to Ottla and to Apache Kafka: name the brokers with --bootstrap-server or OTTLA_BOOTSTRAP_SERVERS.
    """


def main() -> None:
    app()
