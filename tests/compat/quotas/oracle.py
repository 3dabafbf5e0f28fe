"""Apache Kafka's own quotas, asked over a pipe; see QuotaOracle.java for the questions."""

from __future__ import annotations

import subprocess

from tests.peers.java import compile_java, java_command
from tests.peers.paths import KAFKA_LIBS, KAFKA_VERSION, REPOSITORY, require_libs

SOURCE = REPOSITORY / "tests" / "compat" / "java" / "quotas" / "QuotaOracle.java"


class KafkaQuotas:
    """One JVM; `end` stops it."""

    def __init__(self) -> None:
        libs = require_libs(KAFKA_LIBS, f"kafka-{KAFKA_VERSION}")
        command = java_command("QuotaOracle", [], libs, compile_java([SOURCE], libs))
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def end(self) -> None:
        self._process.communicate(timeout=60)

    def ask_all(self, questions: list[tuple[object, ...]]) -> list[list[str]]:
        """The answers to many questions, which go over the pipe together."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        for question in questions:
            self._process.stdin.write("\t".join(map(str, question)).encode() + b"\n")
        self._process.stdin.flush()
        return [self._process.stdout.readline().decode().rstrip("\n").split("\t") for _ in questions]
