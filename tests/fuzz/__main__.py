"""`python -m tests.fuzz`: guided search and attack side by side for FUZZ_SECONDS; the result goes into docs/FUZZ.md."""

import argparse
import os
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.table import Table
from tests.fuzz.attack import Counts
from tests.fuzz.campaign import MEBIBYTE, Outcome, new_seed, run_campaign
from tests.fuzz.guided_process import GuidedProcess, Report
from tests.fuzz.page import add_results
from tests.fuzz.replays import Replays
from tests.peers.paths import REPOSITORY

PAGE = REPOSITORY / "docs" / "FUZZ.md"
WORK = REPOSITORY / "build" / "fuzz"
HELLO_PATIENCE_SECONDS = 60.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz the broker.")
    parser.add_argument("--seed", type=int, default=None, help="draw what an earlier run drew")
    parser.add_argument(
        "--seconds", type=float, default=float(os.environ.get("FUZZ_SECONDS") or 600), help="FUZZ_SECONDS, or 600"
    )
    parser.add_argument("--work", type=Path, default=WORK, help="where the corpus and the findings are")
    parser.add_argument("--dry", action="store_true", help="leave docs/FUZZ.md as it is")
    wanted = parser.parse_args()
    seed = new_seed() if wanted.seed is None else int(wanted.seed)
    console = Console()
    console.print(f"seed {seed}, {wanted.seconds:.0f} s; corpus and findings are in {wanted.work}")
    options = {
        "--seed": str(seed),
        "--seconds": str(wanted.seconds),
        "--corpus": str(wanted.work / "corpus"),
        "--findings": str(wanted.work / "findings"),
    }
    guided = GuidedProcess([part for option in options.items() for part in option])
    try:
        outcome, report = run(console, guided, seed, wanted.seconds, wanted.work)
    finally:
        if guided.running:
            guided.kill()
    problems = len(outcome.problems) + len(report.findings)
    if not wanted.dry:
        add_results(PAGE, datetime.now(UTC), outcome, report, problems)
    tell(console, outcome, report, wanted.work)
    return 1 if problems else 0


def run(console: Console, guided: GuidedProcess, seed: int, seconds: float, work: Path) -> tuple[Outcome, Report]:
    deadline = time.monotonic() + HELLO_PATIENCE_SECONDS
    while not guided.report.topic_ids and guided.running and time.monotonic() < deadline:
        time.sleep(0.05)
    replays = Replays(work / "corpus", guided.report.topic_ids)
    with tempfile.TemporaryDirectory(prefix="ottla-fuzz-") as directory, Live(console=console) as live:

        def progress(elapsed: float, counts: Counts, memory_bytes: int) -> None:
            live.update(_table(elapsed, seconds, counts, memory_bytes, guided.report))

        outcome = run_campaign(Path(directory), seed, seconds, progress, replays)
        return outcome, guided.finish()


def _table(elapsed: float, seconds: float, counts: Counts, memory_bytes: int, report: Report) -> Table:
    table = Table(
        title=f"{elapsed:.0f} of {seconds:.0f} s; {counts.requests:,} requests to the broker on "
        f"{counts.connections:,} connections, its memory {memory_bytes / MEBIBYTE:.0f} MiB"
    )
    for name in ("target", "executions", "a second", "edges", "corpus", "findings"):
        table.add_column(name, justify="left" if name == "target" else "right")
    for name, state in list(report.states.items()):
        cells = (f"{state[key]:,}" for key in ("edges", "corpus", "findings"))
        table.add_row(name, f"{state['executions']:,}", f"{state['executions'] / max(elapsed, 1):,.0f}", *cells)
    return table


def tell(console: Console, outcome: Outcome, report: Report, work: Path) -> None:
    for problem in outcome.problems:
        console.print(problem, markup=False, style="red")
    for found in report.findings:
        console.print(f"{found['target']}: {found['kind']}: {found['path']}", markup=False, style="red")
    median, p99, worst = outcome.latency_seconds
    console.print(
        f"{report.total('executions'):,} guided executions; {outcome.counts.requests:,} requests, "
        f"{outcome.replayed:,} connections replayed from the corpus; broker's memory "
        f"{outcome.memory_before_bytes / MEBIBYTE:.0f} to {outcome.memory_after_bytes / MEBIBYTE:.0f} MiB; "
        f"{outcome.served:,} records of others served, acknowledged in {median * 1000:.1f} ms (median), "
        f"{p99 * 1000:.0f} ms (99 %), {worst * 1000:.0f} ms (worst); "
        f"{outcome.late} times the controller was too busy to create topics"
    )
    is_good = not outcome.problems and not report.findings
    console.print("nothing found" if is_good else f"FAILED; findings are in {work / 'findings'}")


if __name__ == "__main__":
    raise SystemExit(main())
