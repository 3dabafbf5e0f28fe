"""`ottla pipeline`: list, run and watch the pipelines on Spark, and show them all at once."""

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.connecting import (
    DEFAULT_TIMEOUT_SECONDS,
    ConfigFile,
    Json,
    Settings,
    WrongUsage,
    bootstrap_option,
    pairs,
    target,
)
from ottla.cli.output import Output, table_of
from ottla.cli.pipeline_tables import STATUS_COLUMNS, columns_for, shown
from ottla.cli.running import FAILED, WRONG, CommandFailed, drop_output, tell_error

if TYPE_CHECKING:
    from ottla.pipelines.frame.pipeline import Pipeline
    from ottla.pipelines.frame.place import Begin, Place
    from ottla.pipelines.frame.progress import Progress

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")

DATA = "ottla-pipelines"


def complete_name(incomplete: str) -> list[str]:
    from ottla.pipelines.frame.catalogue import names

    return [name for name in names() if name.startswith(incomplete)]


Names = Annotated[list[str], typer.Argument(metavar="NAME...", autocompletion=complete_name, show_default=False)]
SomeNames = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME...]", autocompletion=complete_name, show_default=False)
]
Bootstrap = Annotated[
    str | None, bootstrap_option("Some brokers of the cluster, Ottla's or Apache Kafka's.", "--bootstrap")
]
Duration = Annotated[
    str | None, typer.Option("--for", metavar="TIME", help="End after so long, such as 60s or 5m.", show_default=False)
]

Data = Annotated[
    str,
    typer.Option("--data", "-d", metavar="PLACE", help="For checkpoints and the lake: a directory, or hdfs://..."),
]
BeginAt = Annotated[
    str | None,
    typer.Option(
        "--begin",
        metavar="WHERE",
        help="Put the checkpoints that are there aside, and begin anew, or at the offsets that were published.",
        show_default=False,
    ),
]
MostPerBatch = Annotated[
    int | None,
    typer.Option(
        "--most-per-batch", metavar="COUNT", min=1, help="Records that a micro-batch takes at most: all unless given."
    ),
]


@app.command("list")
def list_pipelines(json: Json = False) -> None:
    """List the pipelines that there are.

    [bold]Examples[/bold]

        ottla pipeline list
    """
    from ottla.pipelines.frame import catalogue

    rows = [
        {
            "name": one.name,
            "title": one.title,
            "inputs": [each.topic.name for each in one.inputs],
            "results": [each.name for each in one.results],
        }
        for one in map(catalogue.pipeline, catalogue.names())
    ]
    Output(json).rows(("name", "title"), rows, empty="there are no pipelines")


@app.command("run")
def run_pipelines(
    names: Names,
    master: Annotated[
        str | None,
        typer.Option("--master", metavar="URL", help=r"Spark's: local\[4], spark://host:7077 ... [default: local\[*]]"),
    ] = None,
    source: Annotated[str, typer.Option("--source", help="What reads topics: ottla, or kafka, Spark's own.")] = "ottla",
    data: Data = DATA,
    once: Annotated[bool, typer.Option("--once", help="Work off what is there, and end.")] = False,
    duration: Duration = None,
    every: Annotated[str, typer.Option("--every", metavar="TIME", help="Between two micro-batches.")] = "1s",
    most_per_batch: MostPerBatch = None,
    begin: BeginAt = None,
    rate: Annotated[
        float | None,
        typer.Option(
            "--generate", metavar="RATE", min=0.1, help="Send made-up events too, so many a second for each pipeline."
        ),
    ] = None,
    conf: Annotated[
        list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark's. Repeatable.")
    ] = None,
    json: Json = False,
    bootstrap: Bootstrap = None,
    settings: Settings = None,
    config_file: ConfigFile = None,
) -> None:
    """Run pipelines until Ctrl-C, in one Spark session; they go on from where they were.

    [bold]Examples[/bold]

        ottla pipeline run campaign

        ottla pipeline run campaign mysocialmedia --generate 50 --for 60s

        ottla pipeline run campaign --master spark://host:7077 --bootstrap kafka:9092 --source kafka --once

        ottla pipeline run campaign --bootstrap kafka:9093 --config client.properties
    """
    output = Output(json)

    def work() -> None:
        from ottla.cli.pipeline_run import run_order
        from ottla.pipelines.frame.order import Order

        place = _place(brokers_of(bootstrap, settings, config_file), data, source, most_per_batch)
        order = Order(
            chosen(names),
            replace(place, begin=begin_of(begin)),
            master=master,
            settings=dict(pairs(conf, "--conf", "spark.executor.memory=2g")),
            every=f"{seconds_of(every)} seconds",
            is_once=once,
            seconds=None if duration is None else seconds_of(duration),
            is_fed=rate is not None,
            rate=rate,
        )
        run_order(order, output)

    guarded(work, output)


@app.command("status")
def show_status(
    names: SomeNames = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Keep the table up to date until Ctrl-C.")] = False,
    json: Json = False,
    bootstrap: Bootstrap = None,
    settings: Settings = None,
    config_file: ConfigFile = None,
) -> None:
    """Show how far pipelines are: rows per second, lag, how long answers take; also of those that run elsewhere.

    [bold]Examples[/bold]

        ottla pipeline status --watch

        ottla pipeline status campaign --json
    """
    output = Output(json)

    def work() -> None:
        from ottla.pipelines.frame.progress import published

        wanted = {one.name for one in chosen(names)} if names else None
        brokers = brokers_of(bootstrap, settings, config_file)

        def look() -> "list[Progress]":
            return [one for one in published(brokers) if wanted is None or one.pipeline in wanted]

        if not watch:
            rows = shown(look(), output)
            output.rows(columns_for(output, STATUS_COLUMNS), rows, empty="no pipeline has run on these brokers")
            return
        _watch(look, output)

    guarded(work, output)


def _watch(look: "Callable[[], list[Progress]]", output: Output) -> None:
    from rich.live import Live

    if output.is_json or not sys.stdout.isatty():
        while True:
            output.rows(columns_for(output, STATUS_COLUMNS), shown(look(), output), empty="nothing yet")
            sys.stdout.flush()
            time.sleep(1.0)
    with Live(console=output.console, auto_refresh=False) as live:
        while True:
            title = f"{time.strftime('%H:%M:%S')}  (Ctrl-C ends)"
            live.update(table_of(columns_for(output, STATUS_COLUMNS), shown(look(), output), title), refresh=True)
            time.sleep(1.0)


@app.command("demo")
def show_all(
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="NAME", autocompletion=complete_name, help="Only this one. Repeatable."),
    ] = None,
    duration: Duration = None,
    data: Annotated[Path, typer.Option("--data", "-d", help="For the broker, checkpoints and the lake.")] = Path(
        "ottla-data"
    ),
    port: Annotated[int, typer.Option("--port", "-p", help="Of the broker.")] = 9092,
    rate: Annotated[
        float | None,
        typer.Option(
            "--generate",
            metavar="RATE",
            min=1.0,
            help="Events a second of all pipelines together: 20 of each unless given.",
        ),
    ] = None,
    page: Annotated[
        bool, typer.Option("--page", help='Also show charts in a browser (pip install "ottla\\[page]").')
    ] = False,
    beside: Annotated[
        str | None, typer.Option("--beside", hidden=True, help="A command that installs Spark, run beside the screen.")
    ] = None,
    begin: BeginAt = None,
) -> None:
    """Show the pipelines at work: a broker, made-up events, Spark on this machine, and their answers as they come.

    What it stored it goes on with when it is started again.

    [bold]Examples[/bold]

        ottla pipeline demo --for 60s --only campaign

        ottla pipeline demo --generate 1000
    """
    output = Output()

    def work() -> None:
        from ottla.cli.pipeline_demo import Demo

        seconds = None if duration is None else seconds_of(duration)
        Demo(chosen(only or []), data.resolve(), port, seconds, rate, beside, has_page=page, begin=begin_of(begin)).run(
            output
        )

    guarded(work, output)


def chosen(names: list[str]) -> "list[Pipeline]":
    """Those of these names; all, where none is named."""
    from ottla.pipelines.frame import catalogue

    return [catalogue.pipeline(name) for name in dict.fromkeys(names or catalogue.names())]


def brokers_of(bootstrap: str | None, settings: list[str] | None, config_file: Path | None) -> dict[str, object]:
    """Settings of the clients that reach the cluster, by Kafka's names, as all commands take them."""
    return target(bootstrap, settings, config_file, DEFAULT_TIMEOUT_SECONDS).properties()


def begin_of(text: str | None) -> "Begin | None":
    match text:
        case None | "published" | "anew":
            return text
    raise WrongUsage(f"--begin {text}: it must be published or anew")


def _place(brokers: dict[str, object], data: str, source: str, most_per_batch: int | None) -> "Place":
    from ottla.pipelines.frame.place import Place, absolute

    if source not in ("ottla", "kafka"):
        raise WrongUsage(f"--source {source}: it must be ottla or kafka")
    bootstrap = str(brokers.pop("bootstrap.servers"))
    return Place(bootstrap, absolute(data), source, most_per_batch, brokers)


def seconds_of(text: str) -> float:
    """`90`, `60s`, `5m`, `1h`."""
    number, unit = (text[:-1], text[-1]) if text[-1:].isalpha() else (text, "s")
    factor = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(unit)
    try:
        seconds = float(number) * (factor or 0)
    except ValueError:
        seconds = 0.0
    if factor is None or seconds <= 0:
        raise WrongUsage(f"{text!r} is no time: write 60s, 5m or 1h")
    return seconds


def guarded(work: Callable[[], None], output: Output) -> None:
    """Run it, and say in one line what goes wrong."""
    import gc

    from ottla.client.errors import ConfigError, OttlaError
    from ottla.pipelines.frame.catalogue import UnknownPipeline
    from ottla.pipelines.frame.telling import PipelineError, first_line, system_failure

    gc.enable()
    try:
        work()
    except (ConfigError, WrongUsage, UnknownPipeline) as error:
        tell_error(str(error), output)
        raise typer.Exit(WRONG) from None
    except (CommandFailed, OttlaError, PipelineError) as error:
        tell_error(first_line(str(error)), output)
        raise typer.Exit(FAILED) from None
    except BrokenPipeError:
        # Whoever reads has seen enough.
        drop_output()
        raise typer.Exit from None
    except OSError as error:
        tell_error(system_failure(error), output)
        raise typer.Exit(FAILED) from None
    except KeyboardInterrupt:
        raise typer.Exit(0) from None
