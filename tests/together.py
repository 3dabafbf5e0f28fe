"""`python -m tests.together`: all tests, in three processes that run side by side.

Tests that run Spark wait for it much of the time, those beside Apache Kafka wait for both brokers, and the others
compute. They have nothing in common but the machine. Spark's take the longest. What the first process says is printed
as it comes, what the others say when all are done.
"""

import subprocess
import sys
import tempfile
from contextlib import ExitStack

from tests.peers.paths import REPOSITORY

_SPARK = (
    "tests/spark",
    "tests/pipelines",
    "tests/capture",
    "tests/compat/clients/test_spark.py",
    "tests/compat/clients/test_testing_guide_spark.py",
    "tests/compat/questions",
    "tests/compat/suites",
)
_BROKERS = ("tests/compat",)


def _parts() -> list[list[str]]:
    """The arguments of each process; what is named by none of them is the first one's."""
    return [
        ["tests", *_without(_SPARK, _BROKERS)],
        [*_BROKERS, *_without(_SPARK)],
        [*_SPARK],
    ]


def _without(*parts: tuple[str, ...]) -> list[str]:
    return [f"--ignore={path}" for paths in parts for path in paths]


def main() -> int:
    first, *others = [[sys.executable, "-m", "pytest", *arguments] for arguments in _parts()]
    with ExitStack() as stack:
        said = [stack.enter_context(tempfile.TemporaryFile()) for _ in others]
        running = [
            subprocess.Popen(command, cwd=REPOSITORY, stdout=output, stderr=subprocess.STDOUT)
            for command, output in zip(others, said, strict=True)
        ]
        try:
            codes = [subprocess.run(first, cwd=REPOSITORY).returncode]
            codes += [process.wait() for process in running]
        except BaseException:
            for process in running:
                process.terminate()
                process.wait()
            raise
        for output in said:
            output.seek(0)
            sys.stdout.write(output.read().decode(errors="replace"))
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main())
