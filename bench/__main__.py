"""`python -m bench`: measure Ottla beside Apache Kafka."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from bench import settings as sizes
from bench.document import PAGE, write_document
from bench.machine import ProcessorTime, busy_share, machine_facts, stolen_share
from bench.report import print_report
from bench.results import from_json, replaced, to_json, write_json
from bench.rows import KAFKA, OTTLA, SECTIONS, rows
from bench.runner import run

RESULTS = Path(__file__).parent / "results"
_WIDTH = 140
_LOOK_SECONDS, _BUSY_SHARE = 1.0, 0.1

_HELP = f"""Measure Ottla beside Apache Kafka, in turns, and compare the medians.

Sections: {", ".join(SECTIONS)}. A whole run takes about two hours and 20 GB of disk for a while, and needs the
machine for itself. It writes bench/results/<date>.json, and the table and the plot of docs/BENCHMARKS.md.

\b
Examples:
  python -m bench                           everything, three runs
  python -m bench --quick                   a look, with short measurements; docs stay as they are
  python -m bench --only produce,fetch      two sections
  python -m bench --only startup --runs 5   five starts of each
  python -m bench --brokers kafka --quick   only Apache Kafka
  python -m bench --only scale --into bench/results/2025-01-31.json   one section of a kept run again
  python -m bench --json > run.json         the kept file on standard output, too
  python -m bench --render bench/results/2025-01-31.json   write the page again from a kept run
"""


def _chosen(text: str, allowed: tuple[str, ...], what: str) -> tuple[str, ...]:
    wanted = [part.strip() for part in text.split(",") if part.strip()]
    unknown = sorted(set(wanted) - set(allowed))
    if unknown or not wanted:
        raise typer.BadParameter(f"expected {what} among {', '.join(allowed)}; got {', '.join(unknown) or 'none'}")
    return tuple(name for name in allowed if name in wanted)


def _facts(chosen: sizes.Settings, quick: bool, seconds: float) -> dict[str, Any]:
    return {
        "date": datetime.date.today().isoformat(),
        "quick": quick,
        "rounds": chosen.rounds,
        "seconds": round(seconds, 1),
        "machine": machine_facts(),
    }


def main(
    only: Annotated[str, typer.Option(help="Sections to run, separated by commas.")] = ",".join(SECTIONS),
    runs: Annotated[
        int | None, typer.Option(min=1, help="Counted runs of each measurement; 3, or 1 with --quick.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Short measurements and a large log of 1 GB.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON on standard output.")] = False,
    brokers: Annotated[str, typer.Option(help="Brokers to measure, separated by commas.")] = f"{KAFKA},{OTTLA}",
    into: Annotated[
        Path | None, typer.Option(exists=True, help="Let the sections take their place in this kept run.")
    ] = None,
    render: Annotated[
        Path | None, typer.Option(exists=True, help="Measure nothing; write the page from this kept run.")
    ] = None,
) -> None:
    console = Console(stderr=as_json)
    if not console.is_terminal:
        console = Console(stderr=as_json, width=_WIDTH)
    if render is not None:
        content = json.loads(render.read_text())
        write_document(content, from_json(content))
        console.print(f"wrote docs/{PAGE.name}")
        return
    sections = _chosen(only, SECTIONS, "sections")
    names = _chosen(brokers, (KAFKA, OTTLA), "brokers")
    chosen = sizes.quick(runs) if quick else sizes.full(runs)
    busy = busy_share(_LOOK_SECONDS)
    if busy > _BUSY_SHARE:
        console.print(f"{busy:.0%} of the machine is in use already: the figures will mean little", style="red")
    processor_time = ProcessorTime.now()
    results, seconds = run(chosen, sections, names, console)
    facts = _facts(chosen, quick, seconds)
    facts |= {"busy_before": round(busy, 3), "stolen": round(stolen_share(processor_time), 3)}
    content = to_json(results, rows(chosen), facts)
    if into is not None:
        content = replaced(json.loads(into.read_text()), content, sections)
    whole = (sections == SECTIONS or into is not None) and len(names) == 2 and not quick
    _keep(content, into, whole, console)
    print_report(from_json(content), results, console)
    if as_json:
        typer.echo(json.dumps(content, indent=1))
    if results.failures:
        raise typer.Exit(1)


def _keep(content: dict[str, Any], into: Path | None, whole: bool, console: Console) -> None:
    """A whole run without failures is what the page shows; anything less is kept beside it as partial."""
    path = into if into is not None and whole else RESULTS / f"{content['date']}{'' if whole else '-partial'}.json"
    write_json(path, content)
    console.print(f"kept in bench/results/{path.name}", highlight=False)
    if whole and not content["failures"]:
        write_document(content, from_json(content))
        console.print(f"wrote docs/{PAGE.name}", highlight=False)


if __name__ == "__main__":
    application = typer.Typer(add_completion=False, rich_markup_mode=None)
    application.command(help=_HELP)(main)
    application()
