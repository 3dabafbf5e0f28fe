"""A broker that loses log directories while it runs: the same story for Ottla and Apache Kafka.

A directory is lost by moving it away: the next checkpoint cannot be written. Moved back, it holds all it held.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import start_broker
from tests.peers.process import ServerProcess
from tests.unit.broker.api.questions import batch, consume, create_topic, fetch, produce
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from ottla.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
)

GOOD, BAD = ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR
PARTITIONS = 4
PATIENCE_SECONDS = 60.0
POLL_SECONDS = 0.02


class Machine:
    """A broker with two log directories, of which the second can be taken from it."""

    def __init__(self, target: str, directory: Path) -> None:
        self.one, self.two = directory / "data", directory / "more"
        properties = {
            "log.dirs": f"{self.one},{self.two}",
            "replica.high.watermark.checkpoint.interval.ms": "100",
        }
        self.server: ServerProcess = start_broker(target, directory, properties=properties)

    def connect(self) -> WireClient:
        assert self.server.port is not None
        return WireClient(self.server.port)


@pytest.fixture
def machine(target: str, tmp_path: Path) -> Iterator[Machine]:
    made = Machine(target, tmp_path)
    yield made
    made.server.kill()


def attempts() -> Iterator[int]:
    """Rounds of asking, until patience ends."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    for number in itertools.takewhile(lambda _: time.monotonic() < deadline, itertools.count()):
        yield number
        time.sleep(POLL_SECONDS)


def metadata(client: WireClient, topic: str) -> list[MetadataResponsePartition]:
    (answer,) = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), MetadataResponse).topics
    return sorted(answer.partitions, key=lambda partition: partition.partition_index)


def describe(client: WireClient) -> DescribeLogDirsResponse:
    return client.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)


def partitions_in(client: WireClient, place: Path, topic: str) -> set[int]:
    (found,) = (result for result in describe(client).results if result.log_dir == str(place))
    return {
        each.partition_index
        for each_topic in found.topics
        if each_topic.name == topic
        for each in each_topic.partitions
    }


def write(client: WireClient, topic: str, index: int, value: bytes) -> int:
    return produce(client, topic, batch(value), partition=index).error_code


def write_at_last(client: WireClient, topic: str, index: int, value: bytes) -> None:
    """Apache Kafka's partitions may lose their leader for a moment while they settle in one of two directories."""
    for _ in attempts():
        if write(client, topic, index, value) == GOOD:
            return
    raise AssertionError(f"{topic}-{index} cannot be written")


def wait_for_leaders(client: WireClient, topic: str, leaders: dict[int, int]) -> None:
    for _ in attempts():
        found = {each.partition_index: each.leader_id for each in metadata(client, topic)}
        if leaders.items() <= found.items():
            return
    raise AssertionError(f"{leaders} expected, {found} came")


def test_one_of_two(machine: Machine) -> None:
    gone = machine.two.with_name("gone")
    with machine.connect() as client:
        create_topic(client, "t", partitions=PARTITIONS)
        kept, lost = partitions_in(client, machine.one, "t"), partitions_in(client, machine.two, "t")
        assert (len(kept), len(lost)) == (2, 2)
        for index in range(PARTITIONS):
            write_at_last(client, "t", index, b"before")
        before = metadata(client, "t")
        machine.two.rename(gone)
        for _ in attempts():
            if all(write(client, "t", index, b"between") == BAD for index in lost):
                break
        wait_for_leaders(client, "t", dict.fromkeys(lost, -1))
        after = metadata(client, "t")
        for index in kept:
            assert after[index] == before[index]
            assert write(client, "t", index, b"after") == GOOD
        for index in lost:
            partition = after[index]
            assert (partition.error_code, partition.leader_epoch) == (
                ErrorCode.LEADER_NOT_AVAILABLE,
                before[index].leader_epoch + 1,
            )
            assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == ([1], [], [1])
            assert (write(client, "t", index, b"after"), fetch(client, "t", 0, partition=index).error_code) == (
                BAD,
                BAD,
            )
        (topic,) = client.ask(DescribeTopicPartitionsRequest(topics=[]), DescribeTopicPartitionsResponse).topics
        for each in topic.partitions:
            expected = ([], [1], [1], [1]) if each.partition_index in lost else ([1], [], [], [])
            eligible, last_known = each.eligible_leader_replicas or [], each.last_known_elr or []
            assert (each.isr_nodes, eligible, last_known, each.offline_replicas) == expected
            assert each.error_code == GOOD
        told = {result.log_dir: result for result in describe(client).results}
        assert (told[str(machine.one)].error_code, told[str(machine.two)].error_code) == (GOOD, BAD)
        assert (told[str(machine.two)].topics, told[str(machine.two)].total_bytes) == ([], -1)
        create_topic(client, "new", partitions=PARTITIONS)
        assert partitions_in(client, machine.one, "new") == set(range(PARTITIONS))
    machine.server.stop()
    gone.rename(machine.two)
    machine.server.start()
    with machine.connect() as client:
        wait_for_leaders(client, "t", dict.fromkeys(range(PARTITIONS), 1))
        for index in range(PARTITIONS):
            assert consume(client, "t", 1, partition=index)[0] == b"before"
            write_at_last(client, "t", index, b"again")


def test_one_that_is_no_directory_at_the_start(machine: Machine) -> None:
    gone = machine.two.with_name("gone")
    with machine.connect() as client:
        create_topic(client, "t", partitions=PARTITIONS)
        lost = partitions_in(client, machine.two, "t")
        for index in range(PARTITIONS):
            write_at_last(client, "t", index, b"before")
    machine.server.stop()
    machine.two.rename(gone)
    machine.two.write_text("not a directory")
    machine.server.start()
    with machine.connect() as client:
        wait_for_leaders(client, "t", {index: -1 if index in lost else 1 for index in range(PARTITIONS)})
        assert {index for index in range(PARTITIONS) if write(client, "t", index, b"after") != GOOD} == lost
        create_topic(client, "new", partitions=2)
        assert partitions_in(client, machine.one, "new") == {0, 1}
    machine.server.stop()
    machine.two.unlink()
    gone.rename(machine.two)
    machine.server.start()
    with machine.connect() as client:
        wait_for_leaders(client, "t", dict.fromkeys(range(PARTITIONS), 1))
        for index in range(PARTITIONS):
            assert consume(client, "t", 1, partition=index)[0] == b"before"


def test_all_of_them(machine: Machine) -> None:
    with machine.connect() as client:
        create_topic(client, "t", partitions=2)
    machine.two.rename(machine.two.with_name("gone"))
    machine.one.rename(machine.one.with_name("gone-too"))
    for _ in attempts():
        if not machine.server.running:
            break
    assert machine.server.stop() == 1
