"""Fixtures that need the jars of Apache Kafka; without them the tests here are skipped, and say so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.compat.quotas.oracle import KafkaQuotas
from tests.peers.paths import PeerMissing


@pytest.fixture(scope="session")
def kafka_quotas() -> Iterator[KafkaQuotas]:
    try:
        quotas = KafkaQuotas()
    except PeerMissing as missing:
        pytest.skip(str(missing))
    yield quotas
    quotas.end()
