"""Run a job: a process of its own, with a specification as JSON on its input and figures as JSON on its output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

from tests.peers.paths import REPOSITORY

_TIMEOUT_SECONDS = 300.0

Specification = Mapping[str, Any]
Figures = dict[str, Any]


class JobError(RuntimeError):
    """The job ended with an error; carries what it said."""


def run_job(name: str, specification: Specification, timeout_seconds: float = _TIMEOUT_SECONDS) -> Figures:
    """Run `bench.jobs.<name>` to its end and answer its figures."""
    done = subprocess.run(
        [sys.executable, "-m", f"bench.jobs.{name}"],
        input=json.dumps(specification).encode(),
        capture_output=True,
        check=False,
        cwd=REPOSITORY,
        env=job_environment(),
        timeout=timeout_seconds,
    )
    if done.returncode != 0:
        raise JobError(f"the job {name} ended with code {done.returncode}:\n{done.stderr.decode(errors='replace')}")
    figures: Figures = json.loads(done.stdout)
    return figures


def job_environment() -> dict[str, str]:
    """The sources of this tree come first, whether or not the package is installed. What is compiled of them is kept,
    as it is of an installed package: Spark starts Python processes, and none is measured that compiles its modules."""
    path = os.pathsep.join(part for part in (str(REPOSITORY / "src"), os.environ.get("PYTHONPATH", "")) if part)
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**inherited, "PYTHONPATH": path}


def job_main(work: Callable[[Specification], Figures]) -> None:
    """The other end: what a job module calls when it is run."""
    figures = work(json.load(sys.stdin))
    sys.stdout.write(json.dumps(figures))
