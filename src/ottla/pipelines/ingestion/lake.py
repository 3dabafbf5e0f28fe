"""The lake: Parquet files in folders by topic, date and hour, and a log that says which of them count.

    LAKE/topic=orders/date=2026-01-01/hour=05/1f0c...-0.parquet
    LAKE/_log/00000000000000000042.json              a commit: files added, files removed, offsets covered
    LAKE/_log/00000000000000000040.state.json        everything up to that commit, so that few of them need be read
    LAKE/_log/last_state                             40: nobody has to look through the log for it

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
5. A file that was never published is deleted only after a commit has discarded it, and one that is discarded is never
   published: the order of the commits decides, and no clock. So a writer that was slow writes again, and what it
   publishes is on the disk, however long it took.

The lake is a directory that writers and readers share. On demand it is a Delta table, too (`delta`).
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from ottla.pipelines.frame.place import is_address
from ottla.pipelines.frame.telling import PipelineError
from ottla.pipelines.ingestion.delta import DeltaLog
from ottla.pipelines.ingestion.durable import create_whole, sync
from ottla.pipelines.ingestion.state import Commit, LakeState, commit_of, plain_commit, plain_state, state_of

_LOG = "_log"
_LAST_STATE = "last_state"
_STATE_EVERY = 20
_DIGITS = 20

REMOVED_SECONDS = 3600.0
LEAVINGS_SECONDS = 24 * 3600.0


class NotADirectory(PipelineError, ValueError):
    """A lake cannot be where this says."""

    def __init__(self, given: object) -> None:
        super().__init__(
            f"{given} is an address, and a lake is a directory: give a path on a disk that the driver, all workers and "
            "all readers share, and that has hard links, such as NFS mounted at /shared/lake"
        )


class NotShared(PipelineError):
    """What was written to the lake elsewhere is not there."""

    def __init__(self, directory: Path, missing: str) -> None:
        super().__init__(
            f"workers have written {missing}, which {directory} does not have here: take a directory as the lake that "
            "the driver and all workers share, by the same path"
        )


class Lake:
    """Any number of processes may write and read at a time. Raises NotADirectory for an address."""

    def __init__(self, directory: str | Path) -> None:
        if is_address(directory):
            raise NotADirectory(directory)
        # Workers have working directories of their own.
        self.directory = Path(os.path.abspath(directory))
        self._delta = DeltaLog(self.directory)

    def state(self) -> LakeState:
        """What is there now."""
        state = self._last_kept_state()
        while (text := _read(self._commit_path(state.version + 1))) is not None:
            state.apply(commit_of(json.loads(text)))
        return state

    def publish(self, commit: Commit) -> LakeState:
        """Make a commit count; its files have to be there. Raises what `LakeState.check` does, and NotShared."""
        self._log.mkdir(parents=True, exist_ok=True)
        for folder in (self.directory, self.directory.parent):
            sync(folder)
        text = json.dumps(plain_commit(commit))
        while True:
            state = self.state()
            state.check(commit)
            # After the state was read: what is deleted from now on was discarded by a commit that ours has to follow.
            for file in commit.added:
                if not (self.directory / file.path).exists():
                    raise NotShared(self.directory, file.path)
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

    def vacuum(
        self, older_than_seconds: float = REMOVED_SECONDS, leavings_older_than_seconds: float = LEAVINGS_SECONDS
    ) -> list[str]:
        """Delete Parquet files that were removed so long ago that nobody reads them any more, and those that were
        written even longer ago and never published.

        1. Discard what was never published, and forget what is deleted: one commit. 2. Delete."""
        now = time.time()
        state = self.state()
        leavings = {
            name
            for name, written in self._files_on_disk()
            if name not in state.files and name not in state.removed and written < now - leavings_older_than_seconds
        }
        forgotten = [path for path in state.removed if not (self.directory / path).exists()]
        if leavings or forgotten:
            state = self.publish(Commit(discarded=tuple(leavings), forgotten=tuple(forgotten)))
        deleted = []
        for path, version in state.removed.items():
            if path in leavings or self._commit_time_ms(version) < (now - older_than_seconds) * 1000:
                with contextlib.suppress(FileNotFoundError):
                    (self.directory / path).unlink()
                    deleted.append(path)
        return deleted

    def _files_on_disk(self) -> Iterator[tuple[str, float]]:
        """All Parquet files, and when they were written."""
        for path in self.directory.glob("topic=*/*/*/*.parquet"):
            with contextlib.suppress(FileNotFoundError):
                yield str(path.relative_to(self.directory)), path.stat().st_mtime

    @property
    def _log(self) -> Path:
        return self.directory / _LOG

    def _commit_path(self, version: int) -> Path:
        return self._log / f"{version:0{_DIGITS}}.json"

    def _state_path(self, version: int) -> Path:
        return self._log / f"{version:0{_DIGITS}}.state.json"

    def _keep_state(self, state: LakeState) -> None:
        """Who looks for one that is deleted now begins with the first commit, and comes to the same end."""
        create_whole(self._state_path(state.version), json.dumps(plain_state(state)))
        draft = self._log / f".{uuid.uuid4().hex}.draft"
        draft.write_text(str(state.version), encoding="utf-8")
        draft.replace(self._log / _LAST_STATE)
        self._state_path(state.version - 2 * _STATE_EVERY).unlink(missing_ok=True)

    def _keep_delta(self, state: LakeState, *, is_whole: bool = False) -> None:
        """The commit counts already: Delta follows, and can follow later."""
        self._delta.follow(state.version, lambda version: (self._commit(version), self._commit_time_ms(version)))
        if state.version and (is_whole or state.version % _STATE_EVERY == 0):
            self._delta.checkpoint(state, self._commit_time_ms(state.version))

    def _commit(self, version: int) -> Commit:
        return commit_of(json.loads(self._commit_path(version).read_text(encoding="utf-8")))

    def _commit_time_ms(self, version: int) -> int:
        return self._commit_path(version).stat().st_mtime_ns // 1_000_000

    def _last_kept_state(self) -> LakeState:
        text = None
        with contextlib.suppress(ValueError):
            # It is not synced: after a power cut it may be empty, or of before.
            text = _read(self._state_path(int(_read(self._log / _LAST_STATE) or "")))
        if text is None:
            kept = max(self._log.glob("*.state.json"), default=None)
            text = None if kept is None else _read(kept)
        return LakeState() if text is None else state_of(json.loads(text))


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
