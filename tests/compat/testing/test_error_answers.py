"""An answer that refuses all that was asked has its errors where Apache Kafka's own classes put them."""

from __future__ import annotations

import base64
import itertools
import subprocess
from typing import Any

import pytest
from tests.peers.java import compile_java, java_command
from tests.peers.paths import KAFKA_LIBS, KAFKA_VERSION, REPOSITORY, PeerMissing, require_libs
from tests.unit.testing.parts import errors, named, sample

from ottla.protocol.errors import ErrorCode
from ottla.protocol.message import Request, Response
from ottla.protocol.registry import BROKER_APIS, request_class
from ottla.testing.refusals import refuse_all_parts

SOURCE = REPOSITORY / "tests" / "compat" / "java" / "testing" / "ErrorOracle.java"
CODE = ErrorCode.POLICY_VIOLATION
TIMEOUT_SECONDS = 60

# Fetch and Metadata have their errors in partitions and topics alone, as from a broker that could read the request.
# In the others Kafka repeats the error of the whole answer in its parts, names them in another way, or has none.
OTHERWISE = {
    "FETCH",
    "METADATA",
    "ALTER_REPLICA_LOG_DIRS",
    "DESCRIBE_LOG_DIRS",
    "ELECT_LEADERS",
    "ALTER_PARTITION_REASSIGNMENTS",
    "LIST_PARTITION_REASSIGNMENTS",
    "DESCRIBE_USER_SCRAM_CREDENTIALS",
}


def refused_by_kafka(questions: list[tuple[type[Request], int, Any]]) -> list[Response]:
    libs = require_libs(KAFKA_LIBS, f"kafka-{KAFKA_VERSION}")
    lines = [
        f"{cls.API_KEY} {version} {base64.b64encode(question.encode(version)).decode()}\n"
        for cls, version, question in questions
    ]
    done = subprocess.run(
        java_command("ErrorOracle", [str(int(CODE))], libs, compile_java([SOURCE], libs)),
        input="".join(lines),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [
        cls.RESPONSE.decode(base64.b64decode(line), version)
        for (cls, version, _), line in zip(questions, done.stdout.splitlines(), strict=True)
    ]


def test_errors_are_where_kafka_puts_them() -> None:
    classes = [request_class(key) for key in BROKER_APIS if key.name not in OTHERWISE]
    questions = [
        (cls, version, sample(cls, version, itertools.count(1)))
        for cls in classes
        if cls is not None
        for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1)
    ]
    assert len(questions) > 200
    try:
        expected = refused_by_kafka(questions)
    except PeerMissing as missing:
        pytest.skip(str(missing))
    for (cls, version, question), theirs in zip(questions, expected, strict=True):
        answer = refuse_all_parts(question, version, CODE)
        ours = cls.RESPONSE.decode(answer.encode(version), version)
        assert errors(ours) == errors(theirs), (cls.__name__, version, ours, theirs)
        assert named(ours) == named(theirs), (cls.__name__, version, ours, theirs)
