"""Members of groups as a test sees them, whatever library they are made with and whatever process they live in."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from tests.compat.clients.groups.sessions import QUIET_MS, SESSION_MS
from tests.peers.java import compile_java, java_command
from tests.peers.paths import CLIENTS39_LIBS, KAFKA_LIBS, REPOSITORY, require_libs

TIMEOUT_SECONDS = 60.0
_SOURCE = Path(__file__).parents[2] / "java" / "groups" / "GroupHost.java"
_NULL = "-"
_names = itertools.count(1)


class Record(NamedTuple):
    partition: int
    offset: int
    value: str


class Event(NamedTuple):
    """What a library told its application: partitions that were assigned, revoked or lost."""

    at_ns: int
    what: str
    partitions: frozenset[int]


class CallFailed(RuntimeError):
    """The library refused what it was told to do; the message is its own."""


@dataclass(frozen=True)
class Kind:
    """A library and the protocol of groups that it is to speak."""

    library: str
    protocol: str = "classic"
    assignor: str = "range"

    @property
    def name(self) -> str:
        return f"{self.library}, {self.protocol}"

    def command(self, bootstrap: str) -> list[str]:
        if not self.library.startswith("java"):
            return [sys.executable, "-m", "tests.compat.clients.groups.libraries", self.library, bootstrap]
        libs = require_libs(*((CLIENTS39_LIBS, "clients39") if self.library == "java39" else (KAFKA_LIBS, "kafka")))
        return java_command("GroupHost", [bootstrap], libs, compile_java([_SOURCE], libs))


CONFLUENT = Kind("confluent", assignor="roundrobin")
CONFLUENT_NEW = Kind("confluent", "consumer")
AIOKAFKA = Kind("aiokafka")
KAFKA_PYTHON = Kind("kafka-python", assignor="cooperative")
JAVA_39 = Kind("java39", assignor="cooperative")
JAVA_43 = Kind("java43", assignor="sticky")
JAVA_43_NEW = Kind("java43", "consumer")


class GroupHost:
    """A process with members of one kind; `kill` ends all of them without a word to the broker."""

    def __init__(self, kind: Kind, bootstrap: str) -> None:
        self.kind = kind
        self._directory = tempfile.TemporaryDirectory()
        self._errors = Path(self._directory.name) / "stderr"
        path = os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "src")])
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                kind.command(bootstrap),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=os.environ | {"PYTHONPATH": path},
                cwd=REPOSITORY,
                text=True,
                encoding="utf-8",
            )

    def join(self, group: str, topic: str, **settings: object) -> HostedMember:
        """A new member that reads a topic, or all that fit a pattern if it begins with ^."""
        words = {
            "protocol": self.kind.protocol,
            "assignor": self.kind.assignor,
            "reset": "earliest",
            "auto_commit_ms": 0,
            "instance": "",
            "session_ms": QUIET_MS,
            "heartbeat_ms": SESSION_MS // 10,
            "poll_ms": 300_000,
            "isolation": "read_uncommitted",
        } | settings
        name = f"member-{next(_names)}"
        self.ask("join", name, group, topic, ",".join(f"{key}={value}" for key, value in words.items()))
        return HostedMember(self, name)

    def ask(self, *fields: object) -> list[str]:
        commands, answers = self._stream(self._process.stdin), self._stream(self._process.stdout)
        commands.write("\t".join(map(str, fields)) + "\n")
        commands.flush()
        first = answers.readline().rstrip("\n")
        if not first:
            raise RuntimeError(f"the host ended during {fields[0]}: {self._errors.read_text(errors='replace')}")
        outcome, number, *rest = first.split("\t", 2)
        if outcome == "error":
            raise CallFailed(rest[0])
        return [answers.readline().rstrip("\n") for _ in range(int(number))]

    def kill(self) -> None:
        self._process.kill()
        self._end()

    def close(self) -> None:
        """The end of its input makes every member leave."""
        if self._process.returncode is not None:
            return
        try:
            self._stream(self._process.stdin).close()
            self._process.wait(TIMEOUT_SECONDS)
        finally:
            self._process.kill()
            self._end()

    def _end(self) -> None:
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            self._stream(stream).close()
        self._directory.cleanup()

    @staticmethod
    def _stream(stream: IO[str] | None) -> IO[str]:
        assert stream is not None
        return stream


class HostedMember:
    def __init__(self, host: GroupHost, name: str) -> None:
        self._host = host
        self.name = name
        self._records: list[Record] = []

    def describe(self) -> str:
        return f"{self.name} ({self._host.kind.name}) has {self.assigned()} {self.error()}"

    def assigned(self) -> list[int]:
        (numbers,) = self._host.ask("assigned", self.name)
        return [int(number) for number in numbers.split(",") if number]

    def records(self) -> list[Record]:
        """All that it has read so far, in the order in which it read."""
        for line in self._host.ask("records", self.name, len(self._records)):
            partition, offset, value = line.split("\t", 2)
            self._records.append(Record(int(partition), int(offset), value))
        return self._records

    def values(self) -> list[str]:
        return [record.value for record in self.records()]

    def events(self) -> list[Event]:
        return [event_of(line) for line in self._host.ask("events", self.name)]

    def error(self) -> str:
        return self._host.ask("error", self.name)[0]

    def commit(self, how: str = "sync") -> None:
        self._host.ask("commit", self.name, how)

    def committed(self, partition: int) -> int | None:
        (found,) = self._host.ask("committed", self.name, partition)
        return None if found == _NULL else int(found)

    def seek(self, partition: int, offset: int) -> None:
        self._host.ask("seek", self.name, partition, offset)

    def offset_at(self, partition: int, timestamp_ms: int) -> int | None:
        (found,) = self._host.ask("time", self.name, partition, timestamp_ms)
        return None if found == _NULL else int(found)

    def hang(self, hanging: bool = True) -> None:
        self._host.ask("hang", self.name, str(hanging).lower())

    def leave(self) -> None:
        self._host.ask("leave", self.name)


def event_of(line: str) -> Event:
    at, what, places = line.split("\t")
    return Event(int(at), what, frozenset(int(number) for number in places.split(",") if number))


def until(condition: Callable[[], object], what: str, describe: Callable[[], object] | None = None) -> None:
    """Wait for something that other processes bring about."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {TIMEOUT_SECONDS} s: {what}; {describe() if describe else ''}")
        time.sleep(0.03)
