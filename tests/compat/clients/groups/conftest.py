"""A broker of its own for the tests of groups, which allows short sessions and rebalances at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.compat.clients.groups.sessions import QUIET_MS, SESSION_MS
from tests.conftest import start_broker
from tests.peers.process import ServerProcess

from ottla.protocol.api_keys import ApiKey

pytest.register_assert_rewrite("tests.compat.clients.groups.contract")

QUICK = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": str(SESSION_MS // 10),
    "group.consumer.min.assignment.interval.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
QUIET = QUICK | {"group.consumer.session.timeout.ms": str(QUIET_MS)}
CLASSIC_APIS = (
    ApiKey.FIND_COORDINATOR,
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
)
CONSUMER_APIS = (
    ApiKey.FIND_COORDINATOR,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
)


@pytest.fixture(scope="session")
def broker(target: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One for all tests of groups; each has topics and groups of its own."""
    server = start_broker(target, tmp_path_factory.mktemp("groups"), None, QUIET)
    yield server
    server.stop()


@pytest.fixture
def group(topic: str) -> str:
    """A name no other test of this run has."""
    return f"{topic}-group"
