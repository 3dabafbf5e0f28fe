"""Plan the steps of a run and walk through them, with a bar that says what is going on."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from tests.peers.paths import CACHE, REPOSITORY

from bench.peers import Peers, require_disk
from bench.plan import Bench, Step
from bench.results import Results
from bench.sections import (
    clients,
    compaction,
    depth,
    fetch,
    groups,
    java,
    libraries,
    limits,
    pipelines,
    produce,
    scale,
    spark,
    startup,
    transactions,
)
from bench.settings import GIB, Settings

_PLANNERS = {
    "startup": startup.steps,
    "produce": produce.steps,
    "fetch": fetch.steps,
    "clients": clients.steps,
    "java": java.steps,
    "depth": depth.steps,
    "scale": scale.steps,
    "compaction": compaction.steps,
    "groups": groups.steps,
    "transactions": transactions.steps,
    "libraries": libraries.steps,
    "spark": spark.steps,
    "campaign": pipelines.campaign_steps,
    "alerts": pipelines.alert_steps,
    "small": pipelines.small_steps,
    "demo": pipelines.demo_steps,
    "pipelines": pipelines.steps,
}
_SPARE_DISK_BYTES = 8 * GIB
_SHORT_CHARACTERS = 400


def run(
    settings: Settings, sections: tuple[str, ...], names: tuple[str, ...], console: Console
) -> tuple[Results, float]:
    """Run the sections in their order on the brokers `names`; answers what was found and the seconds it took."""
    results = Results()
    CACHE.mkdir(exist_ok=True)
    require_disk(CACHE, _SPARE_DISK_BYTES + (settings.depth_large_bytes if "depth" in sections else 0))
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="bench-", dir=CACHE, ignore_cleanup_errors=True) as directory:
        peers = Peers(names, Path(directory))
        bench = Bench(settings, peers, results)
        steps = [("limits", step) for step in limits.steps(bench, sections)]
        for section in sections:
            steps += [(section, step) for step in _PLANNERS[section](bench)]
        try:
            _walk(steps, results, console)
        finally:
            peers.stop()
    return results, time.monotonic() - started


def _short(failure: Exception) -> str:
    """The last line of what was said, fit to be kept: without places on this machine's disk."""
    lines = str(failure).strip().splitlines() or [""]
    return f"{type(failure).__name__}: {lines[-1]}".replace(str(REPOSITORY), ".")[:_SHORT_CHARACTERS]


def _walk(steps: list[tuple[str, Step]], results: Results, console: Console) -> None:
    broken: set[str] = set()
    columns = (
        SpinnerColumn(),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, refresh_per_second=2, transient=True) as progress:
        task = progress.add_task("", total=len(steps))
        for section, step in steps:
            progress.update(task, description=step.title)
            if step.cleans_up or step.group not in broken:
                try:
                    step.work()
                except Exception as failure:
                    broken.add(step.group)
                    results.failures.append(f"{section}: {step.title}: {_short(failure)}")
                    said = f"{step.title} failed, the rest of {step.group} is left out: {failure}"
                    console.print(said, style="red", markup=False, highlight=False)
            progress.advance(task)
