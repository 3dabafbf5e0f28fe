"""kafka-python's own integration tests, with the library they were published with."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.compat.suites.suite import Outcome, Suite, SuiteFailed, read_junit
from tests.peers.paths import KAFKA_PYTHON_SUITE, KAFKA_PYTHON_VERSION, KAFKA_VERSION, PeerMissing
from tests.peers.ports import LOOPBACK
from tests.peers.process import ServerProcess

_FOLDER = "test/integration"
_TEST_TIMEOUT_SECONDS = 40
_RUN_TIMEOUT_SECONDS = 600


class KafkaPythonSuite(Suite):
    """Names are pytest's, below the folder of the integration tests."""

    name = "kafka-python"
    version = KAFKA_PYTHON_VERSION
    language = "Python"
    left_out_path = Path(__file__).with_name("kafka_python.toml")

    def broker_properties(self, port: int) -> dict[str, str]:
        """New partitions are assigned to node 0, and topics that a test creates by using them have four.

        Groups do not wait for more members at first: the suite has its own limits of time.
        """
        return {
            "node.id": "0",
            "num.partitions": "4",
            "group.initial.rebalance.delay.ms": "0",
            "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{port}",
        }

    def names(self) -> list[str]:
        if not KAFKA_PYTHON_SUITE.exists():
            raise PeerMissing("the suite is missing: run `python -m tests.peers.install kafka-python-suite`")
        done = self._pytest(["--collect-only", "-q", _FOLDER], {})
        found = re.findall(rf"^{_FOLDER}/(\S+::.+)$", done.stdout, re.MULTILINE)
        if done.returncode != 0 or not found:
            raise SuiteFailed(f"the tests of {self.name} cannot be listed:\n{done.stdout[-4000:]}{done.stderr[-2000:]}")
        return found

    def run(self, broker: ServerProcess, names: Sequence[str], directory: Path) -> tuple[dict[str, Outcome], str]:
        report = directory / "junit.xml"
        report.unlink(missing_ok=True)
        limits = [f"--timeout={_TEST_TIMEOUT_SECONDS}", "--timeout-method=signal"]
        show = ["--tb=short", "--show-capture=no", "-q", f"--junit-xml={report}"]
        chosen = [f"{_FOLDER}/{name}" for name in names]
        done = self._pytest([*limits, *show, *chosen], {"KAFKA_URI": f"kafka://{broker.bootstrap}"})
        if not report.exists():
            raise SuiteFailed(f"{self.name} wrote no report:\n{done.stdout[-4000:]}{done.stderr[-2000:]}")
        reported = read_junit(report)
        outcomes = {name: reported[key] for name in names if (key := _junit_key(name)) in reported}
        return outcomes, done.stdout

    def _pytest(self, arguments: Sequence[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        """pytest in the suite's folder, whose library is found first, without the settings of this repository."""
        plain = ["-c", os.devnull, "--rootdir", str(KAFKA_PYTHON_SUITE)]
        plugins = ["no:randomly", "no:cacheprovider", "no:ottla.testing.plugin", "no:hypothesispytest"]
        switched_off = [part for plugin in plugins for part in ("-p", plugin)]
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "PYTHONPATH"))}
        return subprocess.run(
            [sys.executable, "-m", "pytest", *plain, *switched_off, *arguments],
            cwd=KAFKA_PYTHON_SUITE,
            env=inherited
            | {
                "KAFKA_VERSION": KAFKA_VERSION,
                # Where a broker would be, if the suite had to start one; it only wants the folder to be there.
                "KAFKA_ROOT": str(KAFKA_PYTHON_SUITE),
                "PYTHONDONTWRITEBYTECODE": "1",
                "PYTHONWARNINGS": "ignore",
            }
            | environment,
            capture_output=True,
            text=True,
            timeout=_RUN_TIMEOUT_SECONDS,
            check=False,
        )


def _junit_key(name: str) -> tuple[str, str]:
    """How pytest's report calls a test: modules and classes with dots, then the name."""
    file, *classes, test = name.split("::")
    return ".".join([_FOLDER.replace("/", "."), file.removesuffix(".py"), *classes]), test
