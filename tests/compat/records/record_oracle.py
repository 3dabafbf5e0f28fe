"""Apache Kafka's own record classes, asked over a pipe; see RecordOracle.java for the questions."""

from __future__ import annotations

import base64
import json
import subprocess
from typing import Any

from tests.peers.java import compile_java, java_command
from tests.peers.paths import KAFKA_LIBS, KAFKA_VERSION, REPOSITORY, require_libs

from ottla.records import Codec, ControlType, Record

SOURCE = REPOSITORY / "tests" / "compat" / "java" / "records" / "RecordOracle.java"


class OracleRefused(Exception):
    """Java threw something; the message is what."""


def to_text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def from_text(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


class RecordOracle:
    """One JVM for the whole run; `close` ends it."""

    def __init__(self) -> None:
        libs = require_libs(KAFKA_LIBS, f"kafka-{KAFKA_VERSION}")
        command = java_command("RecordOracle", [], libs, compile_java([SOURCE], libs))
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def close(self) -> None:
        self._process.communicate(timeout=60)

    def _ask(self, *words: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(words).encode() + b"\n")
        self._process.stdin.flush()
        outcome, answer = self._process.stdout.readline().decode().rstrip("\n").split("\t", 1)
        if outcome != "ok":
            raise OracleRefused(answer)
        return answer

    def write(
        self,
        records: list[Record],
        *,
        codec: Codec = Codec.NONE,
        base_offset: int = 0,
        leader_epoch: int = -1,
        log_append_time: int | None = None,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        transactional: bool = False,
    ) -> bytes:
        """A batch as Java's builder writes it; the records have their offsets."""
        wanted = {
            "codec": codec.config_name,
            "baseOffset": base_offset,
            "leaderEpoch": leader_epoch,
            "logAppendTime": log_append_time,
            "producerId": producer_id,
            "producerEpoch": producer_epoch,
            "baseSequence": base_sequence,
            "transactional": transactional,
            "records": [
                {
                    "offset": record.offset,
                    "timestamp": record.timestamp,
                    "key": to_text(record.key),
                    "value": to_text(record.value),
                    "headers": [{"key": name, "value": to_text(value)} for name, value in record.headers],
                }
                for record in records
            ],
        }
        return base64.b64decode(self._ask("write", json.dumps(wanted)))

    def marker(
        self,
        kind: ControlType,
        *,
        coordinator_epoch: int,
        base_offset: int,
        timestamp: int,
        leader_epoch: int,
        producer_id: int,
        producer_epoch: int,
    ) -> bytes:
        """The batch that ends a transaction."""
        wanted = {
            "type": kind.name,
            "coordinatorEpoch": coordinator_epoch,
            "baseOffset": base_offset,
            "timestamp": timestamp,
            "leaderEpoch": leader_epoch,
            "producerId": producer_id,
            "producerEpoch": producer_epoch,
        }
        return base64.b64decode(self._ask("marker", json.dumps(wanted)))

    def read(self, data: bytes) -> list[dict[str, Any]]:
        """What Java sees in batches whose checksums it has found right."""
        seen: list[dict[str, Any]] = json.loads(self._ask("read", base64.b64encode(data).decode()))
        return seen

    def set_append_time(self, data: bytes, timestamp_ms: int) -> bytes:
        return base64.b64decode(self._ask("appendtime", str(timestamp_ms), base64.b64encode(data).decode()))


def records_in(batch: dict[str, Any]) -> list[Record]:
    """The records of a batch that Java has read."""
    return [
        Record(
            record["offset"],
            record["timestamp"],
            from_text(record["key"]),
            from_text(record["value"]),
            tuple((pair["key"], from_text(pair["value"])) for pair in record["headers"]),
        )
        for record in batch["records"]
    ]
