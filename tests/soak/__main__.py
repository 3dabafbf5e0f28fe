"""`python -m tests.soak`: the long form of the crash test, with its result written into docs/SOAK.md."""

import os
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from tests.peers.paths import REPOSITORY

PAGE = REPOSITORY / "docs" / "SOAK.md"
CRASH_TEST = "tests/compat/clients/test_crash.py"
HEAD = """\
# Soak

`make soak` kills a broker 50 times at random moments while an idempotent producer writes to four partitions, and then
checks that every acknowledged record is there, once, in order, and where its acknowledgement said. `OTTLA_SEED` repeats
the moments of a run.

| date | seed | kills | minutes | result |
|------|------|-------|---------|--------|
"""


def main() -> int:
    console = Console()
    began = time.monotonic()
    with console.status("killing and restarting a broker; this takes some minutes"):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:randomly", CRASH_TEST],
            cwd=REPOSITORY,
            env={**os.environ, "OTTLA_SOAK": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    console.print(done.stdout, markup=False, highlight=False)
    minutes = (time.monotonic() - began) / 60
    write_row(PAGE, done.stdout, minutes, passed=done.returncode == 0)
    return done.returncode


def write_row(page: Path, output: str, minutes: float, *, passed: bool) -> None:
    """Add one line to the table; the page is begun when there is none."""
    seed = re.search(r"OTTLA_SEED=(\d+)", output)
    cells = (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
        seed[1] if seed else "unknown",
        "50",
        f"{minutes:.1f}",
        "nothing lost" if passed else "failed",
    )
    text = page.read_text(encoding="utf-8") if page.exists() else HEAD
    page.write_text(f"{text}| {' | '.join(cells)} |\n", encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
