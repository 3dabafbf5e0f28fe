"""Replicas move between the log directories of a real process: with Kafka's tools, kafka-python, and kill -9 meanwhile.

The same story for Ottla and Apache Kafka.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.compat.clients.test_kafka_tools import tool
from tests.compat.storage.test_lost_directories import Machine, attempts, describe, write_at_last
from tests.unit.broker.api.log_dir_questions import move
from tests.unit.broker.api.questions import batch, consume, create_topic, fetch, produce
from tests.wire_client import WireClient

with warnings.catch_warnings():
    # The library reads its schemas, when it is imported, through a function that Python 3.11 calls deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient, TopicPartition
    from kafka.errors import ElectionNotNeededError, LogDirNotFoundError, NoError

pytestmark = pytest.mark.timeout(180)

VALUE = b"x" * 100_000
KILLS = 4
PREFERRED = 0


@pytest.fixture
def machine(target: str, tmp_path: Path) -> Iterator[Machine]:
    made = Machine(target, tmp_path)
    yield made
    made.server.kill()


def places(client: WireClient, topic: str) -> list[tuple[str, bool]]:
    """Where the replicas of partition 0 are; True for a future one."""
    return [
        (result.log_dir, each.is_future_key)
        for result in describe(client).results
        for found in result.topics
        if found.name == topic
        for each in found.partitions
        if each.partition_index == 0
    ]


def other(machine: Machine, place: str) -> str:
    return str(machine.two if place == str(machine.one) else machine.one)


def wait_for_place(client: WireClient, topic: str, place: str) -> None:
    for _ in attempts():
        if places(client, topic) == [(place, False)]:
            return
    raise AssertionError(f"{place} expected, {places(client, topic)} came")


def test_kafkas_own_tools(machine: Machine, tmp_path: Path) -> None:
    server = ("--bootstrap-server", machine.server.bootstrap)
    with machine.connect() as client:
        create_topic(client, "t")
        write_at_last(client, "t", 0, b"value")
        ((before, _),) = places(client, "t")
        after = other(machine, before)
        wanted = {"partitions": [{"topic": "t", "partition": 0, "replicas": [1], "log_dirs": [after]}], "version": 1}
        (tmp_path / "wanted.json").write_text(json.dumps(wanted))
        plan = ("--reassignment-json-file", str(tmp_path / "wanted.json"))
        name = "reassign.ReassignPartitionsCommand"
        executed = tool(name, *server, *plan, "--execute")
        assert f"started moving log directory to {after} for replica t-0 with broker 1" in executed
        wait_for_place(client, "t", after)
        verified = tool(name, *server, *plan, "--verify")
        assert "Reassignment of partition t-0 is completed" in verified
        assert "Reassignment of replica t-0-1 completed successfully" in verified
        assert consume(client, "t", 1) == [b"value"]
    elected = tool("LeaderElectionCommand", *server, "--election-type", "preferred", "--topic", "t", "--partition", "0")
    assert "Valid replica already elected for partitions t-0" in elected


def test_kafka_python(machine: Machine) -> None:
    admin = KafkaAdminClient(bootstrap_servers=machine.server.bootstrap)
    try:
        with machine.connect() as client:
            create_topic(client, "t")
            write_at_last(client, "t", 0, b"value")
            ((before, _),) = places(client, "t")
            after = other(machine, before)
            assert set(admin.alter_replica_log_dirs({("t", 0, 1): after}).values()) == {NoError}
            wait_for_place(client, "t", after)
            assert set(admin.alter_replica_log_dirs({("t", 0, 1): "/nowhere"}).values()) == {LogDirNotFoundError}
        partition = TopicPartition("t", 0)
        assert admin.alter_partition_reassignments({partition: [1]}) == {partition: None}
        assert admin.list_partition_reassignments() == {}
        (answer,) = admin.elect_leaders(PREFERRED, {"t": [0]}).replica_election_results
        assert [each.error_code for each in answer.partition_result] == [ElectionNotNeededError.errno]
    finally:
        admin.close()


def test_kill_9_in_the_middle(machine: Machine) -> None:
    """Whatever was acknowledged is there after each start, and the replica comes to where it was sent."""
    with machine.connect() as client:
        create_topic(client, "t", configs={"segment.bytes": "1048576"})
        write_at_last(client, "t", 0, VALUE)
        values = [VALUE]
        for _ in range(60):
            assert produce(client, "t", batch(VALUE)).error_code == 0
            values.append(VALUE)
        ((place, _),) = places(client, "t")
    for number in range(KILLS):
        with machine.connect() as client:
            place = other(machine, place)
            assert move(client, [(place, [("t", [0])])]) == {"t": {0: 0}}
            # Some kills come early, some late, and some after the end.
            for _ in range(number * 5):
                value = b"%d" % len(values)
                assert produce(client, "t", batch(value)).error_code == 0
                values.append(value)
        machine.server.kill()
        machine.server.start()
        with machine.connect() as client:
            for _ in attempts():
                if fetch(client, "t", 0).error_code == 0:
                    break
            assert consume(client, "t", len(values)) == values
            wait_for_place(client, "t", place)
            write_at_last(client, "t", 0, b"after")
            values.append(b"after")
            assert consume(client, "t", len(values)) == values
            assert not list(Path(place).glob("t-0.*-future"))
