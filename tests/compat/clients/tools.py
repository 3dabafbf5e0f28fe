"""Kafka's own command line tools, unchanged, in one JVM that stays: a tool alone takes a second to start."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import IO

from tests.peers.java import compile_java, java_command
from tests.peers.paths import KAFKA_LIBS, require_libs

_SOURCE = Path(__file__).parents[1] / "java" / "tools" / "ToolHost.java"


class Tools:
    def __init__(self, bootstrap: str) -> None:
        libs = require_libs(KAFKA_LIBS, "kafka")
        self._bootstrap = bootstrap
        self._process = subprocess.Popen(
            java_command("ToolHost", [], libs, compile_java([_SOURCE], libs)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run(self, name: str, *arguments: str, expect_code: int | None = 0) -> str:
        """What the tool `org.apache.kafka.tools.<name>` prints; the address of the broker is put in front.

        Some end with 0 after they said that they failed: None takes any code.
        """
        commands, answers = self._stream(self._process.stdin), self._stream(self._process.stdout)
        fields = [f"org.apache.kafka.tools.{name}", "--bootstrap-server", self._bootstrap, *arguments]
        commands.write("\t".join(fields) + "\n")
        commands.flush()
        code, count = answers.readline().split("\t")
        printed = "".join(answers.readline() for _ in range(int(count)))
        assert expect_code in (None, int(code)), f"{name} {' '.join(arguments)} ended with {code}: {printed}"
        return printed

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            self._stream(stream).close()

    @staticmethod
    def _stream(stream: IO[str] | None) -> IO[str]:
        assert stream is not None
        return stream
