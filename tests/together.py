"""`python -m tests.together`: all tests, in two processes that run side by side.

Tests that run Spark wait for it much of the time, and so do the others for their brokers. They have nothing in common
but the machine. The cut is where both take about as long. What the second process says is printed when both are done.
"""

import subprocess
import sys
import tempfile

from tests.peers.paths import REPOSITORY

SECOND = (
    "tests/spark",
    "tests/pipelines",
    "tests/capture",
    "tests/compat/clients/test_spark.py",
    "tests/compat/clients/test_testing_guide_spark.py",
    "tests/compat/questions",
    "tests/compat/suites",
)


def main() -> int:
    with tempfile.TemporaryFile() as said:
        second = subprocess.Popen([*_pytest(), *SECOND], cwd=REPOSITORY, stdout=said, stderr=subprocess.STDOUT)
        try:
            others = subprocess.run([*_pytest(), *(f"--ignore={one}" for one in SECOND)], cwd=REPOSITORY)
            second.wait()
        except BaseException:
            second.terminate()
            second.wait()
            raise
        said.seek(0)
        sys.stdout.write(said.read().decode(errors="replace"))
    return others.returncode or second.returncode


def _pytest() -> list[str]:
    return [sys.executable, "-m", "pytest"]


if __name__ == "__main__":
    sys.exit(main())
