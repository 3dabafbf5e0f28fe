"""The client on brokers of both kinds: the tests below run on Ottla and on Apache Kafka, one broker of each for all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from tests.conftest import start_broker
from tests.peers.paths import PeerMissing
from tests.peers.process import ServerProcess

PROPERTIES = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


@dataclass(frozen=True)
class Either:
    """A broker of one kind or the other."""

    kind: str
    server: ServerProcess

    @property
    def bootstrap(self) -> str:
        return self.server.bootstrap

    @property
    def is_kafka(self) -> bool:
        return self.kind == "kafka"


@pytest.fixture(scope="session", params=["ottla", "kafka"])
def either(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Either]:
    """One with two log directories, since something can be asked of those."""
    directory = tmp_path_factory.mktemp(f"client-{request.param}")
    log_dirs = {"log.dirs": f"{directory}/first,{directory}/second"}
    try:
        server = start_broker(request.param, directory, properties=PROPERTIES | log_dirs)
    except PeerMissing as missing:
        pytest.skip(str(missing))
    yield Either(request.param, server)
    server.stop()


@pytest.fixture
def bootstrap(either: Either) -> str:
    return either.bootstrap
