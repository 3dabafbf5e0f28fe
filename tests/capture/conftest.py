"""One PostgreSQL server for the tests of capture."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.peers.paths import PeerMissing
from tests.peers.postgres import PostgresServer


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    try:
        server = PostgresServer(tmp_path_factory.mktemp("postgres"))
    except PeerMissing as missing:
        pytest.skip(str(missing))
    server.start()
    yield server
    server.remove()
