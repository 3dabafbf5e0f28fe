"""Apache Kafka's own group coordinator classes, asked over a pipe; see GroupOracle.java for the questions."""

from __future__ import annotations

import base64
import json
import subprocess

from tests.peers.java import compile_java, java_command
from tests.peers.paths import KAFKA_LIBS, KAFKA_VERSION, REPOSITORY, require_libs

from ottla.groups.consumer.assignors import Assignment, GroupSpec

SOURCE = REPOSITORY / "tests" / "compat" / "java" / "groups" / "GroupOracle.java"


class KafkaGroups:
    """One JVM; `end` stops it."""

    def __init__(self) -> None:
        libs = require_libs(KAFKA_LIBS, f"kafka-{KAFKA_VERSION}")
        command = java_command("GroupOracle", [], libs, compile_java([SOURCE], libs))
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def end(self) -> None:
        self._process.communicate(timeout=60)

    def ask(self, *words: object) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(map(str, words)).encode() + b"\n")
        self._process.stdin.flush()
        outcome, answer = self._process.stdout.readline().decode().rstrip("\n").split("\t", 1)
        assert outcome == "ok", answer
        return answer

    def assign(self, assignor: str, spec: GroupSpec) -> dict[str, Assignment]:
        question = {
            "homogeneous": spec.is_homogeneous,
            "counts": {_number(topic_id): count for topic_id, count in spec.partition_counts.items()},
            "members": [
                {
                    "id": member.member_id,
                    "instance": member.instance_id,
                    "topics": sorted(_number(topic_id) for topic_id in member.topic_ids),
                    "assigned": {_number(one): sorted(member.assigned[one]) for one in sorted(member.assigned)},
                }
                for member in spec.members
            ],
        }
        answer = json.loads(self.ask("assign", assignor, json.dumps(question)))
        return {
            member_id: {int(topic).to_bytes(16, "big"): frozenset(indexes) for topic, indexes in topics.items()}
            for member_id, topics in answer.items()
        }

    def matches(self, expression: str, names: list[str]) -> list[bool] | None:
        """Which of the names match; None when it is no expression."""
        answer = self.ask("match", *(base64.b64encode(text.encode()).decode() for text in (expression, *names)))
        return None if answer == "refused" else [character == "1" for character in answer]


def _number(topic_id: bytes) -> int:
    return int.from_bytes(topic_id, "big")
