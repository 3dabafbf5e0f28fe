"""`python -m tests.compat.suites [suite ...]`: client libraries' own suites on Ottla and on Apache Kafka.

Writes docs/CLIENT_SUITES.md when all suites were run; ends with 1 when a test passes on Kafka and not on Ottla.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from tests.compat.suites.page import render
from tests.compat.suites.runner import SUITES, Comparison, compare
from tests.compat.suites.suite import Result
from tests.peers.paths import REPOSITORY

PAGE = REPOSITORY / "docs" / "CLIENT_SUITES.md"


def _tell(console: Console, comparison: Comparison) -> None:
    for where, run in (("Apache Kafka", comparison.kafka), ("Ottla", comparison.ottla)):
        counts = ", ".join(f"{run.count(result)} {result}" for result in Result if run.count(result))
        console.print(f"{comparison.suite.name} on {where}: {counts}, {run.seconds:.0f} s")
    worse = comparison.worse()
    for name in worse:
        console.print(f"passes on Apache Kafka only: {name}: {comparison.ottla.outcomes[name].note}", style="bold red")
    if worse:
        console.print(comparison.ottla.output, markup=False, highlight=False)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.compat.suites")
    parser.add_argument("suite", nargs="*", help=f"{', '.join(SUITES)}; all of them unless named")
    chosen: list[str] = parser.parse_args(arguments).suite or list(SUITES)
    if unknown := [name for name in chosen if name not in SUITES]:
        parser.error(f"unknown suite {', '.join(unknown)}: expected {', '.join(SUITES)}")
    console = Console()
    comparisons: list[Comparison] = []
    with tempfile.TemporaryDirectory() as directory:
        for name in chosen:
            with console.status(f"running the suite of {name} on Ottla, then on Apache Kafka"):
                comparisons.append(compare(SUITES[name](), Path(directory) / name))
            _tell(console, comparisons[-1])
    if set(chosen) == set(SUITES):
        PAGE.write_text(render(comparisons, datetime.now(UTC).date()))
    return 1 if any(comparison.worse() for comparison in comparisons) else 0


if __name__ == "__main__":
    sys.exit(main())
