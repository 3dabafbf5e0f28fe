"""Apache Kafka's own message classes, asked over a pipe; see CodecOracle.java for the questions."""

from __future__ import annotations

import base64
import json
import subprocess
import zipfile
from dataclasses import dataclass
from typing import Any

from tests.peers.java import compile_java, java_command
from tests.peers.paths import KAFKA_LIBS, KAFKA_VERSION, REPOSITORY, require_libs

from ottla.protocol.schema import RECORDS, UUID, Field, Struct, StructType
from ottla.protocol.uuids import uuid_to_text

SOURCE = REPOSITORY / "tests" / "compat" / "java" / "protocol" / "CodecOracle.java"


@dataclass(frozen=True)
class Answer:
    outcome: str
    values: list[str]

    @property
    def data(self) -> bytes:
        assert self.outcome == "ok", self
        return base64.b64decode(self.values[0])


class JavaOracle:
    """One JVM for the whole run; `close` ends it."""

    def __init__(self) -> None:
        libs = require_libs(KAFKA_LIBS, f"kafka-{KAFKA_VERSION}")
        command = java_command("CodecOracle", [], libs, compile_java([SOURCE], libs))
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def close(self) -> None:
        self._process.communicate(timeout=60)

    def ask(self, *words: object) -> Answer:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(map(str, words)).encode() + b"\n")
        self._process.stdin.flush()
        outcome, *values = self._process.stdout.readline().decode().rstrip("\n").split("\t")
        return Answer(outcome, values)

    def read(self, name: str, version: int, data: bytes) -> tuple[bytes, Any]:
        """The bytes that Java writes after reading `data`, and what it read, as JSON."""
        answer = self.ask("read", name, version, base64.b64encode(data).decode())
        return answer.data, json.loads(answer.values[1])

    def write(self, name: str, version: int, message: Struct) -> Answer:
        return self.ask("write", name, version, json.dumps(to_json(message, version)))

    def carry(self, name: str, version: int, target_version: int, message: Struct) -> Answer:
        """Give the message to Java in one version and have it written in another."""
        return self.ask("carry", name, version, target_version, json.dumps(to_json(message, version)))


def definitions() -> dict[str, dict[str, Any]]:
    """The message definitions inside kafka-clients, by name; they are JSON with comments."""
    jar = require_libs(KAFKA_LIBS, f"kafka-{KAFKA_VERSION}") / f"kafka-clients-{KAFKA_VERSION}.jar"
    found = {}
    with zipfile.ZipFile(jar) as archive:
        for entry in archive.namelist():
            if entry.startswith("common/message/") and entry.endswith(".json"):
                lines = archive.read(entry).decode().splitlines()
                definition = json.loads("\n".join(line for line in lines if not line.lstrip().startswith("//")))
                found[definition["name"]] = definition
    return found


def to_json(message: Struct, version: int, *, empty_records: bool = False) -> dict[str, Any]:
    """The message as Kafka's converters read it and write it, though they write all records as empty."""
    result: dict[str, Any] = {}
    for one in message.FIELDS:
        value = getattr(message, one.name)
        if version not in one.versions or (one.tag is not None and value == _default(one)):
            continue
        first, *others = one.name.split("_")
        name = first + "".join(word.capitalize() for word in others)
        if one.type is RECORDS and empty_records and value is not None:
            result[name] = ""
        elif one.is_array and value is not None:
            result[name] = [_value_to_json(one, item, version, empty_records) for item in value]
        else:
            result[name] = _value_to_json(one, value, version, empty_records)
    return result


def _default(one: Field) -> Any:
    if not one.has_fresh_default:
        return one.default
    return one.type() if isinstance(one.type, StructType) and not one.is_array else []


def _value_to_json(one: Field, value: Any, version: int, empty_records: bool) -> Any:
    if isinstance(value, Struct):
        return to_json(value, version, empty_records=empty_records)
    if one.type is UUID:
        return uuid_to_text(value)
    if isinstance(value, bytes | memoryview):
        return base64.b64encode(value).decode()
    return value
