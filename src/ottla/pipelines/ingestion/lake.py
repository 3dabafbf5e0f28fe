"""The lake: Parquet files in folders by topic, date and hour, and a log that says which of them count.

    LAKE/topic=orders/date=2026-01-01/hour=05/1f0c...-0.parquet
    LAKE/_log/00000000000000000042.json              a commit: files added, files removed, offsets covered
    LAKE/_log/00000000000000000040.state.json        everything up to that commit, so that few of them need be read

What must stay true:

1. A commit is one file that is linked to its name when it is whole, and only if nobody else has that number: so commits
   have an order, and each is there entirely or not at all. Who is second looks at what came first and tries again.
2. Files are on the disk before the commit that names them, under names that nobody else uses, and never changed; the
   commit is on the disk before anybody is told. So a power cut takes away nothing that was published. Readers take the
   files of one state, and nothing that lies beside them: leavings of a killed writer are seen by nobody.
3. Offsets of a partition are covered by one commit only; a second one that has some of them is refused. That alone has
   every record there once, whoever writes: streams that repeat a batch, loads that are started again, two of either.
4. A file that was removed stays on the disk until `vacuum` finds that it was removed long ago: readers of an older
   state finish their work.

The lake is a directory that writers and readers share. On demand it is a Delta table, too (`delta`).
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ottla.pipelines.ingestion.coverage import Range, joined, overlaps
from ottla.pipelines.ingestion.delta import DeltaLog
from ottla.pipelines.ingestion.durable import create_whole, sync

_LOG = "_log"
_STATE_EVERY = 20
_DIGITS = 20

Partition = tuple[str, int]


class AlreadyCovered(ValueError):
    """Some of the offsets are in the lake already."""


class AlreadyRemoved(ValueError):
    """A file that was to be replaced is no longer part of the lake."""


@dataclass(frozen=True, slots=True)
class LakeFile:
    """`path` is relative to the lake."""

    path: str
    topic: str
    date: str
    hour: str
    rows: int
    size: int


@dataclass(frozen=True, slots=True)
class Commit:
    """What changes at once."""

    added: tuple[LakeFile, ...] = ()
    removed: tuple[str, ...] = ()
    covered: Mapping[Partition, Range] = field(default_factory=dict)


@dataclass
class LakeState:
    """What is in the lake after commit `version`."""

    version: int = 0
    files: dict[str, LakeFile] = field(default_factory=dict)
    covered: dict[Partition, list[Range]] = field(default_factory=dict)

    def cut(self, partition: Partition, beginning: int = 0) -> int:
        """All records of the partition before this offset are in the lake."""
        for start, end in self.covered.get(partition, ()):
            if start <= beginning:
                return end
        return beginning

    def next_range(self, partition: Partition) -> int | None:
        """Where, behind the cut, offsets begin that are in the lake; None where there are none."""
        cut = self.cut(partition)
        return min((start for start, _ in self.covered.get(partition, ()) if start >= cut), default=None)

    def check(self, commit: Commit) -> None:
        for partition, offsets in commit.covered.items():
            if overlaps(self.covered.get(partition, ()), offsets):
                topic, number = partition
                raise AlreadyCovered(
                    f"offsets {offsets[0]} to {offsets[1]} of {topic}-{number} are in the lake already"
                )
        for path in commit.removed:
            if path not in self.files:
                raise AlreadyRemoved(f"{path} is no longer in the lake")

    def apply(self, commit: Commit) -> None:
        for path in commit.removed:
            del self.files[path]
        self.files |= {file.path: file for file in commit.added}
        for partition, offsets in commit.covered.items():
            self.covered[partition] = joined([*self.covered.get(partition, ()), offsets])
        self.version += 1


class Lake:
    """Any number of processes may write and read at a time."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self._delta = DeltaLog(self.directory)

    def state(self) -> LakeState:
        """What is there now."""
        state = self._last_kept_state()
        while (text := _read(self._commit_path(state.version + 1))) is not None:
            state.apply(_commit_of(json.loads(text)))
        return state

    def publish(self, commit: Commit) -> LakeState:
        """Make a commit count; its files have to be there. Raises AlreadyCovered and AlreadyRemoved."""
        self._log.mkdir(parents=True, exist_ok=True)
        for folder in (self.directory, self.directory.parent):
            sync(folder)
        text = json.dumps(_plain(commit))
        while True:
            state = self.state()
            state.check(commit)
            if create_whole(self._commit_path(state.version + 1), text):
                state.apply(commit)
                if state.version % _STATE_EVERY == 0:
                    self._keep_state(state)
                if self._delta.is_kept:
                    self._keep_delta(state)
                return state

    def keep_delta(self) -> LakeState:
        """Be a Delta table from now on, too, with all that is there already; the state that it has."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self._delta.create(int(time.time() * 1000))
        state = self.state()
        self._keep_delta(state, is_whole=True)
        return state

    def vacuum(self, older_than_seconds: float = 3600.0) -> list[str]:
        """Delete Parquet files that are no part of the lake, if they were removed, or written and never published, so
        long ago that nobody reads or writes them any more."""
        before = time.time() - older_than_seconds
        kept = self.state().files.keys() | self._removed_since(before)
        deleted = []
        for path in self.directory.glob("topic=*/*/*/*.parquet"):
            name = str(path.relative_to(self.directory))
            with contextlib.suppress(FileNotFoundError):
                if name not in kept and path.stat().st_mtime < before:
                    path.unlink()
                    deleted.append(name)
        return deleted

    def _removed_since(self, moment: float) -> set[str]:
        removed: set[str] = set()
        version = self.state().version
        while version > 0 and self._commit_path(version).stat().st_mtime >= moment:
            removed |= set(self._commit(version).removed)
            version -= 1
        return removed

    @property
    def _log(self) -> Path:
        return self.directory / _LOG

    def _commit_path(self, version: int) -> Path:
        return self._log / f"{version:0{_DIGITS}}.json"

    def _keep_state(self, state: LakeState) -> None:
        """Who looks for one that is deleted now begins with the first commit, and comes to the same end."""
        create_whole(self._log / f"{state.version:0{_DIGITS}}.state.json", json.dumps(_plain_state(state)))
        for old in sorted(self._log.glob("*.state.json"))[:-2]:
            old.unlink(missing_ok=True)

    def _keep_delta(self, state: LakeState, *, is_whole: bool = False) -> None:
        """The commit counts already: Delta follows, and can follow later."""
        self._delta.follow(state.version, lambda version: (self._commit(version), self._commit_time_ms(version)))
        if state.version and (is_whole or state.version % _STATE_EVERY == 0):
            self._delta.checkpoint(state, self._commit_time_ms(state.version))

    def _commit(self, version: int) -> Commit:
        return _commit_of(json.loads(self._commit_path(version).read_text(encoding="utf-8")))

    def _commit_time_ms(self, version: int) -> int:
        return self._commit_path(version).stat().st_mtime_ns // 1_000_000

    def _last_kept_state(self) -> LakeState:
        kept = max(self._log.glob("*.state.json"), default=None)
        text = None if kept is None else _read(kept)
        return LakeState() if text is None else _state_of(json.loads(text))


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def _plain(commit: Commit) -> dict[str, Any]:
    return {
        "added": [asdict(file) for file in commit.added],
        "removed": list(commit.removed),
        "covered": [[*partition, *offsets] for partition, offsets in commit.covered.items()],
    }


def _commit_of(plain: dict[str, Any]) -> Commit:
    covered = {(topic, number): (start, end) for topic, number, start, end in plain["covered"]}
    return Commit(tuple(LakeFile(**file) for file in plain["added"]), tuple(plain["removed"]), covered)


def _plain_state(state: LakeState) -> dict[str, Any]:
    return {
        "version": state.version,
        "files": [asdict(file) for file in state.files.values()],
        "covered": [[*partition, *one] for partition, ranges in state.covered.items() for one in ranges],
    }


def _state_of(plain: dict[str, Any]) -> LakeState:
    state = LakeState(plain["version"], {file["path"]: LakeFile(**file) for file in plain["files"]})
    for topic, number, start, end in plain["covered"]:
        state.covered.setdefault((topic, number), []).append((start, end))
    return state
