"""The guided search as a child process, and what it has told so far."""

import json
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from tests.peers.ottla import OttlaBroker
from tests.peers.paths import REPOSITORY

END_PATIENCE_SECONDS = 120.0


@dataclass(slots=True)
class Report:
    """`states` by target, as the worker last told them; `findings` as it told them, each once."""

    topic_ids: dict[str, bytes] = field(default_factory=dict)
    states: dict[str, dict[str, Any]] = field(default_factory=dict)
    findings: list[dict[str, Any]] = field(default_factory=list)
    memory_before_bytes: int = 0
    memory_after_bytes: int = 0
    noise: list[str] = field(default_factory=list)

    def hear(self, line: str) -> None:
        try:
            words = json.loads(line)
        except ValueError:
            self.noise.append(line)
            return
        if words["event"] == "hello":
            self.topic_ids = {name: bytes.fromhex(text) for name, text in words["topic_ids"].items()}
        elif words["event"] == "found":
            self.findings.append(words)
        else:
            self.states[words["target"]] = words
            self.memory_after_bytes = words["memory_bytes"]
            self.memory_before_bytes = self.memory_before_bytes or words["memory_bytes"]

    def total(self, name: str) -> int:
        return sum(int(state[name]) for state in self.states.values())


class GuidedProcess:
    """Started when it is made; `finish` waits for its end."""

    def __init__(self, options: list[str]) -> None:
        self.report = Report()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.worker", *options],
            cwd=REPOSITORY,
            env=OttlaBroker(Path()).environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self._process.stdout is not None
        self._listener = threading.Thread(target=self._listen, args=(self._process.stdout,), daemon=True)
        self._listener.start()

    def _listen(self, output: IO[str]) -> None:
        for line in output:
            self.report.hear(line.rstrip("\n"))

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def finish(self) -> Report:
        """What it found; RuntimeError when it did not end, or not well."""
        try:
            code = self._process.wait(END_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError(f"the guided search hangs after {self.report.states}") from None
        self._listener.join(END_PATIENCE_SECONDS)
        assert self._process.stdout is not None
        self._process.stdout.close()
        if code not in (0, 1) or (code == 1 and not self.report.findings):
            raise RuntimeError(f"the guided search ended with {code}: {' '.join(self.report.noise[-30:])}")
        return self.report

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
