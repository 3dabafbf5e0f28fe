"""The connector as a process of its own, as a user starts it, and what it has written."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from tests.peers.paths import REPOSITORY
from tests.waiting import tries

from ottla import Consumer, TopicPartition

PATIENCE_SECONDS = 60.0

Step = tuple[str, Any, Any]


def all_changes(count: int) -> Callable[[list[dict[str, Any]]], bool]:
    """Whether so many are there."""
    return lambda found: len(found) >= count


@dataclass
class Capture:
    """`ottla capture` with these arguments; killed as a power cut would, started again as an operator would."""

    bootstrap: str
    database: str
    topic: str
    tables: tuple[str, ...]
    log: Path
    name: str = ""
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def start(self, *options: str) -> subprocess.Popen[bytes]:
        tables = [part for table in self.tables for part in ("--table", table)]
        command = [sys.executable, "-m", "ottla", "capture", self.database, "--topic", self.topic, *tables]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--name", self.name or self.topic, "-b", self.bootstrap, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=REPOSITORY / "src",
            )
        return self._process

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def refused(self, *options: str) -> str:
        """What it says when it ends by itself: one message."""
        already = len(self.told())
        process = self.start(*options)
        assert process.wait(PATIENCE_SECONDS) == 1
        said = self.told()[already:]
        assert "Traceback" not in said
        assert "ottla: " in said
        return said

    def told(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    @contextmanager
    def running(self, *options: str) -> Iterator[None]:
        self.start(*options)
        try:
            yield
        finally:
            self.kill()


def changes(bootstrap: str, topic: str, is_enough: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
    """All that is committed, once it is enough, and to the topic's end: there may be more than enough."""
    settings: dict[str, Any] = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
    found: list[dict[str, Any]] = []
    consumer: Consumer[bytes, bytes]
    with Consumer(bootstrap, **settings) as consumer:
        partitions = [TopicPartition(topic, info.partition) for info in consumer.partitions_for(topic)]
        consumer.assign([(topic, partition.partition, 0) for partition in partitions])
        deadline = monotonic() + PATIENCE_SECONDS
        while monotonic() < deadline:
            found += [
                {**json.loads(record.value or b""), "key": (record.key or b"").decode()}
                for record in consumer.poll(0.2)
            ]
            ends = consumer.end_offsets(partitions)
            if is_enough(found) and all(consumer.position(one) >= end for one, end in ends.items()):
                break
    return found


def history_of(key: str, found: list[dict[str, Any]]) -> list[Step]:
    """What happened to a key, in the order of its partition."""
    return [(change["op"], change["before"], change["after"]) for change in found if change["key"] == key]


def is_whole(got: list[Step], commits: list[list[Step]]) -> bool:
    """Whether a key's history is a snapshot of its rows after one of its commits, then all steps of the later ones."""
    rows: dict[int, Any] = {}
    for number in range(len(commits) + 1):
        snapshot: list[Step] = [("snapshot", None, row) for _, row in sorted(rows.items())]
        later = [step for commit in commits[number:] for step in commit]
        if sorted(got[: len(snapshot)], key=str) == sorted(snapshot, key=str) and got[len(snapshot) :] == later:
            return True
        for operation, before, after in commits[number] if number < len(commits) else ():
            if operation == "delete":
                del rows[before["id"]]
            else:
                rows[after["id"]] = after
    return False


def wait_for(condition: Callable[[], object]) -> None:
    for _ in tries(PATIENCE_SECONDS, 0.02):
        if condition():
            return
    raise AssertionError("what was waited for did not come")
