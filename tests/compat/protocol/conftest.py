"""Fixtures that need the jars of Apache Kafka; without them the tests here are skipped, and say so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.compat.protocol.oracle import JavaOracle, definitions
from tests.peers.paths import PeerMissing


@pytest.fixture(scope="session")
def java() -> Iterator[JavaOracle]:
    try:
        oracle = JavaOracle()
    except PeerMissing as missing:
        pytest.skip(str(missing))
    yield oracle
    oracle.close()


@pytest.fixture(scope="session")
def kafka_definitions() -> dict[str, dict[str, Any]]:
    try:
        return definitions()
    except PeerMissing as missing:
        pytest.skip(str(missing))
