"""A client library's own test suite, run in a process of its own against a broker that runs already.

A suite in any language fits: it lists the names of its tests, runs the named ones, and reports one outcome for each.
Which of them a broker is not asked yet is written down beside the suite (`left_out.py`), with a reason each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import ClassVar
from xml.etree import ElementTree

from tests.compat.suites.left_out import LeftOut, read_left_out
from tests.peers.process import ServerProcess


class Result(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped by the suite"
    LEFT_OUT = "left out"


@dataclass(frozen=True)
class Outcome:
    """What became of one test; `note` says why it did not pass, or that it passed only when it was repeated."""

    result: Result
    note: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Run:
    """One suite on one broker: an outcome for every test of the suite, in the suite's own order."""

    outcomes: Mapping[str, Outcome]
    seconds: float
    output: str = field(default="", repr=False)

    def count(self, result: Result) -> int:
        return sum(outcome.result is result for outcome in self.outcomes.values())


class SuiteFailed(RuntimeError):
    """The suite itself did not work: nothing can be said about the broker."""


class Suite(ABC):
    name: ClassVar[str]
    version: ClassVar[str]
    language: ClassVar[str]
    left_out_path: ClassVar[Path]
    """A TOML file; see `left_out.py`."""

    @abstractmethod
    def broker_properties(self, port: int) -> dict[str, str]:
        """What the suite expects of the broker it is given, the same for every kind of broker."""

    @abstractmethod
    def names(self) -> list[str]:
        """Every test of the suite. PeerMissing when the suite is not on this machine."""

    @abstractmethod
    def run(self, broker: ServerProcess, names: Sequence[str], directory: Path) -> tuple[dict[str, Outcome], str]:
        """Run the named tests; the outcome of each that was run, and what the suite printed."""

    def left_out(self) -> list[LeftOut]:
        return read_left_out(self.left_out_path)


def run_with_repeat(
    suite: Suite, broker: ServerProcess, names: Sequence[str], directory: Path
) -> tuple[dict[str, Outcome], str]:
    """Run the tests, and those that failed once more.

    The suites of others have limits of wall-clock time (an acknowledgement within a second) that a busy machine misses.
    A test that needed the second run says so in its note.
    """
    outcomes, output = suite.run(broker, names, directory)
    if missing := [name for name in names if name not in outcomes]:
        raise SuiteFailed(f"{suite.name} said nothing about {', '.join(missing[:5])}:\n{output[-4000:]}")
    failed = [name for name in names if outcomes[name].result is Result.FAILED]
    if failed:
        again, more = suite.run(broker, failed, directory)
        output += more
        for name in failed:
            second = again.get(name, outcomes[name])
            passed = second.result is Result.PASSED
            outcomes[name] = replace(second, note="passed when it was repeated") if passed else second
    return outcomes, output


def read_junit(path: Path) -> dict[tuple[str, str], Outcome]:
    """Outcomes by class name and name, from the report format that test runners of most languages write."""
    outcomes: dict[tuple[str, str], Outcome] = {}
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        key = (case.get("classname", ""), case.get("name", ""))
        seconds = float(case.get("time", "0"))
        problem = next((found for kind in ("failure", "error") if (found := case.find(kind)) is not None), None)
        skipped = case.find("skipped")
        if problem is not None:
            outcomes[key] = Outcome(Result.FAILED, _first_line(problem.get("message", "")), seconds)
        elif skipped is not None:
            outcomes.setdefault(key, Outcome(Result.SKIPPED, _first_line(skipped.get("message", "")), seconds))
        else:
            outcomes.setdefault(key, Outcome(Result.PASSED, "", seconds))
    return outcomes


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:200]
