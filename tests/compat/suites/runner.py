"""One suite on one broker of the wanted kind, and two such runs side by side."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from tests.compat.suites.kafka_python import KafkaPythonSuite
from tests.compat.suites.left_out import reasons, served_apis
from tests.compat.suites.suite import Outcome, Result, Run, Suite, run_with_repeat
from tests.conftest import start_broker
from tests.peers.ports import free_port

SUITES: dict[str, type[Suite]] = {KafkaPythonSuite.name: KafkaPythonSuite}


def run_suite(suite: Suite, target: str, directory: Path) -> Run:
    """The whole suite on a fresh broker; tests that are left out have their reason as the note."""
    names = suite.names()
    directory.mkdir(parents=True, exist_ok=True)
    port = free_port()
    broker = start_broker(target, directory / "broker", port, suite.broker_properties(port))
    try:
        left_out = reasons(names, suite.left_out(), served_apis(port))
        began = time.monotonic()
        chosen = [name for name in names if name not in left_out]
        outcomes, output = run_with_repeat(suite, broker, chosen, directory)
        seconds = time.monotonic() - began
    finally:
        broker.kill()
    outcomes |= {name: Outcome(Result.LEFT_OUT, why) for name, why in left_out.items()}
    return Run({name: outcomes[name] for name in names}, seconds, output)


@dataclass(frozen=True)
class Comparison:
    suite: Suite
    ottla: Run
    kafka: Run

    def worse(self) -> list[str]:
        """Tests that pass on Apache Kafka and were run on Ottla, and did not pass there."""
        return [
            name
            for name, outcome in self.ottla.outcomes.items()
            if outcome.result in (Result.FAILED, Result.SKIPPED) and self.kafka.outcomes[name].result is Result.PASSED
        ]


def compare(suite: Suite, directory: Path) -> Comparison:
    return Comparison(
        suite, run_suite(suite, "ottla", directory / "ottla"), run_suite(suite, "kafka", directory / "kafka")
    )
