"""What concerns all libraries at once: the broker dies under their groups, and a group changes its protocol."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from tests.compat.clients.groups.conftest import CLASSIC_APIS, CONSUMER_APIS
from tests.compat.clients.groups.contract import Topic, until_read, until_shared, write_to_owners
from tests.compat.clients.groups.groups import committed, kind_of_group
from tests.compat.clients.groups.hosts import (
    AIOKAFKA,
    CONFLUENT,
    CONFLUENT_NEW,
    JAVA_39,
    JAVA_43_NEW,
    KAFKA_PYTHON,
    GroupHost,
    Kind,
    until,
)
from tests.peers.process import ServerProcess

from ottla.protocol.api_keys import ApiKey

pytestmark = pytest.mark.timeout(240)

KINDS = (CONFLUENT, CONFLUENT_NEW, AIOKAFKA, KAFKA_PYTHON, JAVA_39, JAVA_43_NEW)


@pytest.fixture(autouse=True)
def _served(needs: Callable[[ApiKey], None]) -> None:
    for api in (*CLASSIC_APIS, *CONSUMER_APIS):
        needs(api)


def test_groups_outlive_the_broker(broker: ServerProcess, topic: str, group: str) -> None:
    """Two members of every kind; the broker is killed and comes back: all read on, and no commit is lost."""
    log = Topic(broker, topic)
    with contextlib.ExitStack() as stack:
        hosts = [GroupHost(kind, broker.bootstrap) for kind in KINDS]
        for host in hosts:
            stack.callback(host.close)
        groups = [f"{group}-{host.kind.library}-{host.kind.protocol}" for host in hosts]
        members = [[host.join(name, topic) for _ in range(2)] for host, name in zip(hosts, groups, strict=True)]
        for pair in members:
            until_shared(pair, [2, 2])
        write_to_owners([member for pair in members for member in pair], log, 5)
        for pair in members:
            for member in pair:
                member.commit()
        before = [committed(broker, name, topic, 4) for name in groups]
        assert before == [dict.fromkeys(range(4), 5)] * len(KINDS)
        broker.kill()
        broker.start()
        assert [committed(broker, name, topic, 4) for name in groups] == before
        for pair in members:
            until_shared(pair, [2, 2])
        write_to_owners([member for pair in members for member in pair], log, 5)
        for pair in members:
            for member in pair:
                member.commit()
        assert [committed(broker, name, topic, 4) for name in groups] == [dict.fromkeys(range(4), 10)] * len(KINDS)


@pytest.mark.parametrize("classic", [Kind("confluent"), JAVA_39], ids=lambda kind: kind.name)
def test_a_group_changes_its_protocol_and_back(broker: ServerProcess, topic: str, group: str, classic: Kind) -> None:
    """A rolling change of clients: old and new ones share the partitions while both are there."""
    log = Topic(broker, topic)
    log.write(5)
    with contextlib.ExitStack() as stack:
        old, new = (GroupHost(kind, broker.bootstrap) for kind in (classic, CONFLUENT_NEW))
        for host in (old, new):
            stack.callback(host.close)
        first = old.join(group, topic)
        until_shared([first], [4])
        until_read([first], log)
        first.commit()
        assert kind_of_group(broker, group) == "classic"
        second = new.join(group, topic)
        until_shared([first, second], [2, 2])
        assert kind_of_group(broker, group) == "consumer"
        assert committed(broker, group, topic, 4) == dict.fromkeys(range(4), 5)
        first.leave()
        until_shared([second], [4])
        third = old.join(group, topic)
        until_shared([second, third], [2, 2])
        second.leave()
        until_shared([third], [4])
        until(lambda: kind_of_group(broker, group) == "classic", "a classic group")
        log.write(5)
        until(
            lambda: {record.partition for record in third.records() if record.offset > 4} == {0, 1, 2, 3}, "new records"
        )
        assert committed(broker, group, topic, 4) == dict.fromkeys(range(4), 5)
