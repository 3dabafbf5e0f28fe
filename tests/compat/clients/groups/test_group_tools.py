"""Kafka's own tools for groups, unchanged: kafka-consumer-groups, VerifiableConsumer, the console consumer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from tests.compat.clients.groups.conftest import CLASSIC_APIS, CONSUMER_APIS
from tests.compat.clients.groups.contract import Topic, until_read, until_shared, write_to_owners
from tests.compat.clients.groups.groups import committed
from tests.compat.clients.groups.hosts import CONFLUENT, CONFLUENT_NEW, GroupHost, Kind
from tests.compat.clients.model import CREATE_TIME_MS
from tests.compat.clients.tools import Tools
from tests.peers.java import run_java
from tests.peers.paths import KAFKA_LIBS, require_libs
from tests.peers.process import ServerProcess

from ottla.protocol.api_keys import ApiKey

pytestmark = pytest.mark.timeout(120)

COMMAND = "consumer.group.ConsumerGroupCommand"
KINDS = [CONFLUENT, CONFLUENT_NEW]


@pytest.fixture(autouse=True)
def _served(needs: Callable[[ApiKey], None]) -> None:
    others = (ApiKey.LIST_GROUPS, ApiKey.DESCRIBE_GROUPS, ApiKey.DELETE_GROUPS, ApiKey.OFFSET_DELETE)
    for api in (*CLASSIC_APIS, *CONSUMER_APIS, *others):
        needs(api)


def rows(printed: str, group: str) -> list[list[str]]:
    """The lines of a table about the group, as words."""
    return sorted(line.split() for line in printed.splitlines() if line.split()[:1] == [group])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_group_in_use(tools: Tools, broker: ServerProcess, topic: str, group: str, kind: Kind) -> None:
    log = Topic(broker, topic)
    host = GroupHost(kind, broker.bootstrap)
    try:
        members = [host.join(group, topic) for _ in range(2)]
        until_shared(members, [2, 2])
        write_to_owners(members, log, 5)
        for member in members:
            member.commit()
        log.write(1)
        assert group in tools.run(COMMAND, "--list").split()
        assert [group, "Stable"] in rows(tools.run(COMMAND, "--list", "--state"), group)
        kinds = rows(tools.run(COMMAND, "--list", "--type"), group)
        assert [word.lower() for word in kinds[0]] == [group, kind.protocol]
        described = rows(tools.run(COMMAND, "--describe", "--group", group), group)
        assert [row[1:6] for row in described] == [[topic, str(number), "5", "6", "1"] for number in range(4)]
        assert len({row[6] for row in described}) == 2
        listed = rows(tools.run(COMMAND, "--describe", "--group", group, "--members"), group)
        assert [row[-1] for row in listed] == ["2", "2"]
        state = rows(tools.run(COMMAND, "--describe", "--group", group, "--state"), group)
        assert [word for word in state[0] if word in ("Stable", "2")] == ["Stable", "2"]
        refused = tools.run(COMMAND, "--delete", "--group", group, expect_code=None)
        assert "GroupNotEmptyException" in refused
        reset = ("--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute")
        assert "inactive" in tools.run(COMMAND, *reset, expect_code=None)
        kept = tools.run(COMMAND, "--delete-offsets", "--group", group, "--topic", topic, expect_code=None)
        assert "subscribed" in kept
        assert committed(broker, group, topic, 4) == dict.fromkeys(range(4), 5)
    finally:
        host.close()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_group_at_rest(tools: Tools, broker: ServerProcess, topic: str, group: str, kind: Kind) -> None:
    """Its offsets are moved in every way there is, then deleted, and then the group."""
    log = Topic(broker, topic, 2)
    log.write(10, CREATE_TIME_MS)
    host = GroupHost(kind, broker.bootstrap)
    member = host.join(group, topic)
    until_read([member], log)
    member.commit()
    host.close()
    described = tools.run(COMMAND, "--describe", "--group", group)
    assert [row[1:7] for row in rows(described, group)] == [[topic, str(n), "10", "10", "0", "-"] for n in range(2)]
    reset = ("--reset-offsets", "--group", group, "--topic", topic)
    moment = datetime.fromtimestamp(CREATE_TIME_MS / 1000 + 3, UTC).strftime("%Y-%m-%dT%H:%M:%S.000")
    for how, expected in (
        (("--to-earliest",), 0),
        (("--to-offset", "7"), 7),
        (("--shift-by", "-2"), 5),
        (("--to-datetime", moment), 3),
        (("--to-latest",), 10),
    ):
        before = committed(broker, group, topic, 2)
        planned = tools.run(COMMAND, *reset, *how, "--dry-run")
        assert [row[-1] for row in rows(planned, group)] == [str(expected)] * 2
        assert committed(broker, group, topic, 2) == before
        tools.run(COMMAND, *reset, *how, "--execute")
        assert committed(broker, group, topic, 2) == dict.fromkeys(range(2), expected), how
    tools.run(COMMAND, "--delete-offsets", "--group", group, "--topic", f"{topic}:1")
    assert committed(broker, group, topic, 2) == {0: 10}
    assert "was successful" in tools.run(COMMAND, "--delete", "--group", group)
    assert group not in tools.run(COMMAND, "--list").split()
    assert committed(broker, group, topic, 2) == {}
    assert "GroupIdNotFoundException" in tools.run(COMMAND, "--describe", "--group", group, expect_code=None)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_verifiable_consumer(broker: ServerProcess, topic: str, group: str, protocol: str) -> None:
    log = Topic(broker, topic, 2)
    log.write(50)
    wanted = ["--bootstrap-server", broker.bootstrap, "--topic", topic, "--group-id", group, "--max-messages", "100"]
    how = ["--group-protocol", protocol, "--reset-policy", "earliest"]
    libs = require_libs(KAFKA_LIBS, "kafka")
    done = run_java("org.apache.kafka.tools.VerifiableConsumer", [*wanted, *how], libs)
    assert done.returncode == 0, done.stdout + done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    names = [event["name"] for event in events]
    assert "shutdown_complete" in names
    assigned = [event["partitions"] for event in events if event["name"] == "partitions_assigned"]
    assert sorted(place["partition"] for place in assigned[0]) == [0, 1]
    assert sum(event["count"] for event in events if event["name"] == "records_consumed") == 100
    commits = [event for event in events if event["name"] == "offsets_committed"]
    assert commits
    assert all(event["success"] for event in commits)
    assert committed(broker, group, topic, 2) == {0: 50, 1: 50}


def test_console_consumer_in_a_group(broker: ServerProcess, topic: str, group: str) -> None:
    log = Topic(broker, topic, 1)
    log.write(20)
    wanted = ["--bootstrap-server", broker.bootstrap, "--topic", topic, "--group", group, "--from-beginning"]
    limits = ["--max-messages", "20", "--timeout-ms", "20000"]
    libs = require_libs(KAFKA_LIBS, "kafka")
    done = run_java("org.apache.kafka.tools.consumer.ConsoleConsumer", [*wanted, *limits], libs)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == [str(number) for number in range(20)]
    assert re.search(r"Processed a total of 20 messages", done.stderr + done.stdout)
    assert committed(broker, group, topic, 1) == {0: 20}
