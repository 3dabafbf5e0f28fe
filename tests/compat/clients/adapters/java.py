"""Kafka's Java clients, of two generations: one JVM runs `ClientDriver` and is driven by lines."""

from __future__ import annotations

import subprocess
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, ClassVar

from tests.compat.clients.model import (
    TIMEOUT_SECONDS,
    Acks,
    AdminClient,
    Cluster,
    Codec,
    Message,
    Refused,
    Stored,
    When,
)
from tests.peers.java import compile_java, java_command
from tests.peers.paths import CLIENTS39_LIBS, KAFKA_LIBS, require_libs

_SOURCE = Path(__file__).parents[2] / "java" / "clients" / "ClientDriver.java"
_NULL = "-"


class JavaClient(AdminClient):
    libs: ClassVar[Path]
    package: ClassVar[str]

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        require_libs(self.libs, self.package)
        classes = compile_java([_SOURCE], self.libs)
        arguments = [bootstrap, str(int(TIMEOUT_SECONDS * 1000))]
        self._directory = tempfile.TemporaryDirectory()
        self._error_path = Path(self._directory.name) / "stderr"
        with self._error_path.open("wb") as errors:
            self._process = subprocess.Popen(
                java_command("ClientDriver", arguments, self.libs, classes),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                encoding="utf-8",
            )

    def close(self) -> None:
        """The end of its input ends the driver."""
        try:
            self._stream(self._process.stdin).close()
            self._process.wait(TIMEOUT_SECONDS)
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
            self._stream(self._process.stdout).close()
            self._directory.cleanup()

    def _ask(self, *fields: object, records: Sequence[str] = ()) -> list[str]:
        commands = self._stream(self._process.stdin)
        answers = self._stream(self._process.stdout)
        commands.write("\t".join(map(str, fields)) + "\n" + "".join(f"{record}\n" for record in records))
        commands.flush()
        first = answers.readline().rstrip("\n")
        if not first:
            raise RuntimeError(f"the driver ended during {fields[0]}: {self._error_path.read_text(errors='replace')}")
        outcome, number, *rest = first.split("\t", 2)
        if outcome == "error":
            raise Refused(int(number), rest[0])
        return [answers.readline().rstrip("\n") for _ in range(int(number))]

    @staticmethod
    def _stream(stream: IO[str] | None) -> IO[str]:
        assert stream is not None
        return stream

    def create_topic(
        self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None, replication: int = 1
    ) -> None:
        settings = ",".join(f"{key}={value}" for key, value in (configs or {}).items())
        self._ask("create", topic, partitions, replication, settings)

    def produce(
        self,
        topic: str,
        partition: int,
        messages: Sequence[Message],
        codec: Codec = "none",
        acks: Acks = "all",
        idempotent: bool = False,
    ) -> list[int]:
        request = ("produce", topic, partition, codec, acks, str(idempotent).lower(), len(messages))
        return [int(offset) for offset in self._ask(*request, records=[_line(message) for message in messages])]

    def consume(self, topic: str, partition: int, start: int, count: int) -> list[Stored]:
        records = [_stored(line) for line in self._ask("consume", topic, partition, start, count)]
        if len(records) < count:
            raise TimeoutError(f"{len(records)} of {count} records came in {TIMEOUT_SECONDS} s")
        return records

    def offset_at(self, topic: str, partition: int, when: When) -> int | None:
        found = self._ask("offset", topic, partition, when)
        return int(found[0]) if found else None

    def delete_topic(self, topic: str) -> None:
        self._ask("delete", topic)

    def create_partitions(self, topic: str, total: int) -> None:
        self._ask("grow", topic, total)

    def partition_count(self, topic: str) -> int | None:
        found = self._ask("partitions", topic)
        return int(found[0]) if found else None

    def topic_configs(self, topic: str) -> dict[str, str | None]:
        pairs = [line.split("\t", 1) for line in self._ask("configs", topic)]
        return {name: None if value == _NULL else value for name, value in pairs}

    def describe_cluster(self) -> Cluster:
        head, *nodes = [line.split("\t") for line in self._ask("cluster")]
        return Cluster(int(head[1]), {int(node_id): address for node_id, address in nodes}, head[0])


class Java39Client(JavaClient):
    name = "kafka-clients 3.9"
    libs = CLIENTS39_LIBS
    package = "clients39"


class Java43Client(JavaClient):
    name = "kafka-clients 4.3"
    libs = KAFKA_LIBS
    package = "kafka"


def _encoded(content: bytes | None) -> str:
    return _NULL if content is None else b64encode(content).decode()


def _decoded(field: str) -> bytes | None:
    return None if field == _NULL else b64decode(field)


def _line(message: Message) -> str:
    timestamp = _NULL if message.timestamp_ms is None else str(message.timestamp_ms)
    headers = [field for name, value in message.headers for field in (_encoded(name.encode()), _encoded(value))]
    return "\t".join([_encoded(message.key), _encoded(message.value), timestamp, *headers])


def _stored(line: str) -> Stored:
    offset, timestamp, key, value, *rest = line.split("\t")
    headers = tuple(
        (b64decode(name).decode(), _decoded(field)) for name, field in zip(rest[::2], rest[1::2], strict=True)
    )
    return Stored(int(offset), int(timestamp), _decoded(key), _decoded(value), headers)
