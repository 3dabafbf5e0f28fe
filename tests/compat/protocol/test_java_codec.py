"""Byte for byte the same as Apache Kafka's own classes: every message, every version, both directions."""

from __future__ import annotations

from random import Random

import pytest
from tests.compat.protocol.oracle import JavaOracle, to_json
from tests.property.protocol.samples import ALL_MESSAGES, random_message, versions_of

from ottla.protocol.errors import UnencodableMessage, UnsupportedVersion
from ottla.protocol.message import Message

SAMPLES = 8


@pytest.mark.parametrize("cls", ALL_MESSAGES, ids=lambda cls: cls.__name__)
def test_java_reads_what_we_write(cls: type[Message], java: JavaOracle) -> None:
    for version in versions_of(cls):
        for sample in range(SAMPLES):
            message = random_message(cls, version, Random(f"{cls.__name__} {version} {sample}"))
            data = message.encode(version)
            rewritten, content = java.read(cls.__name__, version, data)
            assert content == to_json(message, version, empty_records=True), (version, sample)
            assert rewritten == data, (version, sample)


@pytest.mark.parametrize("cls", ALL_MESSAGES, ids=lambda cls: cls.__name__)
def test_we_read_what_java_writes(cls: type[Message], java: JavaOracle) -> None:
    for version in versions_of(cls):
        for sample in range(SAMPLES):
            message = random_message(cls, version, Random(f"{sample} {version} {cls.__name__}"))
            data = java.write(cls.__name__, version, message).data
            assert cls.decode(data, version) == message, (version, sample)
            assert message.encode(version) == data, (version, sample)


@pytest.mark.parametrize("cls", ALL_MESSAGES, ids=lambda cls: cls.__name__)
def test_what_a_version_cannot_carry_is_refused_or_dropped_as_java_does(cls: type[Message], java: JavaOracle) -> None:
    random = Random(cls.__name__)
    for version in versions_of(cls):
        for target_version in {cls.MIN_VERSION, max(cls.MIN_VERSION, version - 1), cls.MAX_VERSION} - {version}:
            message = random_message(cls, version, random)
            answer = java.carry(cls.__name__, version, target_version, message)
            where = f"v{version} in v{target_version}: {message}"
            if answer.outcome == "ok":
                assert message.encode(target_version) == answer.data, where
                continue
            # Java looks for nulls everywhere before it looks for fields that the version lacks.
            expected = (
                UnsupportedVersion if answer.outcome == "unsupported" else (UnsupportedVersion, UnencodableMessage)
            )
            assert answer.outcome in ("unsupported", "null"), answer
            with pytest.raises(expected):
                message.encode(target_version)
