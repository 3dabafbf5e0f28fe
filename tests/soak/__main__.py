"""`python -m tests.soak`: the long forms of the tests of crashes and damage, with their results in docs/SOAK.md.

With titles behind it, only those: `python -m tests.soak Kills "Exactly once"`.
"""

import os
import random
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from tests.peers.newer_pyspark import with_newer_pyspark
from tests.peers.paths import REPOSITORY

PAGE = REPOSITORY / "docs" / "SOAK.md"
INTRODUCTION = (
    "# Soak\n\n`make soak` runs the long forms of the tests of crashes and damage. `OTTLA_SEED` repeats a run.\n"
)


@dataclass(frozen=True)
class Part:
    """Tests with a table of their own on the page. `amount` is how much they try, if they do not say so themselves."""

    title: str
    text: str
    tests: str
    amount_name: str
    amount: str
    good: str
    has_newer_pyspark: bool = False
    # Otherwise its tests run as in `make test`.
    is_long: bool = True

    @property
    def head(self) -> str:
        columns = (
            f"| date | seed | {self.amount_name} | minutes | result |\n|------|------|-------|---------|--------|\n"
        )
        return f"\n## {self.title}\n\n{self.text}\n\n{columns}"


PARTS = (
    Part(
        "Kills",
        """\
A broker is killed 50 times at random moments while an idempotent producer writes to four partitions; then every
acknowledged record must be there, once, in order, and where its acknowledgement said.""",
        "tests/compat/clients/test_crash.py",
        "kills",
        "50",
        "nothing lost",
    ),
    Part(
        "Clients",
        """\
Ottla's clients write and read while a broker of Ottla, and one of Apache Kafka, is killed, restarted and slowed, 10
times each: nothing that was acknowledged is lost, nothing comes twice, and every partition keeps its order.""",
        "tests/compat/client/faces/test_trouble.py",
        "troubles",
        "60",
        "nothing lost",
    ),
    Part(
        "Exactly once",
        """\
Jobs that read, write and commit in transactions, in Python and in Java, two at a time, are killed and started again,
and so is the broker, 30 times for each language: at `read_committed` every input comes out once, in order.""",
        "tests/compat/clients/transactions/test_exactly_once.py",
        "kills",
        "60",
        "each exactly once",
    ),
    Part(
        "Spark, exactly once",
        """\
A streaming job from topic to topic on a small Spark cluster with speculation, whose driver, executors and broker are
killed, 20 times on Ottla and on Apache Kafka, the driver also between any two steps of a commit; every restart cuts the
batches into another number of tasks: at `read_committed` every input is in the output once.""",
        "tests/spark/sink/test_kills.py",
        "kills",
        "40",
        "each exactly once",
    ),
    Part(
        "Pipelines",
        """\
Each pipeline on a small Spark cluster whose driver, executors and broker are killed, 10 times; on a standalone cluster
of two workers; on Apache Kafka; with Spark's own source. Late, duplicate and malformed events are in all of them. The
answers are those of a plain computation.""",
        "tests/pipelines/test_forms.py",
        "kills for each",
        "10",
        "the same answers",
    ),
    Part(
        "PySpark 4.2",
        "All tests of the source and the sink, those that compare with Spark's own connector too.",
        "tests/spark",
        "tests",
        "",
        "passed",
        is_long=False,
    ),
    Part(
        "PySpark 4.3",
        "The same on the newer PySpark, without the tests that need Spark's own connector: it is not published for it.",
        "tests/spark",
        "tests",
        "",
        "passed",
        has_newer_pyspark=True,
        is_long=False,
    ),
    Part(
        "Offline load",
        """\
Ten million records into the lake by ranges, killed in the middle and called again: no range is loaded twice, and the
lake has what the topic has.""",
        "tests/pipelines/ingestion/test_load.py",
        "records",
        "10000000",
        "each once",
    ),
    Part(
        "Churn",
        """\
Members of a group join, leave, hang, are killed and come back, 120 moves for each protocol: no partition has two
owners, none is left without one, no committed offset goes back.""",
        "tests/compat/clients/groups/test_churn.py",
        "moves",
        "360",
        "one owner at a time",
    ),
    Part(
        "Damage",
        """\
Every kind of damage to every kind of file of a partition, after a stop, after a kill and under a running broker, for
several codecs and kinds of topics: only what was destroyed may be missing.""",
        "tests/damage/test_partition_files.py",
        "cases",
        "",
        "only the destroyed missing",
    ),
    Part(
        "Models",
        "Log and compaction against plain lists, with a crash at any call to the disk, recovery included.",
        "tests/property/log",
        "examples",
        "1200 each",
        "no difference",
    ),
)


def main() -> int:
    console = Console()
    seed = os.environ.get("OTTLA_SEED") or str(random.SystemRandom().randrange(2**32))
    worst = 0
    known = [part.title for part in PARTS]
    wanted = sys.argv[1:] or known
    if unknown := sorted(set(wanted) - set(known)):
        console.print(f"expected some of {', '.join(known)}; got {', '.join(unknown)}", style="red")
        return 2
    for part in PARTS:
        if part.title not in wanted:
            continue
        began = time.monotonic()
        with console.status(f"{part.title.lower()}: this takes some minutes"):
            done = subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "pytest",
                    "-q",
                    "-s",
                    "-p",
                    "no:randomly",
                    f"--hypothesis-seed={seed}",
                    part.tests,
                ],
                cwd=REPOSITORY,
                env=environment_of(part, seed),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
        console.print(done.stdout, markup=False, highlight=False)
        minutes = (time.monotonic() - began) / 60
        counted = re.findall(r"(\d+) cases", done.stdout) or re.findall(r"(\d+) passed", done.stdout)
        amount = part.amount or str(sum(map(int, counted)))
        result = part.good if done.returncode == 0 else "failed"
        write_row(PAGE, part, (seed, amount, f"{minutes:.1f}", result))
        worst = max(worst, done.returncode)
    return worst


def environment_of(part: Part, seed: str) -> dict[str, str]:
    environment = {**os.environ, "OTTLA_SEED": seed}
    if part.is_long:
        environment["OTTLA_SOAK"] = "1"
    return environment | with_newer_pyspark() if part.has_newer_pyspark else environment


def write_row(page: Path, part: Part, cells: tuple[str, ...]) -> None:
    """Add one line to the table of a part; what is not there yet is begun."""
    text = page.read_text(encoding="utf-8") if page.exists() else INTRODUCTION
    if f"\n## {part.title}\n" not in text:
        text = text.rstrip("\n") + "\n" + part.head
    before, title, rest = text.partition(f"\n## {part.title}\n")
    table, *others = re.split(r"(?=\n## )", rest, maxsplit=1)
    row = " | ".join((f"{datetime.now(UTC):%Y-%m-%d %H:%M}", *cells))
    page.write_text(before + title + table.rstrip("\n") + f"\n| {row} |\n" + "".join(others), encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
