"""The fixture that needs the jars of Apache Kafka; without them the tests here are skipped, and say so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.compat.records.record_oracle import RecordOracle
from tests.peers.paths import PeerMissing


@pytest.fixture(scope="session")
def java_records() -> Iterator[RecordOracle]:
    try:
        oracle = RecordOracle()
    except PeerMissing as missing:
        pytest.skip(str(missing))
    yield oracle
    oracle.close()
