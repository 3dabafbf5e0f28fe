"""Apache Kafka's own log, asked over a pipe; see LogOracle.java for the questions."""

from __future__ import annotations

import base64
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.peers.java import compile_java, java_command
from tests.peers.paths import KAFKA_LIBS, KAFKA_VERSION, REPOSITORY, require_libs

from ottla.protocol.uuids import uuid_to_text

SOURCE = REPOSITORY / "tests" / "compat" / "java" / "log" / "LogOracle.java"


@dataclass(frozen=True)
class Answer:
    """`words` of a good answer, or the name of Kafka's error and its message."""

    error: str | None
    words: list[str]


class KafkaLog:
    """One JVM with one log at a time; `end` stops it."""

    def __init__(self) -> None:
        libs = require_libs(KAFKA_LIBS, f"kafka-{KAFKA_VERSION}")
        command = java_command("LogOracle", [], libs, compile_java([SOURCE], libs))
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def end(self) -> None:
        self._process.communicate(timeout=60)

    def ask(self, *words: object) -> Answer:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(map(str, words)).encode() + b"\n")
        self._process.stdin.flush()
        outcome, *values = self._process.stdout.readline().decode().rstrip("\n").split("\t")
        return Answer(values[0], values[1:]) if outcome == "error" else Answer(None, values)

    def good(self, *words: object) -> list[str]:
        answer = self.ask(*words)
        assert answer.error is None, answer
        return answer.words

    def open(self, directory: Path, topic_id: bytes, *, clean: bool, **settings: object) -> tuple[int, int]:
        """Log start and log end offset; settings are topic keys with underscores."""
        pairs = [f"{name.replace('_', '.')}={value}" for name, value in settings.items()]
        words = self.good("open", directory, str(clean).lower(), uuid_to_text(topic_id), *pairs)
        return int(words[0]), int(words[1])

    def append(self, batch: bytes, leader_epoch: int) -> Answer:
        return self.ask("append", leader_epoch, base64.b64encode(batch).decode())

    def append_own(self, batch: bytes, leader_epoch: int, transaction_version: int = 0) -> Answer:
        return self.ask("own", leader_epoch, transaction_version, base64.b64encode(batch).decode())

    def committed(self, offset: int, max_bytes: int) -> tuple[int, bytes, list[tuple[int, int]]]:
        """Last stable offset, batches, and producer and first offset of the transactions that were aborted."""
        stable, data, *aborted = self.good("committed", offset, max_bytes)
        pairs = [(int(producer), int(first)) for producer, _, first in (each.partition(":") for each in aborted)]
        return int(stable), base64.b64decode(data), pairs

    def read(self, offset: int, max_bytes: int, *, min_one_batch: bool) -> bytes:
        return base64.b64decode(self.good("read", offset, max_bytes, str(min_one_batch).lower())[0])

    def by_time(self, timestamp: int) -> tuple[int, ...] | None:
        words = self.good("time", timestamp)
        return None if words == ["none"] else tuple(map(int, words))
