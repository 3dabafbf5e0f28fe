"""Every guided target, for a fixed number of executions from a fixed seed, with all inputs that are kept."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fuzz.corpus_files import KEPT, FoundInputs, kept_inputs
from tests.fuzz.guided_process import GuidedProcess, Report
from tests.fuzz.targets.registry import TARGETS
from tests.peers.paths import REPOSITORY

EXECUTIONS = 150
LARGEST_CORPUS_BYTES = 100_000


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    corpus = tmp_path_factory.mktemp("corpus")
    report = GuidedProcess(["--executions", str(EXECUTIONS), "--corpus", str(corpus)]).finish()
    report.noise.append(str(corpus))
    return report


def test_nothing_is_found_from_the_kept_inputs_on(report: Report) -> None:
    assert not report.findings, report.findings[0]["report"]
    assert list(report.states) == list(TARGETS)
    for state in report.states.values():
        assert state["executions"] >= EXECUTIONS
        assert state["corpus"] > 3
        assert state["edges"] > 25


def test_the_broker_is_reached_deeply(report: Report) -> None:
    """The figure is what this seed reaches, rounded down a good deal."""
    assert report.states["broker"]["edges"] > 3500
    assert report.topic_ids


def test_what_is_found_is_kept_for_later(report: Report) -> None:
    corpus = Path(report.noise[-1])
    assert len(FoundInputs(corpus, "broker").news()) == report.states["broker"]["corpus"]


def test_the_same_seed_reaches_the_same(report: Report) -> None:
    again = GuidedProcess(["--executions", str(EXECUTIONS), "--targets", "broker"]).finish()
    assert again.states["broker"]["digest"] == report.states["broker"]["digest"]


def test_kept_inputs_are_small_and_belong_to_targets() -> None:
    assert {path.stem for path in KEPT.iterdir()} <= set(TARGETS)
    assert sum(path.stat().st_size for path in KEPT.iterdir()) < LARGEST_CORPUS_BYTES
    for name in TARGETS:
        assert all(isinstance(data, bytes) for data in kept_inputs(name))


def test_a_fault_planted_in_a_handler_is_found() -> None:
    """By the traceback that the broker logs; the search has to guess two fields of one request for it."""
    path = os.pathsep.join((str(REPOSITORY / "src"), str(REPOSITORY)))
    output = subprocess.run(
        [sys.executable, "-m", "tests.unit.fuzz.planted_handler", "1500"],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    executions, _, rest = output.partition(" ")
    assert "RuntimeError in <doctored>:handle" in rest
    assert int(executions) < 1500
