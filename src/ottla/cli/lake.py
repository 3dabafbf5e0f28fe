"""`ottla lake`: what topics hold, as Parquet files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.completion import topic_names
from ottla.cli.connecting import (
    Bootstrap,
    ConfigFile,
    Json,
    Settings,
    Timeout,
    WrongUsage,
    target,
)
from ottla.cli.output import Output
from ottla.cli.progress import ProgressBar
from ottla.cli.running import CommandFailed, connected_admin, run

if TYPE_CHECKING:
    from ottla.pipelines.ingestion.lake import Lake

app = typer.Typer(no_args_is_help=True)

LakeArgument = Annotated[
    str,
    typer.Argument(
        metavar="LAKE", help="The lake's directory; on a cluster one that all workers share.", show_default=False
    ),
]
TopicsArgument = Annotated[
    list[str], typer.Argument(metavar="TOPIC...", autocompletion=topic_names, show_default=False)
]


@app.command("load")
def load_topics(
    lake: LakeArgument,
    topics: TopicsArgument,
    master: Annotated[str, typer.Option("--master", help="The Spark cluster that does it.")] = "local[*]",
    records: Annotated[int, typer.Option("--records", min=1, help="The most that one task loads.")] = 1_000_000,
    json: Json = False,
    bootstrap: Bootstrap = None,
    settings: Settings = None,
    config_file: ConfigFile = None,
    timeout: Timeout = None,
) -> None:
    """Load what topics hold now and the lake does not: a task for each range of each partition.

    A load that was ended goes on where it was when it is called again.

    [bold]Examples[/bold]

        ottla lake load lake orders payments
    """
    output = Output(json)
    cluster = target(bootstrap, settings, config_file, timeout)

    async def work() -> None:
        from ottla.pipelines.frame.session import spark_session
        from ottla.pipelines.frame.telling import PipelineError
        from ottla.pipelines.ingestion.loading import offsets_of, plan, run_tasks

        place = _lake(lake)
        async with connected_admin(cluster, output):
            pass
        tasks = list(plan(cluster.properties(), topics, place.state(), records))
        try:
            spark = spark_session(master=master)
            with ProgressBar("loading", offsets_of(tasks), is_quiet=json) as bar:
                gone = run_tasks(spark, cluster.properties(), tasks, place, lambda done: bar.advance(done, done))
        except PipelineError as error:
            raise CommandFailed(str(error)) from None
        data = {"lake": lake, "tasks": len(tasks), "deleted": [one._asdict() for one in gone]}
        output.done(data, f"{len(tasks)} ranges loaded into {lake}")
        for one in gone:
            output.note(f"{one} were deleted from the topic before they could be loaded")

    run(work, output)


@app.command("show")
def show(lake: LakeArgument, json: Json = False) -> None:
    """Topics in a lake: records, files, bytes."""
    output = Output(json)

    async def work() -> None:
        rows: dict[str, dict[str, object]] = {}
        for file in _existing(lake).state().files.values():
            row = rows.setdefault(file.topic, {"topic": file.topic, "records": 0, "files": 0, "size": 0})
            for name, more in (("records", file.rows), ("files", 1), ("size", file.size)):
                row[name] = int(str(row[name])) + more
        columns = ("topic", "records", "files", "size")
        output.rows(columns, [rows[topic] for topic in sorted(rows)], empty=f"there is nothing in {lake}")

    run(work, output)


@app.command("compact")
def compact_files(
    lake: LakeArgument,
    least: Annotated[int, typer.Option("--least", min=2, help="So many small files of an hour are put together.")] = 8,
    json: Json = False,
) -> None:
    """Put small files together, and delete what has not been part of the lake for an hour. Readers do not notice.

    What a killed writer has left is deleted after a day.
    """
    output = Output(json)

    async def work() -> None:
        from ottla.pipelines.ingestion.compaction import compact

        place = _existing(lake)
        saved = compact(place, least_files=least)
        deleted = len(place.vacuum())
        data = {"lake": lake, "fewer": saved, "deleted": deleted}
        output.done(data, f"{saved} files fewer in {lake}, {deleted} old ones deleted")

    run(work, output)


@app.command("delta")
def keep_delta(lake: LakeArgument, json: Json = False) -> None:
    """Make a lake a Delta table, too: the same files, with Delta's log beside the lake's own.

    Whatever is written to the lake from now on is in the table at once: by the stream, by loads, by compaction.

    [bold]Examples[/bold]

        ottla lake delta lake
    """
    output = Output(json)

    async def work() -> None:
        state = _lake(lake).keep_delta()
        data = {"lake": lake, "version": state.version, "files": len(state.files)}
        output.done(data, f"{lake} is a Delta table of {len(state.files)} files, at version {state.version}")

    run(work, output)


def _existing(directory: str) -> "Lake":
    """One that is not made by looking at it: a misspelt name is no empty lake."""
    place = _lake(directory)
    if not Path(directory).is_dir():
        raise WrongUsage(f"there is no lake {directory}: ottla lake load makes one")
    return place


def _lake(directory: str) -> "Lake":
    from ottla.pipelines.ingestion.lake import Lake

    return Lake(directory)
