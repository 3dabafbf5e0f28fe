"""The assignors of Apache Kafka's own consumer, asked over a pipe; see AssignorOracle.java for the questions."""

from __future__ import annotations

import base64
import json
import subprocess
from typing import Any

from tests.peers.java import compile_java, java_command
from tests.peers.paths import KAFKA_LIBS, KAFKA_VERSION, REPOSITORY, require_libs

from ottla.client.membership.assignors import GroupView, MemberSubscription
from ottla.client.types import TopicPartition

SOURCE = REPOSITORY / "tests" / "compat" / "java" / "client" / "AssignorOracle.java"


class KafkaAssignors:
    """One JVM; `end` stops it."""

    def __init__(self) -> None:
        libs = require_libs(KAFKA_LIBS, f"kafka-{KAFKA_VERSION}")
        command = java_command("AssignorOracle", [], libs, compile_java([SOURCE], libs))
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def end(self) -> None:
        self._process.communicate(timeout=60)

    def _ask(self, question: dict[str, object]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question).encode() + b"\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "error" not in answer, (answer, question)
        return answer

    def assign(self, assignor: str, group: GroupView) -> dict[str, list[TopicPartition]]:
        topics = {topic: [sorted(racks) for racks in partitions] for topic, partitions in group.topics.items()}
        members = [_told(member_id, member) for member_id, member in group.members.items()]
        answer = self._ask({"ask": "assign", "assignor": assignor, "topics": topics, "members": members})
        return {member: [TopicPartition(*one) for one in partitions] for member, partitions in answer.items()}

    def user_data(self, assignor: str, partitions: list[TopicPartition], generation: int) -> bytes:
        answer = self._ask(
            {"ask": "user-data", "assignor": assignor, "partitions": partitions, "generation": generation}
        )
        return base64.b64decode(answer)

    def write(self, member: MemberSubscription) -> bytes:
        return base64.b64decode(self._ask({"ask": "write", "member": _told("", member)}))

    def read(self, data: bytes) -> MemberSubscription:
        found = self._ask({"ask": "subscription", "bytes": base64.b64encode(data).decode()})
        return MemberSubscription(
            topics=tuple(found["topics"]),
            owned=tuple(TopicPartition(*one) for one in found["owned"]),
            generation=None if found["generation"] < 0 else found["generation"],
            user_data=None if found["userData"] is None else base64.b64decode(found["userData"]),
            rack=found["rack"],
        )


def _told(member_id: str, member: MemberSubscription) -> dict[str, object]:
    return {
        "id": member_id,
        "topics": list(member.topics),
        "owned": [list(partition) for partition in member.owned],
        "generation": -1 if member.generation is None else member.generation,
        "userData": None if member.user_data is None else base64.b64encode(member.user_data).decode(),
        "instance": member.instance_id,
        "rack": member.rack,
    }
