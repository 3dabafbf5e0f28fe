"""Fixtures that need Apache Kafka; without it the tests that do are skipped, and say so."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator

import pytest
from tests.compat.client.membership.oracle import KafkaAssignors
from tests.compat.clients.groups.conftest import QUIET
from tests.compat.clients.groups.hosts import GroupHost, Kind
from tests.conftest import start_broker
from tests.peers.paths import PeerMissing
from tests.peers.process import ServerProcess

from ottla import Admin
from ottla.client.admin import NewTopic
from ottla.client.connections import Connections
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)

pytest.register_assert_rewrite("tests.unit.client.membership.reading")

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def kafka_assignors() -> Iterator[KafkaAssignors]:
    try:
        assignors = KafkaAssignors()
    except PeerMissing as missing:
        pytest.skip(str(missing))
    yield assignors
    assignors.end()


@pytest.fixture(scope="session", params=["ottla", "kafka"])
def group_broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A broker of each kind that allows short sessions."""
    try:
        server = start_broker(request.param, tmp_path_factory.mktemp(request.param), None, QUIET)
    except PeerMissing as missing:
        pytest.skip(str(missing))
    yield server
    server.stop()


@pytest.fixture
def address(group_broker: ServerProcess) -> str:
    return group_broker.bootstrap


@pytest.fixture
def name() -> str:
    """For a topic and its group: no other test of this run has it."""
    return f"members-{next(_numbers)}"


class SharedHost(GroupHost):
    """One whose members may be asked from several threads."""

    def __init__(self, kind: Kind, bootstrap: str) -> None:
        super().__init__(kind, bootstrap)
        self._turn = threading.Lock()

    def ask(self, *fields: object) -> list[str]:
        with self._turn:
            return super().ask(*fields)


@pytest.fixture
def host(address: str) -> Iterator[Callable[[Kind], GroupHost]]:
    """Processes with members of other libraries."""
    hosts: list[GroupHost] = []

    def start(kind: Kind) -> GroupHost:
        try:
            hosts.append(SharedHost(kind, address))
        except PeerMissing as missing:
            pytest.skip(str(missing))
        return hosts[-1]

    yield start
    for one in hosts:
        one.close()


def create_topics(address: str, partitions: int, *names: str) -> None:
    with Admin(address) as admin:
        admin.create_topics([NewTopic(name, partitions, 1) for name in names]).raise_for_errors()


async def grow_topic(network: Connections, name: str, partitions: int) -> None:
    topic = CreatePartitionsTopic(name=name, count=partitions, assignments=None)
    request = CreatePartitionsRequest(topics=[topic], timeout_ms=10_000)
    answer = await network.ask_controller(request, CreatePartitionsResponse)
    assert [topic.error_code for topic in answer.results] == [0], answer
