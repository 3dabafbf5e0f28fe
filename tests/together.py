"""`python -m tests.together`: the checks and all tests, as jobs that run side by side.

Tests that run Spark wait for it much of the time, those beside Apache Kafka wait for both brokers, and the others
compute. They have nothing in common but the machine. One job more than there are processors runs at any time; the
longest begin first, so that all of them end at about the same time. What a job has printed follows when it is done,
and at the end come the slowest tests of all jobs.

The first and the last line name the seed of the run: the order of the tests, and what they draw. `OTTLA_SEED` repeats
one.
"""

import asyncio
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from tests.peers.newer_pyspark import with_newer_pyspark
from tests.peers.paths import REPOSITORY

SLOWEST = 20


@dataclass(frozen=True)
class Job:
    """One process of pytest: the tests at some paths, without those that another job has below them."""

    name: str
    paths: tuple[str, ...]
    # Tests of other jobs once more, with another PySpark.
    has_newer_pyspark: bool = False

    def arguments(self, jobs: Iterable["Job"]) -> list[str]:
        others = (path for job in jobs if job is not self and not job.has_newer_pyspark for path in job.paths)
        below = [path for path in others if any(path.startswith(f"{own}/") for own in self.paths)]
        return [*self.paths, *(f"--ignore={path}" for path in below)]


# The checks have the tidy test. What no other job has is in the last one.
CHECKS = Job("checks", ("tests/unit/test_tidy.py",))
JOBS = (
    Job("Spark", ("tests/spark", "tests/pipelines")),
    Job("client libraries", ("tests/compat/clients",)),
    Job(
        "Spark in processes of its own",
        (
            "tests/spark/sink/test_kills.py",
            "tests/spark/test_cluster.py",
            "tests/spark/test_connect.py",
            "tests/pipelines/test_forms.py",
            "tests/compat/clients/test_spark.py",
            "tests/compat/clients/test_testing_guide_spark.py",
        ),
    ),
    Job(
        "Spark 4.3",
        (
            "tests/spark/source/test_registration.py",
            "tests/spark/source/test_stream.py",
            "tests/spark/sink/test_stream.py",
            "tests/pipelines/taxi/test_gettaxi.py",
        ),
        has_newer_pyspark=True,
    ),
    Job("Ottla's client beside Apache Kafka", ("tests/compat/client",)),
    CHECKS,
    Job("broker and command", ("tests/unit/broker", "tests/unit/cli", "tests/unit/testing")),
    Job("client", ("tests/unit/client", "tests/property")),
    Job("questions and suites", ("tests/compat/questions", "tests/compat/suites")),
    Job("Apache Kafka's classes", ("tests/compat",)),
    Job("capture and damage", ("tests/capture", "tests/damage")),
    Job("the others", ("tests",)),
)


@dataclass(frozen=True)
class Result:
    job: Job
    code: int
    seconds: float
    printed: str


def command(job: Job, report: Path, seed: str) -> list[str]:
    if job is CHECKS:
        return ["make", "--silent", "--no-print-directory", "check"]
    options = ["-q", f"--randomly-seed={seed}", f"--junitxml={report}"]
    return [sys.executable, "-m", "pytest", *options, *job.arguments(JOBS)]


async def run(job: Job, report: Path, seed: str) -> Result:
    began = time.monotonic()
    # A make that runs this one has flags for its own children.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    environment["OTTLA_SEED"] = seed
    if job.has_newer_pyspark:
        environment |= with_newer_pyspark()
    with tempfile.TemporaryFile() as printed:
        process = await asyncio.create_subprocess_exec(
            *command(job, report, seed),
            cwd=REPOSITORY,
            env=environment,
            stdout=printed,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            code = await process.wait()
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()
        printed.seek(0)
        return Result(job, code, time.monotonic() - began, printed.read().decode(errors="replace"))


async def run_all(jobs: Sequence[Job], at_once: int, reports: Path, seed: str) -> list[Result]:
    """The results in the order in which the jobs ended."""
    results: list[Result] = []
    places = asyncio.Semaphore(at_once)

    async def run_next(number: int, job: Job) -> None:
        async with places:
            say(f"=== {job.name}: begun")
            result = await run(job, reports / f"{number}.xml", seed)
        results.append(result)
        say(f"\n=== {job.name}: {'done' if result.code == 0 else 'FAILED'} after {result.seconds:.0f} s")
        say(result.printed)

    async with asyncio.TaskGroup() as group:
        for number, job in enumerate(jobs):
            group.create_task(run_next(number, job))
    return results


def slowest(reports: Path, count: int) -> list[tuple[float, str]]:
    """Seconds and names of the slowest tests, with what they had set up, from the reports of all jobs."""
    times = [
        (float(case.get("time", "0")), f"{case.get('classname')}::{case.get('name')}")
        for report in reports.glob("*.xml")
        for case in ElementTree.parse(report).getroot().iter("testcase")
    ]
    return sorted(times, reverse=True)[:count]


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    began = time.monotonic()
    seed = os.environ.get("OTTLA_SEED") or str(random.SystemRandom().randrange(2**32))
    say(f"=== OTTLA_SEED={seed}")
    with tempfile.TemporaryDirectory() as directory:
        results = asyncio.run(run_all(JOBS, (os.cpu_count() or 1) + 1, Path(directory), seed))
        say(f"=== the {SLOWEST} slowest tests")
        for seconds, name in slowest(Path(directory), SLOWEST):
            say(f"{seconds:7.1f} s  {name}")
    failed = [result for result in results if result.code]
    say(f"=== {(time.monotonic() - began) / 60:.1f} minutes, of which:")
    for result in results:
        say(f"{result.seconds:7.1f} s  {result.job.name}{': FAILED' if result.code else ''}")
    say(f"=== OTTLA_SEED={seed} make test runs them in this order again")
    return next((result.code for result in failed), 0)


if __name__ == "__main__":
    sys.exit(main())
