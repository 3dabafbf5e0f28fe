"""Fixtures that need the jars of Apache Kafka; without them the tests here are skipped, and say so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.compat.groups.oracle import KafkaGroups
from tests.peers.paths import PeerMissing


@pytest.fixture(scope="session")
def kafka_groups() -> Iterator[KafkaGroups]:
    try:
        groups = KafkaGroups()
    except PeerMissing as missing:
        pytest.skip(str(missing))
    yield groups
    groups.end()
