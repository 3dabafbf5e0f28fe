"""The search finds what dice alone would not: a fault behind a magic number, behind other conditions."""

import random
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any

from tests.fuzz.corpus_files import read_inputs
from tests.fuzz.guided import Entry, Search
from tests.fuzz.instrument import Coverage, instrumented
from tests.fuzz.target import PlainTarget

EXECUTIONS = 20_000
SEED = bytes(12)
DOCTORED = """
import struct

def parse(data):
    if len(data) < 12:
        return "short"
    kind, count, word = struct.unpack_from(">BHI", data)
    if kind == 7:
        if count > 300:
            if word == 0x0BADCAFE:
                raise RuntimeError("planted")
            return "large"
        return "small"
    return "unknown"
"""


class Planted(PlainTarget):
    name = "planted"

    def __init__(self, coverage: Coverage) -> None:
        scope: dict[str, Any] = coverage.namespace()
        exec(compile(instrumented(DOCTORED, "doctored.py", coverage, "doctored"), "doctored.py", "exec"), scope)
        self._parse = scope["parse"]

    def run(self, data: bytes) -> Iterable[Hashable]:
        self._parse(data)
        return ()


class Unguided(Search):
    """The same mutations of what it began with, whatever they reach."""

    def execute(self, data: bytes) -> None:
        super().execute(data)
        self._queue.clear()
        self.corpus[:] = [Entry(SEED)]


def search(kind: type[Search], executions: int) -> Search:
    coverage = Coverage()
    found = kind(Planted(coverage), coverage, random.Random(1))
    found.begin([SEED])
    while found.executions < executions and not found.found:
        found.step()
    return found


def test_a_planted_fault_is_found_with_guidance_and_not_without() -> None:
    guided = search(Search, EXECUTIONS)
    (found,) = guided.found.values()
    assert "RuntimeError in doctored.py:parse" in found.kind
    (data,) = found.inputs
    assert data[:1] == b"\x07"
    assert data[3:7] == bytes.fromhex("0badcafe")
    assert len(data) == 12, "what does not matter is left out"
    assert not search(Unguided, EXECUTIONS).found


def test_the_same_seed_finds_the_same_way() -> None:
    first, second = search(Search, 2000), search(Search, 2000)
    assert [entry.data for entry in first.corpus] == [entry.data for entry in second.corpus]
    assert first.executions == second.executions


def test_a_finding_is_saved_as_text_that_can_be_read_again(tmp_path: Path) -> None:
    (found,) = search(Search, EXECUTIONS).found.values()
    path = found.save(tmp_path)
    assert read_inputs(path) == found.inputs
    assert "planted" in path.read_text()


class Remembering(PlainTarget):
    """Fails when it is told to stop after it was told to start, with any number of other things in between."""

    name = "remembering"

    def __init__(self) -> None:
        self._inputs: list[bytes] = []

    def run(self, data: bytes) -> Iterable[Hashable]:
        if data.startswith(b"stop") and any(b"start" in earlier for earlier in self._inputs):
            raise RuntimeError("stopped")
        self._inputs.append(data)
        return ()

    def history(self) -> list[bytes]:
        return list(self._inputs)

    def forget(self) -> None:
        self._inputs = []


def test_a_finding_that_needs_earlier_inputs_is_saved_with_them_and_no_others() -> None:
    coverage = Coverage()
    found = Search(Remembering(), coverage, random.Random(1))
    for data in (b"one", b"a start", b"two", b"three", b"stop it"):
        found.execute(data)
    (finding,) = found.found.values()
    assert finding.inputs == [b"start", b"stop"]
