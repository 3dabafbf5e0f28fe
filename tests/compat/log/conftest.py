"""Fixtures that need the jars of Apache Kafka; without them the tests here are skipped, and say so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.compat.log.oracle import KafkaLog
from tests.peers.paths import PeerMissing


@pytest.fixture(scope="session")
def kafka_log() -> Iterator[KafkaLog]:
    try:
        log = KafkaLog()
    except PeerMissing as missing:
        pytest.skip(str(missing))
    yield log
    log.end()
