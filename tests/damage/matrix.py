"""The matrix: what is done to which file of a partition at which moment, and what must still be true afterwards.

Every case has a partition of its own in one broker, so that one start tries all of them, and each is a neighbour of all
the others.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.damage.harm import HARMS
from tests.damage.scene import BESIDE, ELSEWHERE, HURT, Found, Kind, Refused, Scene, dice_for, template
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.records import scan_headers

CLEAN, KILLED, KILLED_UNFLUSHED, RUNNING = "after a stop", "after a kill", "after a kill, unflushed", "while running"
MOMENTS = (CLEAN, KILLED, KILLED_UNFLUSHED, RUNNING)
BASE_OFFSET_BYTES = 8
# A file that shrinks under a running broker breaks the answers that are sent from it, here as in Kafka.
HARMS_OF_RECORDS_WHILE_RUNNING = ("flipped bit", "overwritten", "garbage added", "zeros added")
PATIENCE_ROUNDS = 200_000


def _sorted(directory: Path, pattern: str) -> list[Path]:
    return sorted(directory.glob(pattern))


FILES: dict[str, Callable[[Path], Path]] = {
    "oldest .log": lambda place: _sorted(place, "*.log")[0],
    "middle .log": lambda place: _sorted(place, "*.log")[1],
    "active .log": lambda place: _sorted(place, "*.log")[-1],
    "oldest .index": lambda place: _sorted(place, "*.index")[0],
    "active .index": lambda place: _sorted(place, "*.index")[-1],
    "oldest .timeindex": lambda place: _sorted(place, "*.timeindex")[0],
    "active .timeindex": lambda place: _sorted(place, "*.timeindex")[-1],
    ".txnindex": lambda place: place / f"{0:020d}.txnindex",
    "middle .snapshot": lambda place: _sorted(place, "*.snapshot")[0],
    "last .snapshot": lambda place: _sorted(place, "*.snapshot")[-1],
    "leader-epoch-checkpoint": lambda place: place / "leader-epoch-checkpoint",
    "partition.metadata": lambda place: place / "partition.metadata",
}


@dataclass
class Case:
    """One partition and what happens to it. `destroyed` are the offsets that the damage itself took."""

    partition: int
    file: str
    harm: str
    seed: int
    path: Path = field(default_factory=Path)
    destroyed: set[int] = field(default_factory=set)
    offset_changed: bool = False
    topic_changed: bool = False
    outcome: str = ""

    def __str__(self) -> str:
        return f"{self.file}: {self.harm} (seed {self.seed}, partition {self.partition})"


def cases(moment: str, seeds: Iterable[int]) -> list[Case]:
    numbers = itertools.count()
    return [
        Case(next(numbers), file, harm, seed)
        for seed in seeds
        for file in FILES
        for harm in HARMS
        if moment != RUNNING or not file.endswith(".log") or harm in HARMS_OF_RECORDS_WHILE_RUNNING
    ]


def strike(scene: Scene, case: Case) -> None:
    """Do the damage and note what it destroyed."""
    name = f"{HURT}-{case.partition}"
    place = next(top / name for top in (scene.one, scene.two) if (top / name).exists())
    case.path = FILES[case.file](place)
    if case.file == ".txnindex":
        case.path.write_bytes(bytes(34))
    before = case.path.read_bytes()
    HARMS[case.harm](case.path, dice_for(case.file, case.harm, case.seed))
    after = case.path.read_bytes() if case.path.is_file() else b""
    if case.file.endswith(".log"):
        position = 0
        for header in scan_headers(before):
            end = position + header.size_bytes
            if before[position:end] != after[position:end]:
                case.destroyed.update(range(header.base_offset, header.next_offset))
                changed = (
                    before[position : position + BASE_OFFSET_BYTES] != after[position : position + BASE_OFFSET_BYTES]
                )
                case.offset_changed |= changed and len(after) >= end
            position = end
    elif case.file == "partition.metadata":
        case.topic_changed = case.path.is_file() and before != after


class Trial:
    """One scene with all its cases: harmed, started, read, written, mended."""

    def __init__(self, scene: Scene, moment: str, all_cases: list[Case]) -> None:
        self.scene = scene
        self.moment = moment
        self.cases = all_cases
        self.problems: list[str] = []

    def run(self) -> list[str]:
        """What was not as it must be."""
        scene = self.scene
        if self.moment == RUNNING:
            scene.start()
        for case in self.cases:
            strike(scene, case)
        if self.moment != RUNNING:
            scene.start()
        try:
            with scene.connect() as client:
                self._check_all(client, "found")
                self._mend(client)
                self._write(client)
            scene.end()
            scene.start()
            with scene.connect() as client:
                self._check_all(client, "after another start")
        finally:
            scene.end()
        return self.problems

    def _say(self, case: Case | str, what: str) -> None:
        self.problems.append(f"{self.moment}, {case}: {what}")

    def _check_all(self, client: WireClient, when: str) -> None:
        for topic in (BESIDE, ELSEWHERE):
            for partition in range(2):
                found = self.scene.read(client, topic, partition)
                if found.values != self.scene.stored[topic, partition] or found.unreadable:
                    self._say(topic, f"{when}: {found} instead of {self.scene.stored[topic, partition]}")
        for case in self.cases:
            try:
                found = self.scene.read(client, HURT, case.partition)
            except Refused as refusal:
                if refusal.args != (ErrorCode.KAFKA_STORAGE_ERROR,) or case.harm != "a directory":
                    self._say(case, f"{when}: {refusal!r}")
                case.outcome = "out of use by itself"
            except AssertionError as error:
                if not case.offset_changed:
                    self._say(case, f"{when}: {error}")
            else:
                self._check(case, found, when)

    def _check(self, case: Case, found: Found, when: str) -> None:
        stored = self.scene.stored[HURT, case.partition]
        if case.topic_changed and not found.values and found.end == 0:
            strays = list(case.path.parent.parent.glob(f"{HURT}-{case.partition}.*-stray/*.log"))
            if not strays:
                self._say(case, "the records are gone")
            case.outcome = "set aside, nothing lost"
            self.scene.stored[HURT, case.partition] = {}
            return
        if case.offset_changed:
            case.outcome = "served as it is"
            return
        wanted = {offset: value for offset, value in stored.items() if offset not in case.destroyed}
        if self.moment == KILLED_UNFLUSHED and case.destroyed:
            # What was never flushed may go with what was destroyed before it, and nothing else.
            wanted = {offset: value for offset, value in wanted.items() if offset < min(case.destroyed)}
            wanted |= {offset: value for offset, value in stored.items() if offset in found.values}
            self.scene.stored[HURT, case.partition] = dict(wanted)
        kept = {offset: value for offset, value in found.values.items() if offset in wanted}
        if kept != wanted:
            self._say(case, f"{when}: lost {sorted(set(wanted) - set(kept))}, destroyed {sorted(case.destroyed)}")
        for offset in found.values.keys() - wanted.keys():
            if found.values[offset] != stored.get(offset):
                self._say(case, f"{when}: offset {offset} has a record that was never there")
        if found.unreadable - case.destroyed:
            self._say(case, f"{when}: {sorted(found.unreadable - case.destroyed)} do not read")
        if not case.outcome:
            case.outcome = "only what was destroyed is missing" if case.destroyed else "nothing missing"

    def _mend(self, client: WireClient) -> None:
        """Where a directory was in the way it is taken away; the partition must come back by itself."""
        for case in self.cases:
            if case.harm == "a directory" and case.path.is_dir() and not list(case.path.iterdir()):
                case.path.rmdir()
        for case in self.cases:
            if case.harm == "a directory":
                for _ in range(PATIENCE_ROUNDS):
                    try:
                        found = self.scene.read(client, HURT, case.partition)
                    except Refused:
                        continue
                    self._check(case, found, "mended")
                    break
                else:
                    self._say(case, "did not come back")

    def _write(self, client: WireClient) -> None:
        for case in self.cases:
            end = self.scene.read(client, HURT, case.partition).end if not case.offset_changed else None
            offset = self.scene.write(client, HURT, case.partition, 1000, idempotent=False)
            if end is not None and offset != end:
                self._say(case, f"written at {offset}, the end was {end}")
            case.destroyed -= {offset, offset + 1}


def try_all(place: Path, moment: str, kind: Kind, seeds: Iterable[int]) -> tuple[list[Case], list[str]]:
    """All cases of a moment in one broker; the cases with their outcomes, and the problems."""
    all_cases = cases(moment, seeds)
    kind = Kind(kind.codec, kind.configs, flushed=moment != KILLED_UNFLUSHED)
    scene = template(place, len(all_cases), kind, killed=moment in (KILLED, KILLED_UNFLUSHED))
    return all_cases, Trial(scene, moment, all_cases).run()
