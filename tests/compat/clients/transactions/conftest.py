"""A broker of its own for the tests of transactions, which looks often for those that ran out of time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.compat.clients.groups.conftest import QUICK
from tests.conftest import start_broker
from tests.peers.process import ServerProcess

from ottla.protocol.api_keys import ApiKey

TRANSACTION_APIS = (
    ApiKey.FIND_COORDINATOR,
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.OFFSET_FETCH,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.END_TXN,
)
EXPIRING = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}


@pytest.fixture(scope="session")
def broker(target: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    server = start_broker(target, tmp_path_factory.mktemp("transactions"), None, QUICK | EXPIRING)
    yield server
    server.stop()
