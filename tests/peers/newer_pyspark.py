"""A PySpark beside that of the environment, for tests that run in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.peers.paths import NEWER_PYSPARK, NEWER_PYSPARK_VERSION, REPOSITORY, PeerMissing


def install_newer_pyspark() -> bool:
    """Whether there was something to do. The stamp is written last: what was cut off is done again."""
    stamp = NEWER_PYSPARK.parent / "installed"
    if stamp.exists() and stamp.read_text() == NEWER_PYSPARK_VERSION:
        return False
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input", "--no-compile", "--upgrade"]
    wanted = f"pyspark=={NEWER_PYSPARK_VERSION}"
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *quiet, "--target", NEWER_PYSPARK, wanted],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise PeerMissing(f"pip could not install PySpark {NEWER_PYSPARK_VERSION}: {done.stderr[-2000:]}")
    stamp.write_text(NEWER_PYSPARK_VERSION)
    return True


def with_newer_pyspark() -> dict[str, str]:
    """What to add to the environment of a process that shall import it."""
    path = (NEWER_PYSPARK, REPOSITORY / "src", REPOSITORY, os.environ.get("PYTHONPATH", ""))
    return {"PYTHONPATH": os.pathsep.join(str(one) for one in path if str(one))}
