"""`python -m tests.fuzz`: fuzz a broker for FUZZ_SECONDS and write the result into docs/FUZZ.md."""

import argparse
import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from tests.fuzz.attack import Counts
from tests.fuzz.campaign import MEBIBYTE, Outcome, new_seed, run_campaign
from tests.peers.paths import REPOSITORY

PAGE = REPOSITORY / "docs" / "FUZZ.md"
HEAD = """\
# Fuzzing

`make fuzz` starts a broker and sends it random and mutated requests of every API and version (flipped bits, cut and
spliced frames, hostile lengths, half-closed and broken connections) while another client produces, consumes and checks
its records. A run fails when the broker dies or hangs, when the other client notices anything, when a handler fails
in a way that nobody foresaw, or when memory grows by more than 64 MiB.
`FUZZ_SECONDS=60 .venv/bin/python -m tests.fuzz --seed 1` repeats the requests of a run.

| date | seed | seconds | requests | connections | closed by the broker | memory before | memory after | result |
|------|------|---------|----------|-------------|----------------------|---------------|--------------|--------|
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz a running broker.")
    parser.add_argument("--seed", type=int, default=None, help="repeat the requests of an earlier run")
    parser.add_argument(
        "--seconds", type=float, default=float(os.environ.get("FUZZ_SECONDS") or 600), help="FUZZ_SECONDS, or 600"
    )
    arguments = parser.parse_args()
    seed = new_seed() if arguments.seed is None else int(arguments.seed)
    console = Console()
    console.print(f"seed {seed}, {arguments.seconds:.0f} s")
    with tempfile.TemporaryDirectory(prefix="ottla-fuzz-") as directory:
        outcome = run_with_bar(console, Path(directory), seed, arguments.seconds)
    write_row(outcome, PAGE)
    for problem in outcome.problems:
        console.print(problem, markup=False, style="red")
    counts = outcome.counts
    console.print(
        f"{counts.requests:,} requests on {counts.connections:,} connections, "
        f"{counts.closed_by_broker:,} closed by the broker; "
        f"memory {outcome.memory_before_bytes / MEBIBYTE:.0f} MiB before, "
        f"{outcome.memory_after_bytes / MEBIBYTE:.0f} MiB after: {'FAILED' if outcome.problems else 'nothing found'}"
    )
    return 1 if outcome.problems else 0


def run_with_bar(console: Console, directory: Path, seed: int, seconds: float) -> Outcome:
    columns = (
        TextColumn("fuzzing"),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[requests]:,} requests, {task.fields[memory]:.0f} MiB"),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("fuzzing", total=seconds, requests=0, memory=0.0)

        def progress(elapsed: float, counts: Counts, memory_bytes: int) -> None:
            bar.update(task, completed=elapsed, requests=counts.requests, memory=memory_bytes / MEBIBYTE)

        return run_campaign(directory, seed, seconds, progress)


def write_row(outcome: Outcome, page: Path) -> None:
    """Add one line to the table; the page is begun when there is none."""
    counts = outcome.counts
    cells = (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
        str(outcome.seed),
        f"{outcome.seconds:.0f}",
        f"{counts.requests:,}",
        f"{counts.connections:,}",
        f"{counts.closed_by_broker:,}",
        f"{outcome.memory_before_bytes / MEBIBYTE:.0f} MiB",
        f"{outcome.memory_after_bytes / MEBIBYTE:.0f} MiB",
        "failed" if outcome.problems else "nothing found",
    )
    text = page.read_text(encoding="utf-8") if page.exists() else HEAD
    page.write_text(f"{text}| {' | '.join(cells)} |\n", encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
