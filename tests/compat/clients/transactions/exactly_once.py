"""A feeder of records, jobs that copy them in transactions, and what has to come out."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from tests.peers.java import compile_java, java_command
from tests.peers.paths import KAFKA_LIBS, REPOSITORY, require_libs

PARTITIONS = 3
PATIENCE_SECONDS = 90.0
_SOURCE = Path(__file__).parents[2] / "java" / "transactions" / "CopyingJob.java"
_QUICK = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200, "log_level": 0}
_JOBS = {"python": "copying_job", "ottla": "own_copying_job"}
_PACE_SECONDS = 0.01
_WAITING_AT_MOST = 1000


class Feeder:
    """Writes 0, 1, 2... to every partition, a hundred a second, idempotent, whatever happens to the broker."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.fed = 0
        self.problems: list[str] = []
        self._topic = topic
        self._over = threading.Event()
        # More than one request in flight was seen to be sent again in another order, after answers that were lost.
        safe = {"enable.idempotence": True, "max.in.flight": 1, "message.timeout.ms": 300_000}
        self._producer = Producer({"bootstrap.servers": bootstrap, **safe, **_QUICK})
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def finish(self) -> int:
        """Stop; how many records every partition has."""
        self._over.set()
        self._thread.join(PATIENCE_SECONDS)
        left = self._producer.flush(PATIENCE_SECONDS)
        assert not left, f"{left} records were not taken"
        assert not self.problems, self.problems[:5]
        return self.fed

    def _run(self) -> None:
        while not self._over.wait(_PACE_SECONDS):
            if len(self._producer) < _WAITING_AT_MOST:
                for partition in range(PARTITIONS):
                    self._producer.produce(self._topic, b"%d" % self.fed, partition=partition, on_delivery=self._told)
                self.fed += 1
            self._producer.poll(0)

    def _told(self, error: KafkaError | None, _: Any) -> None:
        if error is not None:
            self.problems.append(str(error))


class Job:
    """One process that copies; `identity` is its transactional id. It is started again whenever it ended."""

    def __init__(self, language: str, place: Path, identity: str, *arguments: str) -> None:
        bootstrap, source, target, group, protocol = arguments
        self.identity = identity
        self.committed = 0
        self.starts = 0
        self._errors = place / f"{identity}.txt"
        self._arguments = [bootstrap, source, target, group, identity, protocol]
        self._language = language
        self._over = False
        self._process: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def kill(self) -> None:
        process = self._process
        if process is not None:
            process.kill()

    def end(self) -> None:
        self._over = True
        self.kill()
        self._thread.join(PATIENCE_SECONDS)

    def story(self) -> str:
        """What became of it; a Python job that still runs is made to say where it is."""
        if self._process is not None and self._language in _JOBS:
            self._process.send_signal(signal.SIGUSR1)
            time.sleep(0.2)
        said = self._errors.read_text(errors="replace")[-3000:] if self._errors.exists() else ""
        return f"{self.identity}: {self.starts} starts, {self.committed} transactions; {said}"

    def _run(self) -> None:
        while not self._over:
            self.starts += 1
            with self._errors.open("ab") as errors, self._start(errors) as process:
                self._process = process
                self._kill_if_over(process)
                assert process.stdout is not None
                for _ in process.stdout:
                    self.committed += 1
            self._process = None

    def _kill_if_over(self, process: subprocess.Popen[str]) -> None:
        """It may have been ended while the process was being started."""
        if self._over:
            process.kill()

    def _start(self, errors: Any) -> subprocess.Popen[str]:
        path = os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "src")])
        return subprocess.Popen(
            self._command(),
            stdout=subprocess.PIPE,
            stderr=errors,
            stdin=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": path},
            cwd=REPOSITORY,
            text=True,
        )

    def _command(self) -> list[str]:
        if self._language == "java":
            libs = require_libs(KAFKA_LIBS, "kafka")
            return java_command("CopyingJob", self._arguments, libs, compile_java([_SOURCE], libs))
        return [sys.executable, "-m", f"tests.compat.clients.transactions.{_JOBS[self._language]}", *self._arguments]


def committed_records(bootstrap: str, topic: str, partition: int, least: int) -> list[int]:
    """What a reader of committed records finds, from the first to the last; waits until there are `least` of them."""
    settings = {"group.id": "never-joined", "enable.auto.commit": False, "fetch.wait.max.ms": 20, **_QUICK}
    reader = Consumer(
        {"bootstrap.servers": bootstrap, "isolation.level": "read_committed", "enable.partition.eof": True, **settings}
    )
    found: list[int] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    with contextlib.closing(reader):
        reader.assign([TopicPartition(topic, partition, 0)])
        while time.monotonic() < deadline:
            message = reader.poll(1.0)
            if message is None:
                continue
            error = message.error()
            if error is None:
                found.append(int(message.value() or b"-1"))
            elif error.code() == KafkaError._PARTITION_EOF and len(found) >= least:
                return found
    return found
